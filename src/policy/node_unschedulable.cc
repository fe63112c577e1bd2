// Turns pods away from cordoned nodes, unless they tolerate the taint node.kubernetes.io/unschedulable
// (kube-scheduler's NodeUnschedulable plugin); and, whatever they tolerate, from nodes that are set aside, since what
// is there is not known.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kCordoned{.text = "node(s) were unschedulable",
                               .detail = [](const PodClass&, const NodeView&, const Reason&) {
                                 return std::string("spec.unschedulable is true; kubectl uncordon lifts it");
                               }};

constexpr ReasonInfo kSetAside{
    .text = "node(s) told of devices that cannot be",
    .detail = [](const PodClass&, const NodeView& node, const Reason&) { return node.node().set_aside; }};

void node_unschedulable(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (!node.node().set_aside.empty()) return reasons.push_back({&kSetAside, {}, 0});
  if (!node.node().unschedulable) return;
  const model::Taint taint{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule};
  if (!model::tolerates(pod.spec->tolerations, taint)) reasons.push_back({&kCordoned, {}, 0});
}

}  // namespace

extern const PolicyInfo kNodeUnschedulable = object_filter_policy(
    "node-unschedulable", "turns pods away from nodes that are cordoned or set aside", 20, &node_unschedulable);

}  // namespace berth::policy
