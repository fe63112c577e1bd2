// Turns pods away from nodes with a NoSchedule or NoExecute taint that they do not tolerate.
// Source: kube-scheduler's TaintToleration plugin (filter).
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kUntolerated{.text = "node(s) had untolerated taint(s)",
                                  .detail = [](const PodClass&, const NodeView& node, const Reason& reason) {
                                    return "taint " + model::to_string(node.node().taints.at(reason.index));
                                  }};

void taint_toleration(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  const auto& taints = node.node().taints;
  const size_t first = model::first_untolerated(taints, pod.spec->tolerations);
  if (first < taints.size()) reasons.push_back({&kUntolerated, {}, static_cast<uint32_t>(first)});
}

}  // namespace

extern const PolicyInfo kTaintToleration = object_filter_policy(
    "taint-toleration", "turns pods away from nodes with taints they do not tolerate", 30, &taint_toleration);

}  // namespace berth::policy
