// Turns a pod away from nodes that cannot reach its bound volumes, and from those for which its unbound claims find no
// volume and cannot be provisioned. Claims that are missing, lost or of no use rule out every node at once.
// Source: kube-scheduler's VolumeBinding plugin.
#include <fmt/format.h>

#include "engine/policy.h"
#include "engine/state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

std::string unreachable(const PodClass& pod, const NodeView& node, const Reason& reason) {
  const ClaimRecord& claim = *pod.claims.at(reason.index);
  const model::Volume* volume = node.volumes().volume_of(claim);
  if (volume == nullptr) return "";
  std::string out = fmt::format("claim {} is bound to volume {}", claim.key, volume->name);
  if (!volume->affinity || volume->affinity->size() != 1) return out;
  for (const auto& requirement : volume->affinity->front().match_expressions)
    if (!requirement.matches(node.node().labels.find(requirement.key)))
      return out + ", which asks for " + model::to_string(requirement);
  return out;
}

std::string unbound(const PodClass& pod, const NodeView&, const Reason& reason) {
  const ClaimRecord& claim = *pod.claims.at(reason.index);
  if (!claim.object) return "";
  const std::string& selected = claim.object->selected_node;
  if (!selected.empty()) return fmt::format("claim {} is being provisioned for node {}", claim.key, selected);
  if (claim.choice) return fmt::format("claim {} is being bound for a pod on node {}", claim.key, claim.choice->node);
  return fmt::format("claim {} of class '{}' finds no volume here, and none can be provisioned", claim.key,
                     claim.object->storage_class);
}

std::string no_space(const PodClass& pod, const NodeView&, const Reason& reason) {
  return fmt::format("no CSIStorageCapacity has room for claim {}", pod.claims.at(reason.index)->key);
}

constexpr ReasonInfo kUnreachable{.text = "node(s) didn't match PersistentVolume's node affinity",
                                  .detail = &unreachable};
constexpr ReasonInfo kNoVolume{.text = "node(s) didn't find available persistent volumes to bind", .detail = &unbound};
constexpr ReasonInfo kNoSpace{.text = "node(s) did not have enough free storage", .detail = &no_space};

void volume_binding(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (pod.claims.empty()) return;
  const VolumeState::Fit fit = node.volumes().fit(pod.claims, node.node());
  if (!fit.reachable) reasons.push_back({&kUnreachable, {}, fit.claim});
  if (!fit.found) reasons.push_back({&kNoVolume, {}, fit.claim});
  if (!fit.space) reasons.push_back({&kNoSpace, {}, fit.claim});
}

std::string objection(const PodClass& pod, const State& state) {
  return pod.claims.empty() ? "" : state.volumes().objection(pod.spec->claims, pod.claims);
}

}  // namespace

extern const PolicyInfo kVolumeBinding =
    filter_policy("volume-binding", "turns pods away from nodes that their volumes cannot be reached from or made for",
                  90, &volume_binding, &objection);

}  // namespace berth::policy
