#include <fmt/format.h>

#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"
#include "api/peers.h"

namespace berth::api {
namespace {

constexpr int32_t kWeightMax = 100;

void read_selector(const Reader& reader, std::optional<model::LabelSelector>& out) {
  read_label_selector(reader, out.emplace());
}

void check_label_keys(const Reader& owner, std::string_view field, const std::vector<std::string>& keys,
                      const std::optional<model::LabelSelector>& selector) {
  if (keys.empty()) return;
  if (!selector) return owner.problem_at(field, "Forbidden: must not be specified when labelSelector is not set");
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::string why = check_qualified_name(keys[i]);
    if (!why.empty()) owner.problem_at(field, i, invalid_value(keys[i], why));
  }
}

constexpr Field<PodAffinityTerm> kTerm[] = {
    {"labelSelector", [](const Reader& r, PodAffinityTerm& t) { read_selector(r, t.label_selector); }},
    {"namespaces", [](const Reader& r, PodAffinityTerm& t) { r.read(t.namespaces); }},
    {"topologyKey", [](const Reader& r, PodAffinityTerm& t) { r.read(t.topology_key); }},
    {"namespaceSelector", [](const Reader& r, PodAffinityTerm& t) { read_selector(r, t.namespace_selector); }},
    {"matchLabelKeys", [](const Reader& r, PodAffinityTerm& t) { r.read(t.match_label_keys); }},
    {"mismatchLabelKeys", [](const Reader& r, PodAffinityTerm& t) { r.read(t.mismatch_label_keys); }},
};

void check_term(const Reader& reader, const PodAffinityTerm& term) {
  const bool selector = reader.sound("labelSelector");
  const bool keys = reader.sound("matchLabelKeys"), others_read = reader.sound("mismatchLabelKeys");
  const bool namespaces = reader.sound("namespaces");
  for (size_t i = 0; namespaces && i < term.namespaces.size(); ++i) {
    const std::string why = check_dns1123_label(term.namespaces[i]);
    if (!why.empty()) reader.problem_at("namespaces", i, invalid_value(term.namespaces[i], why));
  }
  if (selector && keys) check_label_keys(reader, "matchLabelKeys", term.match_label_keys, term.label_selector);
  if (selector && others_read)
    check_label_keys(reader, "mismatchLabelKeys", term.mismatch_label_keys, term.label_selector);
  for (size_t i = 0; keys && others_read && i < term.match_label_keys.size(); ++i) {
    const auto& others = term.mismatch_label_keys;
    if (std::find(others.begin(), others.end(), term.match_label_keys[i]) != others.end())
      reader.problem_at("matchLabelKeys", i,
                        invalid_value(term.match_label_keys[i], "exists in both matchLabelKeys and mismatchLabelKeys"));
  }
  if (!reader.sound("topologyKey")) return;
  if (term.topology_key.empty())
    return reader.problem_at("topologyKey", required_value("name the node label whose value makes a domain"));
  const std::string why = check_qualified_name(term.topology_key);
  if (!why.empty()) reader.problem_at("topologyKey", invalid_value(term.topology_key, why));
}

void read_term(const Reader& reader, PodAffinityTerm& out) {
  read_object(reader, kTerm, out);
  if (reader.strict()) check_term(reader, out);
}

constexpr Field<WeightedPodAffinityTerm> kWeightedTerm[] = {
    {"weight", [](const Reader& r, WeightedPodAffinityTerm& t) { r.read(t.weight); }},
    {"podAffinityTerm", [](const Reader& r, WeightedPodAffinityTerm& t) { read_term(r, t.term); }},
};

void read_weighted_term(const Reader& reader, WeightedPodAffinityTerm& out) {
  read_object(reader, kWeightedTerm, out);
  if (!reader.strict()) return;
  if ((out.weight < 1 || out.weight > kWeightMax) && reader.sound("weight"))
    reader.problem_at("weight", invalid_value(std::to_string(out.weight), "must be in the range 1-100"));
  if (!has_member(reader, "podAffinityTerm") && reader.sound("podAffinityTerm"))
    reader.problem_at("podAffinityTerm", required_value("which pods, and the topologyKey"));
}

constexpr Field<PodAffinity> kPodAffinity[] = {
    {"requiredDuringSchedulingIgnoredDuringExecution",
     [](const Reader& r, PodAffinity& a) { read_list(r, a.required, &read_term); }},
    {"preferredDuringSchedulingIgnoredDuringExecution",
     [](const Reader& r, PodAffinity& a) { read_list(r, a.preferred, &read_weighted_term); }},
};

// One of two words.
void read_choice_of(const Reader& reader, std::string_view yes, std::string_view no, bool& out) {
  std::string_view text;
  if (!reader.read(text)) return;
  if (text == yes) out = true;
  else if (text == no) out = false;
  else reader.problem(unsupported_value(text, {yes, no}));
}

constexpr Field<TopologySpreadConstraint> kSpreadConstraint[] = {
    {"maxSkew", [](const Reader& r, TopologySpreadConstraint& c) { r.read(c.max_skew); }},
    {"topologyKey", [](const Reader& r, TopologySpreadConstraint& c) { r.read(c.topology_key); }},
    {"whenUnsatisfiable",
     [](const Reader& r, TopologySpreadConstraint& c) {
       read_choice_of(r, "ScheduleAnyway", "DoNotSchedule", c.schedule_anyway);
     }},
    {"labelSelector", [](const Reader& r, TopologySpreadConstraint& c) { read_selector(r, c.label_selector); }},
    {"minDomains", [](const Reader& r, TopologySpreadConstraint& c) { r.read(c.min_domains); }},
    {"nodeAffinityPolicy",
     [](const Reader& r, TopologySpreadConstraint& c) { read_choice_of(r, "Honor", "Ignore", c.honors_affinity); }},
    {"nodeTaintsPolicy",
     [](const Reader& r, TopologySpreadConstraint& c) { read_choice_of(r, "Honor", "Ignore", c.honors_taints); }},
    {"matchLabelKeys", [](const Reader& r, TopologySpreadConstraint& c) { r.read(c.match_label_keys); }},
};

void check_spread_constraint(const Reader& reader, const TopologySpreadConstraint& constraint) {
  const bool when = reader.sound("whenUnsatisfiable"), domains = reader.sound("minDomains");
  if (constraint.max_skew <= 0 && reader.sound("maxSkew"))
    reader.problem_at("maxSkew", invalid_value(std::to_string(constraint.max_skew), "must be greater than zero"));
  if (constraint.topology_key.empty() && reader.sound("topologyKey"))
    reader.problem_at("topologyKey", required_value("name the node label whose value makes a domain"));
  if (!has_member(reader, "whenUnsatisfiable") && when)
    reader.problem_at("whenUnsatisfiable", unsupported_value("", {"DoNotSchedule", "ScheduleAnyway"}));
  if (domains && constraint.min_domains && *constraint.min_domains <= 0)
    reader.problem_at("minDomains",
                      invalid_value(std::to_string(*constraint.min_domains), "must be greater than zero"));
  else if (domains && when && constraint.min_domains && constraint.schedule_anyway)
    reader.problem_at("minDomains",
                      invalid_value(std::to_string(*constraint.min_domains),
                                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"));
  if (reader.sound("matchLabelKeys") && reader.sound("labelSelector"))
    check_label_keys(reader, "matchLabelKeys", constraint.match_label_keys, constraint.label_selector);
}

void read_spread_constraint(const Reader& reader, TopologySpreadConstraint& out) {
  read_object(reader, kSpreadConstraint, out);
  if (reader.strict()) check_spread_constraint(reader, out);
}

}  // namespace

void read_pod_affinity(const Reader& reader, PodAffinity& out) { read_object(reader, kPodAffinity, out); }

void read_topology_spread(const Reader& reader, std::vector<TopologySpreadConstraint>& out) {
  read_list(reader, out, &read_spread_constraint);
  if (!reader.strict()) return;
  std::vector<bool> comparable;
  Items items(reader);
  for (size_t i = 0; items.next(); ++i) {
    comparable.push_back(items.value().sound("topologyKey") && items.value().sound("whenUnsatisfiable"));
    for (size_t j = 0; comparable[i] && j < i; ++j) {
      if (!comparable[j] || out[i].topology_key != out[j].topology_key ||
          out[i].schedule_anyway != out[j].schedule_anyway)
        continue;
      items.value().problem(duplicate_value(
          fmt::format("{{{}, {}}}", out[i].topology_key, out[i].schedule_anyway ? "ScheduleAnyway" : "DoNotSchedule")));
      break;
    }
  }
}

}  // namespace berth::api
