#include "workloads/daemonset/daemonset.h"

#include <algorithm>

#include "workloads/template.h"

namespace berth::workloads {
namespace {

using model::NodeSelectorRequirement;
using model::NodeSelectorTerm;
using model::Taint;
using model::TaintEffect;
using model::Toleration;
using model::TolerationOperator;

Toleration tolerate(std::string_view key, TaintEffect effect) {
  return {std::string(key), "", TolerationOperator::kExists, false, effect};
}

void add_tolerations(api::PodSpec& spec) {
  std::vector<Toleration> added = {tolerate("node.kubernetes.io/not-ready", TaintEffect::kNoExecute),
                                   tolerate("node.kubernetes.io/unreachable", TaintEffect::kNoExecute),
                                   tolerate("node.kubernetes.io/disk-pressure", TaintEffect::kNoSchedule),
                                   tolerate("node.kubernetes.io/memory-pressure", TaintEffect::kNoSchedule),
                                   tolerate("node.kubernetes.io/pid-pressure", TaintEffect::kNoSchedule),
                                   tolerate("node.kubernetes.io/unschedulable", TaintEffect::kNoSchedule)};
  if (spec.host_network) added.push_back(tolerate("node.kubernetes.io/network-unavailable", TaintEffect::kNoSchedule));
  for (Toleration& toleration : added)
    if (std::find(spec.tolerations.begin(), spec.tolerations.end(), toleration) == spec.tolerations.end())
      spec.tolerations.push_back(std::move(toleration));
}

bool allowed_on(const api::PodSpec& spec, const api::Node& node) {
  if (!spec.node_name.empty() && spec.node_name != node.metadata.name) return false;
  for (const auto& [key, value] : spec.node_selector) {
    const std::string* label = node.metadata.labels.find(key);
    if (label == nullptr || *label != value) return false;
  }
  if (const auto& required = spec.node_affinity.required;
      required && std::none_of(required->begin(), required->end(), [&](const NodeSelectorTerm& term) {
        return term.matches(node.metadata.labels, node.metadata.name);
      }))
    return false;
  return std::all_of(node.taints.begin(), node.taints.end(), [&](const Taint& taint) {
    return taint.effect == TaintEffect::kPreferNoSchedule || model::tolerates(spec.tolerations, taint);
  });
}

// ReplaceDaemonSetPodNodeNameNodeAffinity: the node's name replaces the match fields of every term.
void pin_to(api::PodSpec& spec, const std::string& node_name) {
  const NodeSelectorRequirement by_name{"metadata.name", model::NodeSelectorOperator::kIn, {node_name}};
  spec.node_affinity.required.emplace(1, NodeSelectorTerm{{}, {by_name}});
}

}  // namespace

std::vector<api::Pod> daemonset_pods(const api::DaemonSet& daemonset, std::span<const api::Node> nodes) {
  api::PodTemplate pod_template = daemonset.pod_template;
  add_tolerations(pod_template.spec);
  std::vector<api::Pod> pods;
  for (const api::Node& node : nodes) {
    if (!allowed_on(pod_template.spec, node)) continue;
    std::string name = std::string(base_name(daemonset.metadata)) + "-" + node.metadata.name;
    api::Pod pod = pod_from_template(pod_template, daemonset.metadata, "apps/v1", "DaemonSet", std::move(name));
    pin_to(pod.spec, node.metadata.name);
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace berth::workloads
