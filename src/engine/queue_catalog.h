// QueueCatalog: which weights the configuration gives to the pods of a queue.
//
// A pod's queue is the LocalQueue that its label kueue.x-k8s.io/queue-name names, in the pod's namespace. State asks
// when a pod joins its class, so that pods of queues with the same weights share a class, and policies stay functions
// of class and node. Plain values; the catalog of an engine never changes.
//
//   {"ml/training": 1, "training": 2}   LocalQueue training of namespace ml has the first weights, of others the second
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "model/pod.h"

namespace berth::engine {

// The LocalQueue that a pod is submitted to. Source: Kueue, "Running workloads: plain pods".
inline constexpr std::string_view kQueueNameLabel = "kueue.x-k8s.io/queue-name";

struct QueueCatalog {
  // By "namespace/name" or, for queues of that name in all other namespaces, "name": PodClass::queue_weights.
  std::map<std::string, uint32_t, std::less<>> weights = {};

  // Those of the pod's queue; 0: it has none, or none with weights of its own.
  uint32_t weights_of(const model::Pod& pod) const {
    if (weights.empty() || pod.labels == nullptr) return 0;
    const std::string* queue = pod.labels->find(kQueueNameLabel);
    if (queue == nullptr) return 0;
    auto at = weights.find(pod.namespace_name + "/" + *queue);
    if (at == weights.end()) at = weights.find(*queue);
    return at == weights.end() ? 0 : at->second;
  }
};

}  // namespace berth::engine
