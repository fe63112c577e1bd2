// Kueue's objects: flavors, queues, cohorts and workloads. Source: kueue.x-k8s.io v1beta2 and v1beta1,
// https://kueue.sigs.k8s.io/docs/reference/.
//
// Both versions are read: names that differ (cohort and cohortName, parent and parentName, Borrow and MayStopSearch)
// mean the same in either.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/controllers.h"
#include "api/document.h"
#include "api/meta.h"
#include "model/queues.h"

namespace berth::api {

struct ResourceFlavor {
  ObjectMeta metadata;
  model::ResourceFlavor flavor;
};

struct ClusterQueue {
  ObjectMeta metadata;
  model::ClusterQueue queue;
};

struct Cohort {
  ObjectMeta metadata;
  model::Cohort cohort;
};

struct LocalQueue {
  ObjectMeta metadata;
  model::LocalQueue queue;
};

// What spec.parameters of an AdmissionCheck names.
struct CheckParameters {
  std::string api_group, kind, name;
};

struct AdmissionCheck {
  ObjectMeta metadata;
  std::optional<CheckParameters> parameters;
  model::AdmissionCheck check;
  std::optional<bool> active;  // its condition Active; none: nobody has said
};

struct WorkloadPriorityClass {
  ObjectMeta metadata;
  int32_t value = 0;
};

struct WorkloadPodSet {
  std::string name = "main";
  int32_t count = 1;
  std::optional<int32_t> min_count;
  int32_t reclaimable = 0;  // status.reclaimablePods
  PodTemplate pod_template;
};

struct Workload {
  ObjectMeta metadata;
  std::string queue_name;
  int32_t priority = 0;
  bool active = true;
  std::optional<int32_t> max_execution_s;  // spec.maximumExecutionTimeSeconds
  int32_t past_execution_s = 0;            // status.accumulatedPastExecutionTimeSeconds
  std::vector<WorkloadPodSet> pod_sets;
};

using KueueObject =
    std::variant<ResourceFlavor, ClusterQueue, Cohort, LocalQueue, AdmissionCheck, WorkloadPriorityClass, Workload>;

// True for an object of kueue.x-k8s.io of a kind that decode_kueue() reads.
bool is_kueue_kind(const Document& document);
// Strict, unless it is `from_server`: then it has passed a schema, perhaps a newer one, and what is unknown is no
// problem. Or nothing: it had problems, which are appended, or it is of another kind, which is one.
std::optional<KueueObject> decode_kueue(const Document& document, Problems& problems, bool from_server = false);

}  // namespace berth::api
