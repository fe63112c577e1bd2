// Avoids nodes with PreferNoSchedule taints that the pod does not tolerate; the more such taints, the more so.
// Source: kube-scheduler's TaintToleration plugin (score).
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int32_t prefer_no_schedule(const PodClass& pod, const NodeView& node) {
  int32_t untolerated = 0;
  for (const model::Taint& taint : node.node().taints)
    untolerated +=
        taint.effect == model::TaintEffect::kPreferNoSchedule && !model::tolerates(pod.spec->tolerations, taint);
  return kMaxScore / (1 + untolerated) - kMaxScore;
}

}  // namespace

extern const PolicyInfo kPreferNoSchedule =
    score_policy("prefer-no-schedule", "avoids nodes with PreferNoSchedule taints that the pod does not tolerate", 3,
                 &prefer_no_schedule);

}  // namespace berth::policy
