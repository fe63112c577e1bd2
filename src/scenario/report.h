// Report: what became of every pod and node, for people and programs.
//
// The JSON form is an interface that others build on: fields are added, never renamed. Times are seconds of virtual
// time since the start. All text is safe to show (base/printable.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/decision.h"
#include "engine/explanation.h"
#include "engine/forecast.h"
#include "limits/namespace_limits.h"
#include "model/resources.h"
#include "quota/status.h"

namespace berth::scenario {

// Why a Job failed, as its controller says it.
inline constexpr const char* kDeadlineExceeded = "DeadlineExceeded";
inline constexpr const char* kBackoffLimitExceeded = "BackoffLimitExceeded";
// Why a pod of a controller is not there: the API server refuses to store it.
inline constexpr const char* kFailedCreate = "FailedCreate";

// GPUs and instances of MIG, which are parts of one and no GPUs.
struct GpuCount {
  int64_t gpus = 0, mig_instances = 0;
};
GpuCount count_gpus(const model::ResourceList& amounts);

struct PodReport {
  std::string namespace_name;
  std::string name;
  std::string node;     // empty: none
  std::string reason;   // "Scheduled", "Bound" (by its manifest), "Unschedulable", "Deleted", …
  std::string message;  // the latest verdict
  std::string ended;    // "Succeeded", "Failed: DeadlineExceeded"; empty while it runs or waits
  std::optional<Time> submitted, started, finished;
  model::ResourceList requests;
  model::GpuShare gpu_share;          // beside the requests
  engine::DeviceNames gpu_devices;    // of its node, that it has or shares
  std::vector<std::string> feasible;  // the first of the nodes that fitted it when it was bound; if they were asked for
  uint32_t feasible_count = 0;        // how many did
  std::string nominated_node;         // for which it was nominated last; empty: never
  std::vector<std::string> evicted;   // "namespace/name" of the pods that had to leave for it
  bool waiting = false;               // it should run and does not
  std::string refusal;                // why the API server does not store it, without its name; empty: it does
  size_t verdict = SIZE_MAX;          // into Report::verdicts; none for pods that do not wait
  std::string uid = {};               // the engine's
  std::string owner = {};             // its controller: "Job nlp/train"; empty: none
  std::optional<engine::Forecast> forecast = {};  // of one that waits, where it was asked for
};

struct NodeReport {
  std::string name;
  model::ResourceList capacity;
  model::ResourceList allocatable;
  model::ResourceList use;                       // of everything that `allocatable` names
  std::optional<model::DeviceMode> device_mode;  // none: it has no GPUs
  std::string set_aside = {};                    // why it takes no new pods with GPUs; empty: it does
  std::string mig_problem = {};                  // why its MIG instances take no new work; empty: they do
  std::string_view share_limit = {};             // model::share_limit(); empty: no share goes there
};

// A node whose GPUs were cut anew (docs/mig.md).
struct RepartitionReport {
  std::string node;
  Time begun;
  std::optional<Time> ended;      // none: not yet
  model::ResourceList resources;  // nvidia.com/gpu and nvidia.com/mig-*, as wanted
  bool given_up = false;          // it took too long
  std::string overtaken = {};     // why it could not come any more
};

// Work that waits in a queue, or was let in.
struct WorkloadReport {
  struct Set {
    std::string name;
    int32_t count = 0;
    std::map<std::string, std::string> flavors = {};  // by resource
  };
  std::string kind;  // of what was submitted: "Job", "Pod", "Workload"
  std::string name;  // its own, "namespace/name"
  std::string queue, cluster_queue;
  int32_t priority = 0;
  std::string state;            // "Pending", "QuotaReserved", "Admitted", "Finished"
  std::string reason, message;  // while it is pending, or waits for its checks
  std::vector<Set> pod_sets;    // as it was admitted; empty while it is pending
  Time submitted;
  std::optional<Time> admitted, finished;
  int evictions = 0;
  std::string evicted_for;           // the last time: "Preempted by default/urgent"
  quota::WaitingFor waits_for = {};  // while it is pending
  struct OnNode {
    std::string resource, pod, node;
    int64_t amount = 0;
    bool kept = false;  // for a workload that waits, too
  };
  std::vector<OnNode> on_nodes = {};  // where it waits for a place: who has what it asks for, the most first
  std::string uid = {};               // the engine's
  std::optional<engine::Forecast> forecast = {};  // of one that waits, where it was asked for
};

// A ClusterQueue.
struct QueueReport {
  struct Held {
    std::string flavor, resource;
    int64_t used = 0, borrowed = 0, nominal = 0;
  };
  std::string name, cohort;
  std::string inactive;  // why; empty: it is active
  int pending = 0, admitted = 0;
  std::vector<Held> held = {};
};

// An object other than a pod that the API server has refused to store.
struct RefusedObject {
  std::string kind, namespace_name, name;
  std::string message;
};

struct Report {
  std::vector<PodReport> pods;                       // in the order of submission
  std::vector<NodeReport> nodes;                     // by name
  std::vector<engine::Explanation> verdicts;         // node by node; one for all pods that ask for the same
  std::vector<RepartitionReport> repartitions = {};  // in the order in which they began
  std::vector<WorkloadReport> workloads = {};        // in the order of submission
  std::vector<QueueReport> queues = {};              // by name
  std::vector<RefusedObject> refused = {};           // in the order of submission
  std::vector<limits::QuotaUse> quotas = {};         // ResourceQuotas, by namespace and name
  Time end;                                          // when the last thing happened
  int64_t gpus_peak = 0, mig_instances_peak = 0;     // each at its own time

  size_t waiting() const;  // pods, also those that were refused
  size_t pods_refused() const;
  size_t workloads_waiting() const;
};

enum class ReportFormat { kTable, kWide, kJson, kYaml };

std::string render(const Report& report, ReportFormat format);

}  // namespace berth::scenario
