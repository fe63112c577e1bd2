// Keeps idle nodes idle, so that fewer are powered and an autoscaler can remove the rest: an idle node is the last
// resort, and of those in use the one that is fullest in any resource comes first.
//
// Idle is a node on which nothing runs but what runs on every node: pods of DaemonSets and static pods. These are also
// what cluster-autoscaler passes over when it asks whether a node can go (its FAQ, "How does scale-down work?").
// `pack` keeps whole GPUs together, for pods that ask for GPUs; this rule is about whole nodes and holds for all pods.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int32_t power(const PodClass& /*pod*/, const NodeView& node) {
  if (node.idle()) return -kMaxScore;
  int64_t fullest = 0;
  for (uint32_t i = 0; i < node.resources().size(); ++i) {
    const ResourceId id{i};
    if (const int64_t whole = node.allocatable(id); whole > 0)
      fullest = std::max(fullest, std::min(node.used(id), whole) * kMaxScore / whole);
  }
  return static_cast<int32_t>(fullest - kMaxScore) / 2;
}

}  // namespace

extern const PolicyInfo kPower =
    score_policy("power", "keeps idle nodes idle, so that they can be powered off", 0, &power);

}  // namespace berth::policy
