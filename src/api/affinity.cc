#include <fmt/format.h>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

using model::NodeAffinity;
using model::NodeSelectorRequirement;
using model::NodeSelectorTerm;
using model::PreferredSchedulingTerm;
using model::Taint;
using model::TaintEffect;
using model::Toleration;
using model::TolerationOperator;

void read_required_expression(const Reader& reader, NodeSelectorRequirement& out) {
  read_node_expression(reader, out);
  if (reader.strict()) check_label_values(reader, out);
}

constexpr Field<NodeSelectorTerm> kRequiredTerm[] = {
    {"matchExpressions",
     [](const Reader& r, NodeSelectorTerm& t) { read_list(r, t.match_expressions, &read_required_expression); }},
    {"matchFields",
     [](const Reader& r, NodeSelectorTerm& t) { read_list(r, t.match_fields, &read_field_requirement); }},
};
constexpr Field<NodeSelectorTerm> kPreferredTerm[] = {
    {"matchExpressions",
     [](const Reader& r, NodeSelectorTerm& t) { read_list(r, t.match_expressions, &read_node_expression); }},
    {"matchFields",
     [](const Reader& r, NodeSelectorTerm& t) { read_list(r, t.match_fields, &read_field_requirement); }},
};

void read_required_term(const Reader& reader, NodeSelectorTerm& out) { read_object(reader, kRequiredTerm, out); }

constexpr Field<std::vector<NodeSelectorTerm>> kNodeSelector[] = {
    {"nodeSelectorTerms",
     [](const Reader& r, std::vector<NodeSelectorTerm>& t) { read_list(r, t, &read_required_term); }},
};

void read_required(const Reader& reader, NodeAffinity& out) { read_node_selector(reader, out.required.emplace()); }

constexpr Field<PreferredSchedulingTerm> kPreferred[] = {
    {"weight", [](const Reader& r, PreferredSchedulingTerm& p) { r.read(p.weight); }},
    {"preference", [](const Reader& r, PreferredSchedulingTerm& p) { read_object(r, kPreferredTerm, p.preference); }},
};

void read_preferred(const Reader& reader, PreferredSchedulingTerm& out) {
  out.weight = 0;
  read_object(reader, kPreferred, out);
  if (reader.strict() && (out.weight < 1 || out.weight > 100) && reader.sound("weight"))
    reader.problem_at("weight", invalid_value(std::to_string(out.weight), "must be in the range 1-100"));
}

constexpr Field<NodeAffinity> kNodeAffinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution", &read_required},
    {"preferredDuringSchedulingIgnoredDuringExecution",
     [](const Reader& r, NodeAffinity& a) { read_list(r, a.preferred, &read_preferred); }},
};

bool read_effect_text(const Reader& reader, TaintEffect& out) {
  std::string_view text;
  if (!reader.read(text)) return false;
  for (const auto effect : {TaintEffect::kNoSchedule, TaintEffect::kPreferNoSchedule, TaintEffect::kNoExecute}) {
    if (to_string(effect) == text) {
      out = effect;
      return true;
    }
  }
  reader.problem(text.empty() ? required_value("use NoSchedule, PreferNoSchedule or NoExecute")
                              : unsupported_value(text, {"NoSchedule", "PreferNoSchedule", "NoExecute"}));
  return false;
}

void read_toleration_effect(const Reader& reader, Toleration& out) {
  std::string_view text;
  if (reader.type() == JsonType::kString && reader.read(text) && text.empty()) return;
  out.any_effect = !read_effect_text(reader, out.effect);
}

void read_toleration_operator(const Reader& reader, Toleration& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  if (text.empty() || text == "Equal") out.op = TolerationOperator::kEqual;
  else if (text == "Exists") out.op = TolerationOperator::kExists;
  else if (text == "Lt") out.op = TolerationOperator::kLt;
  else if (text == "Gt") out.op = TolerationOperator::kGt;
  else return reader.problem(unsupported_value(text, {"Equal", "Exists"}));
  const bool compares = out.op == TolerationOperator::kLt || out.op == TolerationOperator::kGt;
  if (compares && reader.strict())
    reader.problem(unsupported_value(text, {"Equal", "Exists"}) +
                   "; Lt and Gt need the feature gate TaintTolerationComparisonOperators, which is off by default");
}

