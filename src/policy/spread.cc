// Prefers the least used node: the mean free share of cpu and memory, and of GPUs for pods that ask for them.
// A share of a GPU counts as a whole one, or as its replicas.
// A pod without requests counts with kube-scheduler's default amounts, so that such pods spread too.
// Source: the LeastAllocated strategy of kube-scheduler's NodeResourcesFit.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int64_t free_permille(int64_t used, int64_t whole) {
  return whole <= 0 ? 0 : std::clamp<int64_t>((whole - used) * 1000 / whole, 0, 1000);
}

int32_t spread(const PodClass& pod, const NodeView& node) {
  int64_t sum = free_permille(node.scored_cpu_millis() + pod.scored_cpu_millis, node.allocatable(kCpu)) +
                free_permille(node.scored_memory_bytes() + pod.scored_memory_bytes, node.allocatable(kMemory));
  int64_t parts = 2;
  const auto add = [&](ResourceId id, int64_t amount) {
    sum += free_permille(node.used(id) + amount, node.allocatable(id));
    ++parts;
  };
  for (const ResourceAmount& request : pod.requests)
    if (node.resources().is_gpu(request.id)) add(request.id, request.amount);
  if (pod.shares_gpu) add(node.share_resource(), std::max<int64_t>(1, node.replicas_beside_requests(pod)));
  return static_cast<int32_t>(sum / parts);
}

}  // namespace

extern const PolicyInfo kSpread =
    placement_policy("spread", "prefers the least used node", 1, &spread, model::Placement::kSpread);

}  // namespace berth::policy
