// A world for tests of workloads in the engine without controllers: a queue "team" with GPUs of flavor "gpus", and
// workloads of pods with two GPUs each.
#pragma once

#include <string>
#include <vector>

#include "engine/testing.h"
#include "policy/registry.h"
#include "quota/admission.h"

namespace berth::scenario {

using namespace berth::engine;
using namespace berth::engine::testing;

inline constexpr const char* kGpu = "nvidia.com/gpu";

inline model::ClusterQueue queue_of(const std::string& name, int64_t gpus) {
  model::ClusterQueue queue;
  queue.name = name;
  queue.namespaces.selects_nothing = false;
  model::ResourceQuota quota;
  quota.nominal = gpus;
  queue.groups = {{{kGpu}, {{"gpus", {{kGpu, quota}}}}}};
  return queue;
}

// Of `pods` pods with two GPUs each.
inline model::Workload workload_of(const std::string& name, int32_t pods) {
  model::Workload out;
  out.namespace_name = "default";
  out.name = name;
  out.uid = "uid-" + name;
  out.queue = "team";
  model::PodSet& set = out.pod_sets.emplace_back();
  set.name = "main";
  set.count = pods;
  set.requests = {{kGpu, 2}};
  set.spec = make_pod("one", {{kGpu, 2}}).spec;
  return out;
}

inline std::vector<quota::PodSetAssignment> given(int32_t pods) {
  quota::PodSetAssignment set;
  set.name = "main";
  set.count = pods;
  set.flavors[kGpu] = {"gpus", quota::FlavorMode::kFit};
  set.usage = {{kGpu, 2 * pods}};
  return {set};
}

inline model::Pod pod_of(const std::string& workload, const std::string& name) {
  model::Pod pod = make_pod(name, {{kGpu, 2}});
  pod.workload = "default/" + workload;
  return pod;
}

struct WorkloadWorld {
  Driver driver{policy::default_policies()};

  WorkloadWorld() {
    driver.add(make_node("a", {{kGpu, 8}}));
    driver.apply(NamespaceUpserted{"default"});
    model::ResourceFlavor flavor;
    flavor.name = "gpus";
    driver.apply(QueueObjectUpserted{flavor});
  }
  void queues(int64_t gpus) {
    driver.apply(QueueObjectUpserted{queue_of("team", gpus)});
    driver.apply(QueueObjectUpserted{model::LocalQueue{"default", "team", "team"}});
  }
  const quota::WorkloadStatus& status(const std::string& name) const {
    const quota::Admission& admission = driver.engine().admission();
    return admission.status(admission.find("uid-" + name));
  }
};

}  // namespace berth::scenario
