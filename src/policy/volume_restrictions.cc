// Keeps a pod out while another pod, on whichever node, uses a claim of its that only one pod may use.
// Source: kube-scheduler's VolumeRestrictions plugin (ReadWriteOncePod).
#include "engine/policy.h"
#include "engine/volume_state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kInUse{.text =
                                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
                                "already in-use by another pod",
                            .preemption_helps = true,
                            .detail = [](const PodClass& pod, const NodeView&, const Reason& reason) {
                              return "claim " + pod.claims.at(reason.index)->key + " is in use";
                            }};

void volume_restrictions(const PodClass& pod, const NodeView&, Reasons& reasons) {
  for (uint32_t i = 0; i < pod.claims.size(); ++i) {
    const ClaimRecord& claim = *pod.claims[i];
    if (pod.spec->claims[i].ephemeral() || !claim.object || !claim.object->one_pod_only()) continue;
    if (!claim.used_on.empty()) return reasons.push_back({&kInUse, {}, i});
  }
}

}  // namespace

extern const PolicyInfo kVolumeRestrictions = filter_policy(
    "volume-restrictions", "keeps a ReadWriteOncePod claim to one pod at a time", 70, &volume_restrictions);

}  // namespace berth::policy
