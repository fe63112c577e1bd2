// Jobs and Workloads as the API server has them, with what the desk (queueing/desk.h) has to know to write to them.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/controllers.h"
#include "api/kueue.h"
#include "api/queue_limits.h"
#include "base/result.h"
#include "quota/decision.h"

namespace berth::queueing {

// A condition as it is stored; kept whole, since a merge patch replaces all of them.
struct StoredCondition {
  std::string type, status, reason, message;
  std::string since;  // lastTransitionTime, RFC 3339
  int64_t observed_generation = 0;
  friend bool operator==(const StoredCondition&, const StoredCondition&) = default;
};

// status.admission.
struct StoredAdmission {
  std::string cluster_queue;
  std::vector<quota::PodSetAssignment> pod_sets;
};

// What status.admissionChecks says of one of them.
struct StoredCheck {
  std::string name, state;  // as it stands there
  quota::CheckReport report;
  std::string json;  // all of it, with what is to be added to the pods
};

// status.requeueState.
struct StoredRequeue {
  int32_t count = 0;
  std::optional<Time> at = {};
};

struct SeenWorkload {
  api::Workload workload;
  std::vector<std::string> templates;  // JSON, by pod set
  std::vector<StoredCondition> conditions;
  std::optional<StoredAdmission> admission;
  std::vector<StoredCheck> checks = {};
  std::optional<StoredRequeue> requeue = {};
  std::string priority_class = {};           // the WorkloadPriorityClass that it names; empty: none
  std::vector<std::string> finalizers = {};  // but Kueue's
  bool finalizer = false;                    // it has Kueue's, which keeps it until it is taken off
  std::string problem = {};                  // why its pod sets cannot be understood, and are left out

  const StoredCondition* condition(std::string_view type) const;
  // The condition is there and True.
  bool is(std::string_view type) const;
  // In this term; nothing while it is not admitted.
  Duration admitted_for(Time wall) const;
};

// The condition of one that has room which is kept for others, for as long as it declares.
inline constexpr const char* kRoomLent = "berth.dev/RoomLent";

// Of a Workload that was made for a Job: the Job's UID, as Kueue tells it.
inline constexpr std::string_view kJobUidLabel = "kueue.x-k8s.io/job-uid";

struct SeenJob {
  api::Job job;
  std::string pod_template;  // JSON
  bool started = false;      // status.startTime
  int32_t terminating = 0;   // pods that are on their way out, and are not active any more
  bool rests = false;        // condition Suspended: its controller has seen to it that it is
  // Since when its controller is about to end it (conditions SuccessCriteriaMet, FailureTarget); none: it is not.
  std::optional<std::string> ends_since = {};
  bool has_pods() const { return job.active > 0 || terminating > 0; }
  std::string conditions;    // status.conditions, JSON
  std::string finished;      // "Succeeded" or "Failed", as the Workload's condition has it; empty: it has not
  std::string how_finished;  // the message of that condition
};

// A flavor, queue, cohort or priority class of queues.
struct SeenQueue {
  api::KueueObject object;
  std::string status;  // JSON, as it is stored
  // Of a ClusterQueue or LocalQueue: why it cannot be understood and lets nobody in; and what of it has no effect.
  std::string problem = {}, remark = {};
  api::SpendingRate rate = {};  // as its budget's condition says
};
// What its budget's condition says was spent, counted up to now; nothing: it says nothing.
std::optional<model::Spent> spent_by_now(const SeenQueue& seen, Time wall);

// A pod that names a queue by itself or with its group.
struct SeenPod {
  api::Pod pod;
  std::string pod_template;             // JSON: labels, annotations and spec, but for gates and the node
  std::string gates, tolerations;       // JSON lists, as they stand in the spec
  std::vector<std::string> finalizers;  // but Kueue's
  bool finalizer = false;               // it has Kueue's, which keeps it until it is taken off
};

// A ProvisioningRequestConfig: what the ProvisioningRequests of a check are like.
struct ProvisioningConfig {
  api::ObjectMeta metadata;
  std::string class_name;
  std::map<std::string, std::string> parameters;
  std::set<std::string> managed;  // resources; only pod sets that ask for one are provisioned. Empty: all are
  int32_t backoff_limit = 3, backoff_base_s = 60, backoff_max_s = 1800;
  std::map<std::string, std::string> node_selector;  // by label, the detail of the class that is its value
};

// A ProvisioningRequest of autoscaling.x-k8s.io.
struct ProvisioningRequest {
  api::ObjectMeta metadata;
  std::string class_name;
  std::map<std::string, std::string> parameters;
  std::vector<std::string> templates;  // names of PodTemplates, by pod set
  std::vector<StoredCondition> conditions;
  std::map<std::string, std::string> details;  // status.provisioningClassDetails

  // The condition if it is True; null: it is not.
  const StoredCondition* is(std::string_view type) const;
};

// From a watch or an answer; what is not read stays in the templates.
Result<SeenWorkload> decode_workload(std::string_view json);
// The same; one whose pod sets cannot be understood is one with a problem and without pod sets, unless it has quota.
Result<SeenWorkload> decode_any_workload(std::string_view json);
Result<SeenJob> decode_job(std::string_view json);
Result<SeenPod> decode_pod(std::string_view json);
Result<ProvisioningConfig> decode_provisioning_config(std::string_view json);
Result<ProvisioningRequest> decode_provisioning_request(std::string_view json);
// Flavors, queues, cohorts and priority classes of queues; `kind` is the object's. A ClusterQueue whose spec cannot be
// understood is one with a problem and without quota. Limits in annotations that cannot be read are a problem, too; the
// queue has no budget then.
Result<SeenQueue> decode_queue_object(std::string_view json, std::string_view kind);

// Versions of objects are numbers (Kubernetes 1.35 says so); one that is none counts as new.
bool is_older(const std::string& version, const std::string& known);

// A new Workload of v1beta2 as the body of its POST; `templates` by pod set. It has Kueue's finalizer.
std::string workload_json(const api::Workload& workload, const std::vector<std::string>& templates,
                          const std::optional<std::string>& priority_class);
// spec.priorityClassRef.
std::string priority_class_json(const std::string& name);
// metadata.ownerReferences.
std::string owners_json(const std::vector<api::OwnerReference>& owners);

}  // namespace berth::queueing
