// Keeps pods that ask for no GPU off nodes that have them, while a node without GPUs fits.
// GPUs stranded by a full CPU are the commonest waste in a mixed fleet. The default weight outweighs all other scores
// together, so that the rule is "whenever one fits", not a matter of degree.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int32_t gpu_node_aversion(const PodClass& pod, const NodeView& node) {
  const bool wasteful = !pod.requests_gpu && node.has_gpus();
  return wasteful ? -kMaxScore : 0;
}

}  // namespace

extern const PolicyInfo kGpuNodeAversion = score_policy(
    "gpu-node-aversion", "keeps pods without GPUs off GPU nodes while another node fits", 1000, &gpu_node_aversion);

}  // namespace berth::policy
