#include "api/disruption_budget.h"

#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

// The sentence for text that is no percentage up to 100%; empty for one.
std::string check_percent(std::string_view text) {
  const std::string_view digits = text.substr(0, text.empty() ? 0 : text.size() - 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (digits.empty() || text.back() != '%' || !std::all_of(digits.begin(), digits.end(), is_digit))
    return "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
           "used "
           "for validation is '[0-9]+%')";
  const std::string_view significant = digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
  return significant.size() > 3 || (significant.size() == 3 && significant != "100") ? "must not be greater than 100%"
                                                                                     : "";
}

void read_count_or_percent(const Reader& reader, std::string& out) {
  if (reader.type() == JsonType::kString) {
    if (!reader.read(out) || !reader.strict()) return;
    if (const std::string why = check_percent(out); !why.empty()) reader.problem(invalid_value(out, why));
    return;
  }
  int32_t count = 0;
  if (!reader.read(count)) return;
  out = std::to_string(count);
  if (reader.strict() && count < 0) reader.problem(invalid_value(out, "must be greater than or equal to 0"));
}

void read_budget_selector(const Reader& reader, PodDisruptionBudget& out) {
  out.selector.selects_nothing = false;
  read_label_selector(reader, out.selector);
}

void read_eviction_policy(const Reader& reader, PodDisruptionBudget&) {
  std::string_view text;
  if (!reader.read(text) || !reader.strict()) return;
  if (text != "AlwaysAllow" && text != "IfHealthyBudget")
    reader.problem(unsupported_value(text, {"AlwaysAllow", "IfHealthyBudget"}));
}

constexpr Field<PodDisruptionBudget> kSpec[] = {
    {"minAvailable", [](const Reader& r, PodDisruptionBudget& b) { read_count_or_percent(r, b.min_available); }},
    {"selector", &read_budget_selector},
    {"maxUnavailable", [](const Reader& r, PodDisruptionBudget& b) { read_count_or_percent(r, b.max_unavailable); }},
    {"unhealthyPodEvictionPolicy", &read_eviction_policy},
};

void read_spec(const Reader& reader, PodDisruptionBudget& out) {
  read_object(reader, kSpec, out);
  if (reader.strict() && !out.min_available.empty() && !out.max_unavailable.empty())
    reader.problem("Invalid value: minAvailable and maxUnavailable cannot be both set");
}

void read_disrupted_pods(const Reader& reader, PodDisruptionBudget& out) {
  if (!reader.expect(JsonType::kObject)) return;
  for (Members members(reader); members.next();) out.disrupted_pods.emplace_back(members.key());
  std::sort(out.disrupted_pods.begin(), out.disrupted_pods.end());
}

constexpr Field<PodDisruptionBudget> kStatus[] = {
    {"observedGeneration"},
    {"disruptedPods", &read_disrupted_pods},
    {"disruptionsAllowed",
     [](const Reader& r, PodDisruptionBudget& b) { b.has_status = r.read(b.disruptions_allowed); }},
    {"currentHealthy"},
    {"desiredHealthy"},
    {"expectedPods"},
    {"conditions"},
};

constexpr Field<PodDisruptionBudget> kBudget[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, PodDisruptionBudget& b) { read_object_meta(r, b.metadata); }},
    {"spec", &read_spec},
    {"status", [](const Reader& r, PodDisruptionBudget& b) { read_object(r, kStatus, b); }},
};

}  // namespace

void read_value(const Reader& reader, PodDisruptionBudget& out) {
  read_object(reader, kBudget, out);
  check_object_meta(reader, out.metadata, &check_path_segment);
}

}  // namespace berth::api
