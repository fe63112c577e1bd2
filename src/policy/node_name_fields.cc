// Keeps a pod whose every required term names nodes by matchFields on metadata.name off all other nodes.
// kube-scheduler does this before its filters, so that such nodes give this reason and no other.
// Source: NodeAffinity's PreFilter in kube-scheduler 1.35.
#include <algorithm>

#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kOtherNode{.text = "node(s) didn't satisfy plugin(s) [NodeAffinity]",
                                .detail = [](const PodClass& pod, const NodeView&, const Reason&) {
                                  std::string out = "the pod asks for metadata.name in [";
                                  for (const std::string& name : pod.required_node_names) out += name + " ";
                                  if (out.back() == ' ') out.pop_back();
                                  return out + "]";
                                }};

void node_name_fields(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (!pod.restricts_node_names) return;
  const auto& names = pod.required_node_names;
  if (!std::binary_search(names.begin(), names.end(), node.node().name)) reasons.push_back({&kOtherNode, {}, 0});
}

// Each term names hosts that its own other names rule out. The words are kube-scheduler's; they mean node affinity.
std::string contradiction(const PodClass& pod, const State&) {
  const auto& terms = pod.spec->affinity.required;
  const bool none = pod.restricts_node_names && pod.required_node_names.empty() && !terms->empty();
  return none ? "pod affinity terms conflict" : "";
}

}  // namespace

extern const PolicyInfo kNodeNameFields =
    object_filter_policy("node-name-fields", "keeps pods that name their nodes by matchFields off all others", 10,
                         &node_name_fields, &contradiction);

}  // namespace berth::policy