constexpr Field<Toleration> kToleration[] = {
    {"key", [](const Reader& r, Toleration& t) { r.read(t.key); }},
    {"operator", &read_toleration_operator},
    {"value", [](const Reader& r, Toleration& t) { r.read(t.value); }},
    {"effect", &read_toleration_effect},
    {"tolerationSeconds",
     [](const Reader& r, Toleration&) {
       int64_t seconds = 0;
       r.read(seconds);
     }},
};

void check_toleration(const Reader& reader, const Toleration& toleration) {
  const bool key = reader.sound("key"), op = reader.sound("operator");
  if (!toleration.key.empty()) {
    const std::string why = check_qualified_name(toleration.key);
    if (!why.empty()) reader.problem_at("key", invalid_value(toleration.key, why));
  } else if (key && op && toleration.op != TolerationOperator::kExists) {
    return reader.problem_at(
        "operator", "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
  }
  if (has_member(reader, "tolerationSeconds") && reader.sound("effect") &&
      (toleration.any_effect || toleration.effect != TaintEffect::kNoExecute))
    reader.problem_at("effect", "effect must be 'NoExecute' when `tolerationSeconds` is set");
  if (!op || !reader.sound("value")) return;
  switch (toleration.op) {
    case TolerationOperator::kExists:
      if (!toleration.value.empty())
        reader.problem_at("value", invalid_value(toleration.value, "value must be empty when `operator` is 'Exists'"));
      return;
    case TolerationOperator::kEqual: {
      const std::string why = check_label_value(toleration.value);
      if (!why.empty()) reader.problem_at("value", invalid_value(toleration.value, why));
      return;
    }
    case TolerationOperator::kLt:
    case TolerationOperator::kGt: return;
  }
}

constexpr Field<Taint> kTaint[] = {
    {"key", [](const Reader& r, Taint& t) { r.read(t.key); }},
    {"value", [](const Reader& r, Taint& t) { r.read(t.value); }},
    {"effect", [](const Reader& r, Taint& t) { read_effect_text(r, t.effect); }},
    {"timeAdded"},
};

}  // namespace

void read_node_selector(const Reader& reader, std::vector<model::NodeSelectorTerm>& out) {
  read_object(reader, kNodeSelector, out);
  if (reader.strict() && out.empty() && reader.sound("nodeSelectorTerms"))
    reader.problem_at("nodeSelectorTerms", required_value("must have at least one node selector term"));
}

void read_node_affinity(const Reader& reader, model::NodeAffinity& out) { read_object(reader, kNodeAffinity, out); }

void read_toleration(const Reader& reader, model::Toleration& out) {
  read_object(reader, kToleration, out);
  if (reader.strict()) check_toleration(reader, out);
}

void read_taint(const Reader& reader, model::Taint& out) {
  read_object(reader, kTaint, out);
  if (!reader.strict()) return;
  std::string why = reader.sound("key") ? check_qualified_name(out.key) : "";
  if (!why.empty()) reader.problem_at("key", invalid_value(out.key, why));
  why = check_label_value(out.value);
  if (!why.empty()) reader.problem_at("value", invalid_value(out.value, why));
  if (!has_member(reader, "effect") && reader.sound("effect"))
    reader.problem_at("effect", required_value("use NoSchedule, PreferNoSchedule or NoExecute"));
}

void check_taints(const Reader& spec, const std::vector<model::Taint>& taints) {
  for (size_t i = 0; i < taints.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (taints[i].key == taints[j].key && taints[i].effect == taints[j].effect) {
        spec.problem_at("taints", i,
                        duplicate_value(to_string(taints[i])) + " (taints must be unique by key and effect pair)");
        break;
      }
}

}  // namespace berth::api
