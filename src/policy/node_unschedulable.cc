// Turns pods away from cordoned nodes, unless they tolerate the taint node.kubernetes.io/unschedulable.
// Source: kube-scheduler's NodeUnschedulable plugin.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kCordoned{.text = "node(s) were unschedulable",
                               .detail = [](const PodClass&, const NodeView&, const Reason&) {
                                 return std::string("spec.unschedulable is true; kubectl uncordon lifts it");
                               }};

void node_unschedulable(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (!node.node().unschedulable) return;
  const model::Taint taint{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule};
  if (!model::tolerates(pod.spec->tolerations, taint)) reasons.push_back({&kCordoned, {}, 0});
}

}  // namespace

extern const PolicyInfo kNodeUnschedulable =
    object_filter_policy("node-unschedulable", "turns pods away from cordoned nodes", 20, &node_unschedulable);

}  // namespace berth::policy
