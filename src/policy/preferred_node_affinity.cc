// Prefers nodes that match preferred node affinity: the matched share of the pod's total weight.
// Source: kube-scheduler's NodeAffinity plugin (score), normalised by the pod's own weights instead of the best node's.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int32_t preferred_node_affinity(const PodClass& pod, const NodeView& node) {
  if (pod.preferred_weight_sum <= 0) return 0;
  int64_t matched = 0;
  for (const auto& term : pod.spec->affinity.preferred)
    if (term.preference.matches(node.node().labels, node.node().name)) matched += std::max(term.weight, 0);
  return static_cast<int32_t>(matched * kMaxScore / pod.preferred_weight_sum);
}

}  // namespace

extern const PolicyInfo kPreferredNodeAffinity = score_policy(
    "preferred-node-affinity", "prefers nodes that match preferred node affinity", 2, &preferred_node_affinity);

}  // namespace berth::policy
