#include "bridge/peers.h"

#include <algorithm>

namespace berth::bridge {
namespace {

using model::NodeSelectorOperator;

// Adds `key op (the pod's value)` for each key that the pod has. The API server has done so already where it made the
// pod (MatchLabelKeysInPodAffinity, MatchLabelKeysInPodTopologySpreadSelectorMerge).
void merge_keys(const std::vector<std::string>& keys, NodeSelectorOperator op, const model::Labels& labels,
                model::LabelSelector& selector) {
  auto& requirements = selector.requirements;
  for (const std::string& key : keys) {
    const std::string* value = labels.find(key);
    if (value == nullptr) continue;
    model::NodeSelectorRequirement own{key, op, {*value}};
    if (std::find(requirements.begin(), requirements.end(), own) == requirements.end())
      requirements.push_back(std::move(own));
  }
}

model::LabelSelector selector_of(const std::optional<model::LabelSelector>& selector) {
  if (selector) return *selector;
  model::LabelSelector nothing;
  nothing.selects_nothing = true;
  return nothing;
}

model::PodAffinityTerm term_of(const api::PodAffinityTerm& term, const api::ObjectMeta& pod) {
  model::PodAffinityTerm out;
  out.topology_key = term.topology_key;
  model::PeerSelector& peers = out.peers;
  peers.namespaces = term.namespaces;
  if (term.namespaces.empty() && !term.namespace_selector) peers.namespaces = {pod.namespace_name};
  std::sort(peers.namespaces.begin(), peers.namespaces.end());
  peers.namespaces.erase(std::unique(peers.namespaces.begin(), peers.namespaces.end()), peers.namespaces.end());
  peers.namespace_selector = term.namespace_selector;
  peers.pods = selector_of(term.label_selector);
  merge_keys(term.match_label_keys, NodeSelectorOperator::kIn, pod.labels, peers.pods);
  merge_keys(term.mismatch_label_keys, NodeSelectorOperator::kNotIn, pod.labels, peers.pods);
  return out;
}

model::TopologySpreadConstraint constraint_of(const api::TopologySpreadConstraint& constraint,
                                              const api::ObjectMeta& pod) {
  model::TopologySpreadConstraint out;
  out.max_skew = constraint.max_skew;
  out.topology_key = constraint.topology_key;
  out.required = !constraint.schedule_anyway;
  out.min_domains = constraint.min_domains.value_or(1);
  out.honors_affinity = constraint.honors_affinity;
  out.honors_taints = constraint.honors_taints;
  out.peers.namespaces = {pod.namespace_name};
  out.peers.skips_terminating = true;
  out.peers.pods = selector_of(constraint.label_selector);
  merge_keys(constraint.match_label_keys, NodeSelectorOperator::kIn, pod.labels, out.peers.pods);
  // kube-scheduler counts no pod for a selector without requirements, which elsewhere selects every pod
  // (countPodsMatchSelector). It still lets the pod itself match, but 1 alone never exceeds a maxSkew.
  if (out.peers.pods.requirements.empty()) out.peers.pods.selects_nothing = true;
  return out;
}

// What tells the pods of one controller from others: the hash that a Deployment gives them, else all labels but those
// that a StatefulSet gives each pod.
model::LabelSelector siblings_of(const api::ObjectMeta& pod) {
  constexpr std::string_view kOwn[] = {"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
                                       "controller-revision-hash"};
  const std::string hash = "pod-template-hash";
  model::LabelSelector out;
  for (const auto& [key, value] : pod.labels)
    if ((key == hash || !pod.labels.contains(hash)) &&
        std::find(std::begin(kOwn), std::end(kOwn), key) == std::end(kOwn))
      out.requirements.push_back({key, NodeSelectorOperator::kIn, {value}});
  return out;
}

// kube-scheduler's system default constraint over zones (KEP-1258), for the pods of a controller that keeps replicas.
std::optional<model::TopologySpreadConstraint> default_spread(const api::ObjectMeta& pod) {
  constexpr std::string_view kReplicators[] = {"ReplicaSet", "StatefulSet", "ReplicationController", "Deployment"};
  const api::OwnerReference* owner = pod.controller();
  if (owner == nullptr ||
      std::find(std::begin(kReplicators), std::end(kReplicators), owner->kind) == std::end(kReplicators))
    return std::nullopt;
  model::TopologySpreadConstraint out;
  out.max_skew = 5;
  out.topology_key = "topology.kubernetes.io/zone";
  out.required = false;
  out.by_default = true;
  out.peers.namespaces = {pod.namespace_name};
  out.peers.skips_terminating = true;
  out.peers.pods = siblings_of(pod);
  if (out.peers.pods.requirements.empty()) return std::nullopt;
  return out;
}

}  // namespace

model::Peers peers_of(const api::Pod& pod) {
  model::Peers out;
  const api::PodAffinity& affinity = pod.spec.pod_affinity;
  const api::PodAffinity& anti_affinity = pod.spec.pod_anti_affinity;
  for (const api::PodAffinityTerm& term : affinity.required) out.affinity.push_back(term_of(term, pod.metadata));
  for (const api::PodAffinityTerm& term : anti_affinity.required)
    out.anti_affinity.push_back(term_of(term, pod.metadata));
  for (const api::WeightedPodAffinityTerm& term : affinity.preferred)
    out.preferred.push_back({term.weight, term_of(term.term, pod.metadata)});
  for (const api::WeightedPodAffinityTerm& term : anti_affinity.preferred)
    out.preferred.push_back({-term.weight, term_of(term.term, pod.metadata)});
  for (const api::TopologySpreadConstraint& constraint : pod.spec.topology_spread)
    out.spread.push_back(constraint_of(constraint, pod.metadata));
  if (out.spread.empty())
    if (auto spread = default_spread(pod.metadata)) out.spread.push_back(*std::move(spread));
  return out;
}

}  // namespace berth::bridge
