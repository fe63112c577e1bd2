// Keeps a pod to the nodes that its nodeSelector and required node affinity select.
// Source: kube-scheduler's NodeAffinity plugin (filter).
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

std::string failed_requirement(const model::NodeSelectorTerm& term, const NodeView& node) {
  for (const auto& requirement : term.match_expressions) {
    const std::string* value = node.node().labels.find(requirement.key);
    if (requirement.matches(value)) continue;
    return "asks for " + to_string(requirement) + ", " +
           (value == nullptr ? "the node lacks the label" : "the node has '" + *value + "'");
  }
  for (const auto& requirement : term.match_fields)
    if (!requirement.matches(&node.node().name)) return "asks for " + to_string(requirement);
  return "a term without requirements matches no node";
}

std::string detail(const PodClass& pod, const NodeView& node, const Reason&) {
  for (const auto& [key, wanted] : pod.spec->node_selector) {
    const std::string* value = node.node().labels.find(key);
    if (value != nullptr && *value == wanted) continue;
    return "asks for label " + key + "=" + wanted + ", " +
           (value == nullptr ? "the node lacks it" : "the node has '" + *value + "'");
  }
  const auto& required = pod.spec->affinity.required;
  if (!required || required->empty()) return "required node affinity without terms matches no node";
  return failed_requirement(required->front(), node);
}

constexpr ReasonInfo kNoMatch{.text = "node(s) didn't match Pod's node affinity/selector", .detail = &detail};

void node_affinity(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (!selects(pod, node.node())) reasons.push_back({&kNoMatch, {}, 0});
}

}  // namespace

extern const PolicyInfo kNodeAffinity = object_filter_policy(
    "node-affinity", "keeps pods to the nodes that nodeSelector and required affinity select", 40, &node_affinity);

}  // namespace berth::policy
