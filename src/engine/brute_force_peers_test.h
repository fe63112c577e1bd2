// Inter-pod affinity, anti-affinity and topology spread, pod by pod and node by node, as the Kubernetes API describes
// them; the part of BruteForce (engine/brute_force_test.h) that looks at other pods. For tests only.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "model/node.h"
#include "model/pod.h"

namespace berth::engine::testing {

class BruteForcePeers {
 public:
  struct Place {
    model::Node node;
    std::vector<model::Pod> pods;
  };
  using Places = std::map<std::string, Place>;
  using NamespaceLabels = std::function<model::Labels(const std::string&)>;
  // Whether required node affinity and selector, or untolerated taints, rule the node out for a spread constraint.
  using Excluded =
      std::function<bool(const model::TopologySpreadConstraint&, const model::SchedulingSpec&, const model::Node&)>;

  BruteForcePeers(const Places& places, NamespaceLabels labels, Excluded excluded)
      : places_(places), namespace_labels_(std::move(labels)), excluded_(std::move(excluded)) {}

  // kube-scheduler's words, or nothing.
  std::string why_not(const model::Pod& pod, const model::Node& node) const {
    for (const model::TopologySpreadConstraint& rule : pod.spec->peers.spread) {
      if (!rule.required) continue;
      const std::string* value = node.labels.find(rule.topology_key);
      if (value == nullptr) return "node(s) didn't match pod topology spread constraints (missing required label)";
      auto domains = count_domains(pod, rule);
      int64_t fewest = INT64_MAX;
      for (const auto& [domain, count] : domains) fewest = std::min(fewest, count);
      if (domains.empty() || static_cast<int>(domains.size()) < rule.min_domains) fewest = 0;
      if (domains[*value] + (sees(rule.peers, pod) ? 1 : 0) - fewest > rule.max_skew)
        return "node(s) didn't match pod topology spread constraints";
    }
    if (!near_its_friends(pod, node)) return "node(s) didn't match pod affinity rules";
    for (const model::PodAffinityTerm& term : pod.spec->peers.anti_affinity)
      if (count_around(node, term.topology_key, [&](const model::Pod& other) { return sees(term.peers, other); }) > 0)
        return "node(s) didn't match pod anti-affinity rules";
    const int64_t objections = over_all([&](const model::Pod& other, const model::Node& on) {
      return std::count_if(other.spec->peers.anti_affinity.begin(), other.spec->peers.anti_affinity.end(),
                           [&](const auto& t) { return sees(t.peers, pod) && together(node, on, t.topology_key); });
    });
    return objections > 0 ? "node(s) didn't satisfy existing pods anti-affinity rules" : "";
  }

  // Sum of the preferences of the pod and of those that run: raw, to be normalised.
  int64_t affinity_score(const model::Pod& pod, const model::Node& node) const {
    return over_all([&](const model::Pod& other, const model::Node& on) {
      int64_t sum = 0;
      for (const auto& [weight, term] : pod.spec->peers.preferred)
        if (sees(term.peers, other) && together(node, on, term.topology_key)) sum += weight;
      for (const auto& [weight, term] : other.spec->peers.preferred)
        if (sees(term.peers, pod) && together(node, on, term.topology_key)) sum += weight;
      for (const model::PodAffinityTerm& term : other.spec->peers.affinity)
        if (sees(term.peers, pod) && together(node, on, term.topology_key)) sum += 1;
      return sum;
    });
  }

  // Minus the pods in the node's domains of preferred constraints; none where a label is missing or nothing is asked.
  // A constraint by default is of no concern to a pod that packs, and asks for no label.
  std::optional<int64_t> spread_score(const model::Pod& pod, const model::Node& node) const {
    const bool packs =
        pod.spec->placement == model::Placement::kPack ||
        (pod.spec->placement == model::Placement::kDefault && pod.spec->requests.get("nvidia.com/gpu") > 0);
    std::optional<int64_t> out;
    for (const model::TopologySpreadConstraint& rule : pod.spec->peers.spread) {
      if (rule.required || (rule.by_default && packs)) continue;
      const std::string* value = node.labels.find(rule.topology_key);
      if (value == nullptr && !rule.by_default) return std::nullopt;
      out = out.value_or(0);
      if (value == nullptr) continue;
      auto domains = count_domains(pod, rule);
      const auto weight = std::bit_width(domains.size() + 1);
      out = *out - domains[*value] * static_cast<int64_t>(weight);
    }
    return out;
  }

  bool sees(const model::PeerSelector& selector, const model::Pod& pod) const {
    if (selector.skips_terminating && pod.terminating) return false;
    const bool named = std::count(selector.namespaces.begin(), selector.namespaces.end(), pod.namespace_name) > 0;
    if (!named &&
        !(selector.namespace_selector && selector.namespace_selector->matches(namespace_labels_(pod.namespace_name))))
      return false;
    return selector.pods.matches(pod.labels ? *pod.labels : model::Labels());
  }
  static bool together(const model::Node& a, const model::Node& b, const std::string& key) {
    const std::string *x = a.labels.find(key), *y = b.labels.find(key);
    return x != nullptr && y != nullptr && *x == *y;
  }

 private:
  template <typename Count>
  int64_t over_all(Count count) const {
    int64_t sum = 0;
    for (const auto& [name, place] : places_)
      for (const model::Pod& other : place.pods) sum += count(other, place.node);
    return sum;
  }
  template <typename Matches>
  int64_t count_around(const model::Node& node, const std::string& key, Matches matches) const {
    return over_all([&](const model::Pod& other, const model::Node& on) {
      return int64_t{matches(other) && together(node, on, key)};
    });
  }
  bool near_its_friends(const model::Pod& pod, const model::Node& node) const {
    const auto& terms = pod.spec->peers.affinity;
    const auto friends = [&](const model::Pod& other) {
      return std::all_of(terms.begin(), terms.end(), [&](const auto& term) { return sees(term.peers, other); });
    };
    bool all = true, anywhere = false;
    for (const model::PodAffinityTerm& term : terms) {
      if (!node.labels.contains(term.topology_key)) return false;
      all &= count_around(node, term.topology_key, friends) > 0;
      for (const auto& [name, place] : places_)
        anywhere |=
            place.node.labels.contains(term.topology_key) && std::any_of(place.pods.begin(), place.pods.end(), friends);
    }
    return all || (!anywhere && friends(pod));
  }
  // Matching pods by domain, over the nodes that count.
  std::map<std::string, int64_t> count_domains(const model::Pod& pod,
                                               const model::TopologySpreadConstraint& rule) const {
    std::map<std::string, int64_t> out;
    for (const auto& [name, place] : places_) {
      bool counts = !excluded_(rule, *pod.spec, place.node);
      for (const model::TopologySpreadConstraint& other : pod.spec->peers.spread)
        counts &= other.required != rule.required || place.node.labels.contains(other.topology_key);
      if (!counts) continue;
      int64_t& sum = out[*place.node.labels.find(rule.topology_key)];
      if (rule.peers.pods.selects_nothing || rule.peers.pods.requirements.empty()) continue;
      for (const model::Pod& other : place.pods) sum += sees(rule.peers, other) ? 1 : 0;
    }
    return out;
  }

  const Places& places_;
  NamespaceLabels namespace_labels_;
  Excluded excluded_;
};

}  // namespace berth::engine::testing
