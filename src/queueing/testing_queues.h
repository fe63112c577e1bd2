// For tests: two queues of one cohort, red and blue, with four GPUs each, and a flavor of nodes.
#pragma once

#include "model/queues.h"
#include "quota/admission.h"

namespace berth::queueing {

inline constexpr const char* kGpu = "nvidia.com/gpu";

inline void add_red_and_blue(quota::Admission& admission) {
  model::ResourceFlavor flavor;
  flavor.name = "h100";
  flavor.node_labels = {{"gpu", "h100"}};
  flavor.tolerations = {{"gpu", "", model::TolerationOperator::kExists}};
  admission.upsert(flavor);
  admission.set_namespace_labels("default", {});
  for (const char* name : {"red", "blue"}) {
    model::ClusterQueue queue;
    queue.name = name;
    queue.cohort = "all";
    queue.namespaces.selects_nothing = false;
    queue.preemption.reclaim_within_cohort = model::PreemptionPolicy::kAny;
    model::ResourceQuota quota;
    quota.nominal = 4 * model::kWholeGpu;
    queue.groups = {{{kGpu}, {{"h100", {{kGpu, quota}}}}}};
    admission.upsert(queue);
    admission.upsert(model::LocalQueue{"default", name, name});
  }
}

}  // namespace berth::queueing
