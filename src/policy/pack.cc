// Fills GPU nodes that are in use before it breaks into an empty one, and prefers the tightest fit.
//
// Whole free nodes are what gangs and 8-GPU pods need, so a partly used node always beats an untouched one; among
// equals the one that is left with the fewest free GPUs wins. A share of a GPU goes where one that is shared already
// has room for it, the least such room first. Pods without GPUs fill cpu and memory.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// Share of `id` in use after the pod has landed, 0 to 1000.
int64_t used_permille(const NodeView& node, ResourceId id, int64_t extra) {
  const int64_t whole = node.allocatable(id);
  return whole <= 0 ? 0 : std::clamp<int64_t>((node.used(id) + extra) * 1000 / whole, 0, 1000);
}

// Points for a share that needs no further device; 0 where it does.
int32_t pack_share(const PodClass& pod, const NodeView& node) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t units = gpus.units_of(pod.spec->gpu_share);
  const int32_t device = node.best_shared(units);
  if (device < 0) return 0;
  return static_cast<int32_t>(600 + (node.devices().used(device) + units) / (gpus.units() / 400));
}

int32_t pack_gpus(const PodClass& pod, const NodeView& node) {
  int64_t left = 0, used_before = 0, whole = 0;
  const auto add = [&](ResourceId id, int64_t amount) {
    left += node.free(id) - amount;
    used_before += node.used(id);
    whole += node.allocatable(id);
  };
  for (const ResourceAmount& request : pod.requests)
    if (node.resources().is_gpu(request.id)) add(request.id, request.amount);
  const bool shares = pod.shares_gpu;
  if (shares) add(node.share_resource(), std::max<int64_t>(1, node.replicas_beside_requests(pod)));
  if (whole <= 0) return 0;
  const int64_t tightness = 500 / (1 + std::max<int64_t>(left, 0));
  const int64_t opened = used_before > 0 ? 300 : 0;
  const int64_t points = tightness + opened + std::clamp<int64_t>(200 * used_before / whole, 0, 200);
  return shares ? std::max(pack_share(pod, node), static_cast<int32_t>(points * 6 / 10)) : static_cast<int32_t>(points);
}

int32_t pack(const PodClass& pod, const NodeView& node) {
  if (pod.requests_gpu) return pack_gpus(pod, node);
  return static_cast<int32_t>(
      (used_permille(node, kCpu, pod.request(kCpu)) + used_permille(node, kMemory, pod.request(kMemory))) / 2);
}

}  // namespace

extern const PolicyInfo kPack = placement_policy(
    "pack", "fills nodes that are in use, GPUs first, to keep whole nodes free", 1, &pack, model::Placement::kPack);

}  // namespace berth::policy
