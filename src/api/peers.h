// Inter-pod affinity and topology spread, under the API's own names. src/bridge resolves what depends on the pod itself
// and makes model::Peers of them. Source: k8s.io/api/core/v1 (1.35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/peers.h"

namespace berth::api {

struct PodAffinityTerm {
  std::optional<model::LabelSelector> label_selector;  // absent: no pod; without requirements: every pod
  std::vector<std::string> namespaces;
  std::optional<model::LabelSelector> namespace_selector;
  std::string topology_key;
  std::vector<std::string> match_label_keys;
  std::vector<std::string> mismatch_label_keys;
  friend bool operator==(const PodAffinityTerm&, const PodAffinityTerm&) = default;
};

struct WeightedPodAffinityTerm {
  int32_t weight = 0;  // 1 to 100
  PodAffinityTerm term;
  friend bool operator==(const WeightedPodAffinityTerm&, const WeightedPodAffinityTerm&) = default;
};

// podAffinity or podAntiAffinity.
struct PodAffinity {
  std::vector<PodAffinityTerm> required;
  std::vector<WeightedPodAffinityTerm> preferred;

  bool empty() const { return required.empty() && preferred.empty(); }
  friend bool operator==(const PodAffinity&, const PodAffinity&) = default;
};

struct TopologySpreadConstraint {
  int32_t max_skew = 0;
  std::string topology_key;
  bool schedule_anyway = false;                        // whenUnsatisfiable: ScheduleAnyway
  std::optional<model::LabelSelector> label_selector;  // absent: no pod
  std::optional<int32_t> min_domains;
  bool honors_affinity = true;  // nodeAffinityPolicy, by default Honor
  bool honors_taints = false;   // nodeTaintsPolicy, by default Ignore
  std::vector<std::string> match_label_keys;
  friend bool operator==(const TopologySpreadConstraint&, const TopologySpreadConstraint&) = default;
};

}  // namespace berth::api
