#include "model/node_affinity.h"

#include <algorithm>
#include <charconv>

namespace berth::model {
namespace {

std::optional<int64_t> read_int(const std::string& text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return value;
}

}  // namespace

bool NodeSelectorRequirement::matches(const std::string* value) const {
  const auto listed = [&] { return std::find(values.begin(), values.end(), *value) != values.end(); };
  switch (op) {
    case NodeSelectorOperator::kIn: return value != nullptr && listed();
    case NodeSelectorOperator::kNotIn: return value == nullptr || !listed();
    case NodeSelectorOperator::kExists: return value != nullptr;
    case NodeSelectorOperator::kDoesNotExist: return value == nullptr;
    case NodeSelectorOperator::kGt:
    case NodeSelectorOperator::kLt: {
      if (value == nullptr || values.size() != 1) return false;
      const auto actual = read_int(*value);
      const auto limit = read_int(values[0]);
      if (!actual || !limit) return false;
      return op == NodeSelectorOperator::kGt ? *actual > *limit : *actual < *limit;
    }
  }
  return false;
}

bool NodeSelectorTerm::matches(const Labels& labels) const {
  if (match_expressions.empty() && match_fields.empty()) return false;
  return std::all_of(match_expressions.begin(), match_expressions.end(),
                     [&](const auto& requirement) { return requirement.matches(labels.find(requirement.key)); });
}

bool NodeSelectorTerm::matches(const Labels& labels, const std::string& node_name) const {
  if (!matches(labels)) return false;
  for (const auto& requirement : match_fields)
    if (!requirement.matches(requirement.key == "metadata.name" ? &node_name : nullptr)) return false;
  return true;
}

std::string_view to_string(NodeSelectorOperator op) {
  switch (op) {
    case NodeSelectorOperator::kIn: return "In";
    case NodeSelectorOperator::kNotIn: return "NotIn";
    case NodeSelectorOperator::kExists: return "Exists";
    case NodeSelectorOperator::kDoesNotExist: return "DoesNotExist";
    case NodeSelectorOperator::kGt: return "Gt";
    case NodeSelectorOperator::kLt: return "Lt";
  }
  return "";
}

std::string to_string(const NodeSelectorRequirement& requirement) {
  std::string out = requirement.key + " " + std::string(to_string(requirement.op));
  if (requirement.values.empty()) return out;
  out += " [";
  for (size_t i = 0; i < requirement.values.size(); ++i) out += (i == 0 ? "" : " ") + requirement.values[i];
  return out + "]";
}

}  // namespace berth::model
