#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

using model::LabelSelector;
using model::NodeSelectorOperator;
using model::NodeSelectorRequirement;

constexpr std::string_view kNodeOperators =
    "not a valid selector operator; use In, NotIn, Exists, DoesNotExist, Gt or Lt";
constexpr std::string_view kLabelOperators = "not a valid selector operator; use In, NotIn, Exists or DoesNotExist";

void read_operator(const Reader& reader, std::initializer_list<NodeSelectorOperator> allowed, std::string_view why,
                   NodeSelectorRequirement& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  for (const auto op : allowed) {
    if (to_string(op) != text) continue;
    out.op = op;
    return;
  }
  reader.problem(invalid_value(text, why));
}

void read_node_operator(const Reader& reader, NodeSelectorRequirement& out) {
  read_operator(reader,
                {NodeSelectorOperator::kIn, NodeSelectorOperator::kNotIn, NodeSelectorOperator::kExists,
                 NodeSelectorOperator::kDoesNotExist, NodeSelectorOperator::kGt, NodeSelectorOperator::kLt},
                kNodeOperators, out);
}

void read_label_operator(const Reader& reader, NodeSelectorRequirement& out) {
  read_operator(reader,
                {NodeSelectorOperator::kIn, NodeSelectorOperator::kNotIn, NodeSelectorOperator::kExists,
                 NodeSelectorOperator::kDoesNotExist},
                kLabelOperators, out);
}

constexpr Field<NodeSelectorRequirement> kNodeRequirement[] = {
    {"key", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.key); }},
    {"operator", &read_node_operator},
    {"values", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.values); }},
};
constexpr Field<NodeSelectorRequirement> kLabelRequirement[] = {
    {"key", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.key); }},
    {"operator", &read_label_operator},
    {"values", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.values); }},
};

void check_values(const Reader& reader, const NodeSelectorRequirement& requirement) {
  switch (requirement.op) {
    case NodeSelectorOperator::kIn:
    case NodeSelectorOperator::kNotIn:
      if (requirement.values.empty())
        reader.problem_at("values", required_value("must be specified when `operator` is 'In' or 'NotIn'"));
      return;
    case NodeSelectorOperator::kExists:
    case NodeSelectorOperator::kDoesNotExist:
      if (!requirement.values.empty())
        reader.problem_at("values", "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      return;
    case NodeSelectorOperator::kGt:
    case NodeSelectorOperator::kLt:
      if (requirement.values.size() != 1)
        reader.problem_at("values", required_value("must be specified single value when `operator` is 'Lt' or 'Gt'"));
      return;
  }
}

// A requirement on a label; `operators` is the sentence for one without an operator.
template <size_t N>
void read_requirement(const Reader& reader, const Field<NodeSelectorRequirement> (&fields)[N],
                      std::string_view operators, NodeSelectorRequirement& out) {
  read_object(reader, fields, out);
  if (!reader.strict()) return;
  const bool op = reader.sound("operator");
  if (!has_member(reader, "operator")) {
    if (op) reader.problem_at("operator", invalid_value("", operators));
  } else if (op && reader.sound("values")) {
    check_values(reader, out);
  }
  const std::string why = reader.sound("key") ? check_qualified_name(out.key) : "";
  if (!why.empty()) reader.problem_at("key", invalid_value(out.key, why));
}

void read_label_expression(const Reader& reader, NodeSelectorRequirement& out) {
  read_requirement(reader, kLabelRequirement, kLabelOperators, out);
  if (reader.strict() && reader.sound("values")) check_label_values(reader, out);
}

void read_match_labels(const Reader& reader, LabelSelector& out) {
  model::Labels labels;
  read_label_map(reader, labels);
  std::vector<NodeSelectorRequirement> requirements;
  for (const auto& [key, value] : labels) requirements.push_back({key, NodeSelectorOperator::kIn, {value}});
  out.requirements.insert(out.requirements.begin(), requirements.begin(), requirements.end());
}

void read_match_expressions(const Reader& reader, LabelSelector& out) {
  std::vector<NodeSelectorRequirement> requirements;
  read_list(reader, requirements, &read_label_expression);
  out.requirements.insert(out.requirements.end(), requirements.begin(), requirements.end());
}

constexpr Field<LabelSelector> kLabelSelector[] = {
    {"matchLabels", &read_match_labels},
    {"matchExpressions", &read_match_expressions},
};

}  // namespace

void read_label_map(const Reader& reader, model::Labels& out) {
  reader.read(out);
  if (!reader.strict()) return;
  for (const auto& [key, value] : out) {
    std::string why = check_qualified_name(key);
    if (!why.empty()) reader.problem_at(key, invalid_value(key, why));
    why = check_label_value(value);
    if (!why.empty()) reader.problem_at(key, invalid_value(value, why));
  }
}

void check_label_values(const Reader& reader, const NodeSelectorRequirement& requirement) {
  for (size_t i = 0; i < requirement.values.size(); ++i) {
    const std::string why = check_label_value(requirement.values[i]);
    if (!why.empty()) reader.problem_at("values", i, invalid_value(requirement.values[i], why));
  }
}

void read_node_expression(const Reader& reader, NodeSelectorRequirement& out) {
  read_requirement(reader, kNodeRequirement, kNodeOperators, out);
}

void read_field_requirement(const Reader& reader, NodeSelectorRequirement& out) {
  read_object(reader, kNodeRequirement, out);
  if (!reader.strict()) return;
  if (out.key != "metadata.name" && reader.sound("key"))
    reader.problem_at("key", invalid_value(out.key, "not a valid field selector key; the only one is metadata.name"));
  if (!reader.sound("operator")) return;
  if (out.op != NodeSelectorOperator::kIn && out.op != NodeSelectorOperator::kNotIn)
    reader.problem_at("operator",
                      invalid_value(to_string(out.op), "not a valid selector operator; matchFields takes In or NotIn"));
  else if (!has_member(reader, "operator"))
    reader.problem_at("operator", invalid_value("", "not a valid selector operator; matchFields takes In or NotIn"));
  else if (out.values.size() != 1 && reader.sound("values"))
    reader.problem_at(
        "values", required_value("must be only one value when `operator` is 'In' or 'NotIn' for node field selector"));
}

void read_label_selector(const Reader& reader, LabelSelector& out) { read_object(reader, kLabelSelector, out); }

}  // namespace berth::api
