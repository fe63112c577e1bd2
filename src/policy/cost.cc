// Prefers nodes whose GPUs are cheap, by the prices of berth.yaml: what the pod takes of each GPU costs, as a share of
// the dearest whole one, is held against the node.
//
// A part of a GPU costs that part: 10Gi of a small device may cost more than 10Gi of a large one. So does a replica of
// a device that is advertised several times. An instance of MIG counts as a whole GPU; only nodes with the same
// instances compete for the pod. Pods without GPUs have no preference, and neither has anyone without prices.
#include "base/int128.h"
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr int64_t kWhole = 1'000'000;

// How much of each GPU that it is given the pod pays for, in millionths.
int64_t part_ppm(const PodClass& pod, const NodeView& node) {
  const model::NodeGpus& gpus = node.node().gpus;
  const int64_t replicas = gpus.sharing == model::GpuSharing::kReplicas ? std::max<int64_t>(1, gpus.replicas) : 1;
  if (!pod.shares_gpu) return pod.request(node.share_resource()) > 0 ? kWhole / replicas : kWhole;
  if (replicas > 1) return std::min(gpus.replicas_of(pod.spec->gpu_share), replicas) * kWhole / replicas;
  const int64_t units = std::min(gpus.units_of(pod.spec->gpu_share), gpus.units());
  return static_cast<int64_t>(Int128{units} * kWhole / gpus.units());
}

int32_t cost(const PodClass& pod, const NodeView& node) {
  if (!pod.requests_gpu) return 0;
  return static_cast<int32_t>(-kMaxScore * node.gpu_price_ppm() * part_ppm(pod, node) /
                              (NodeCatalog::kDearest * kWhole));
}

}  // namespace

extern const PolicyInfo kCost = priced_score_policy("cost", "prefers nodes whose GPUs are cheap for the pod", 0, &cost);

}  // namespace berth::policy
