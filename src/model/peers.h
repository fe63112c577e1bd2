// Peers: what a pod asks of the pods around it: inter-pod affinity, anti-affinity and topology spread.
//
// Everything that depends on the pod itself is resolved by src/bridge: a term without namespaces names the pod's own,
// matchLabelKeys and mismatchLabelKeys are requirements of the selector.
// Source: k8s.io/api/core/v1 (PodAffinityTerm, TopologySpreadConstraint), KEP-895, KEP-3022, KEP-3094, KEP-3243,
// KEP-3633.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/labels.h"
#include "model/node_affinity.h"

namespace berth::model {

// metav1.LabelSelector; its operators are In, NotIn, Exists and DoesNotExist.
struct LabelSelector {
  bool selects_nothing = false;                       // a null selector; without requirements it selects everything
  std::vector<NodeSelectorRequirement> requirements;  // ANDed, matchLabels among them

  bool matches(const Labels& labels) const;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const LabelSelector& s) {
    return H::combine(std::move(state), s.selects_nothing, s.requirements);
  }
};

// A set of pods, by namespace and labels.
struct PeerSelector {
  std::vector<std::string> namespaces;              // sorted; ORed with namespace_selector
  std::optional<LabelSelector> namespace_selector;  // on the labels of the namespace; empty: every namespace
  LabelSelector pods;
  bool skips_terminating = false;  // topology spread does not count pods that are being deleted

  bool matches(const std::string& namespace_name, const Labels& namespace_labels, const Labels& pod_labels,
               bool terminating) const;
  friend bool operator==(const PeerSelector&, const PeerSelector&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const PeerSelector& s) {
    if (s.namespace_selector) state = H::combine(std::move(state), *s.namespace_selector);
    return H::combine(std::move(state), s.namespaces, s.namespace_selector.has_value(), s.pods, s.skips_terminating);
  }
};

struct PodAffinityTerm {
  PeerSelector peers;
  std::string topology_key;
  // The pods that have the term are to gather: while none has a place, domains with room for more of them are better.
  bool gathers = false;
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const PodAffinityTerm& t) {
    return H::combine(std::move(state), t.peers, t.topology_key, t.gathers);
  }
};

struct WeightedPodAffinityTerm {
  int32_t weight = 1;  // 1 to 100; negative for anti-affinity
  PodAffinityTerm term;
  friend bool operator==(const WeightedPodAffinityTerm&, const WeightedPodAffinityTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const WeightedPodAffinityTerm& t) {
    return H::combine(std::move(state), t.weight, t.term);
  }
};

struct TopologySpreadConstraint {
  int32_t max_skew = 1;
  std::string topology_key;
  bool required = true;  // DoNotSchedule; else ScheduleAnyway
  PeerSelector peers;    // in the pod's own namespace, terminating pods left out
  int32_t min_domains = 1;
  bool honors_affinity = true;  // nodeAffinityPolicy: Honor
  bool honors_taints = false;   // nodeTaintsPolicy: Honor
  // Nobody asked for it: of no concern to pods that pack, and nodes without the label are as good as any.
  bool by_default = false;
  friend bool operator==(const TopologySpreadConstraint&, const TopologySpreadConstraint&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const TopologySpreadConstraint& c) {
    return H::combine(std::move(state), c.max_skew, c.topology_key, c.required, c.peers, c.min_domains,
                      c.honors_affinity, c.honors_taints, c.by_default);
  }
};

// So many pods of a set with consecutive numbers are to be in one domain of a node label, so many after them in one.
struct SliceLayer {
  std::string key;
  int32_t size = 1;
  friend bool operator==(const SliceLayer&, const SliceLayer&) = default;
};

// "app In [web], tier Exists", for explanations.
std::string to_string(const LabelSelector& selector);

struct Peers {
  std::vector<PodAffinityTerm> affinity;       // required, ANDed
  std::vector<PodAffinityTerm> anti_affinity;  // required, ANDed
  std::vector<WeightedPodAffinityTerm> preferred;
  std::vector<TopologySpreadConstraint> spread;
  std::string problem;  // why no node can serve what else is asked, as a sentence with the way out; empty: none

  // Whether no other pod is looked at.
  bool empty() const { return affinity.empty() && anti_affinity.empty() && preferred.empty() && spread.empty(); }
  friend bool operator==(const Peers&, const Peers&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Peers& p) {
    return H::combine(std::move(state), p.affinity, p.anti_affinity, p.preferred, p.spread, p.problem);
  }
};

}  // namespace berth::model
