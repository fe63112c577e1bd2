// Turns pods away from cordoned nodes, unless they tolerate the taint node.kubernetes.io/unschedulable
// (kube-scheduler's NodeUnschedulable plugin); and those that ask for GPUs, whatever they tolerate, from nodes that are
// set aside, since what is there is not known. Others may go there, such as the agent that is to say it anew.
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
  if (!node.node().set_aside.empty() && (pod.requests_gpu || pod.shares_gpu))
    return reasons.push_back({&kSetAside, {}, 0});
  if (!node.node().unschedulable) return;
  const model::Taint taint{"node.kubernetes.io/unschedulable", "", model::TaintEffect::kNoSchedule};
  if (!model::tolerates(pod.spec->tolerations, taint)) reasons.push_back({&kCordoned, {}, 0});
}

}  // namespace

extern const PolicyInfo kNodeUnschedulable = object_filter_policy(
    "node-unschedulable", "turns pods away from cordoned nodes, and those with GPUs from nodes that are set aside", 20,
    &node_unschedulable);

}  // namespace berth::policy
