// Node selectors and node affinity: which nodes a pod asks for.
//
// Terms are ORed, requirements of a term ANDed; a term without any requirement matches no node.
// Source: k8s.io/api/core/v1 (NodeSelectorTerm), k8s.io/component-helpers/scheduling/corev1/nodeaffinity.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/labels.h"

namespace berth::model {

enum class NodeSelectorOperator : uint8_t { kIn, kNotIn, kExists, kDoesNotExist, kGt, kLt };

struct NodeSelectorRequirement {
  std::string key;
  NodeSelectorOperator op = NodeSelectorOperator::kIn;
  std::vector<std::string> values;

  // Against the label's value, null when the node lacks the label. Gt and Lt need both sides to be integers.
  bool matches(const std::string* value) const;
  friend bool operator==(const NodeSelectorRequirement&, const NodeSelectorRequirement&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const NodeSelectorRequirement& r) {
    return H::combine(std::move(state), r.key, r.op, r.values);
  }
};

struct NodeSelectorTerm {
  std::vector<NodeSelectorRequirement> match_expressions;  // on labels
  std::vector<NodeSelectorRequirement> match_fields;       // on metadata.name, the only field that the API allows

  bool matches(const Labels& labels, const std::string& node_name) const;
  bool matches(const Labels& labels) const;  // whatever the node is called
  friend bool operator==(const NodeSelectorTerm&, const NodeSelectorTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const NodeSelectorTerm& t) {
    return H::combine(std::move(state), t.match_expressions, t.match_fields);
  }
};

struct PreferredSchedulingTerm {
  int32_t weight = 1;  // 1 to 100
  NodeSelectorTerm preference;
  friend bool operator==(const PreferredSchedulingTerm&, const PreferredSchedulingTerm&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const PreferredSchedulingTerm& t) {
    return H::combine(std::move(state), t.weight, t.preference);
  }
};

struct NodeAffinity {
  std::optional<std::vector<NodeSelectorTerm>> required;  // absent: every node; present and empty: none
  std::vector<PreferredSchedulingTerm> preferred;
  friend bool operator==(const NodeAffinity&, const NodeAffinity&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const NodeAffinity& a) {
    if (a.required) state = H::combine(std::move(state), *a.required);
    return H::combine(std::move(state), a.required.has_value(), a.preferred);
  }
};

// "In", "NotIn", …
std::string_view to_string(NodeSelectorOperator op);
// "gpu-type In [a100 h100]", for explanations.
std::string to_string(const NodeSelectorRequirement& requirement);

}  // namespace berth::model
