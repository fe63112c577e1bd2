#include "webhook/topology_assignment.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

bool is_list(const Json& object, const char* key) { return object.contains(key) && object[key].is_array(); }

// {values, count} with a value for each level.
bool is_domain(const Json& domain, size_t levels) {
  return domain.is_object() && domain.size() == 2 && is_list(domain, "values") && domain["values"].size() == levels &&
         domain.contains("count") && domain["count"].is_number_integer() &&
         std::ranges::all_of(domain["values"], [](const Json& value) { return value.is_string(); });
}

bool all_equal(const Json& list) {
  return std::ranges::all_of(list, [&](const Json& item) { return item == list.front(); });
}

// The value of domain `index` at a level of a slice; nothing if malformed.
std::optional<std::string> value_of(const Json& level, size_t index) {
  if (!level.is_object()) return {};
  const auto text = [&](const char* key) {
    return level.contains(key) && level[key].is_string() ? level[key].get<std::string>() : std::string();
  };
  if (level.contains("universalValue")) {
    if (!level["universalValue"].is_string()) return {};
    return text("universalValue");
  }
  if (!is_list(level, "roots") || index >= level["roots"].size() || !level["roots"][index].is_string()) return {};
  return text("prefix") + level["roots"][index].get<std::string>() + text("suffix");
}

std::optional<Json> count_of(const Json& slice, size_t index) {
  if (slice.contains("universalPodCount")) return slice["universalPodCount"];
  if (!is_list(slice, "podCounts") || index >= slice["podCounts"].size()) return {};
  return slice["podCounts"][index];
}

constexpr size_t kOverheadBytes = 32;  // of a value or count as JSON in memory

// Appends the domains of one slice and takes their size from `budget_bytes`; false if malformed or too large.
bool unpack_slice(const Json& slice, size_t levels, Json& domains, size_t& budget_bytes) {
  if (!slice.is_object() || !is_list(slice, "valuesPerLevel") || slice["valuesPerLevel"].size() != levels) return false;
  if (!slice.contains("domainCount") || !slice["domainCount"].is_number_unsigned()) return false;
  const size_t count = slice["domainCount"].get<size_t>();
  for (size_t i = 0; i < count; ++i) {
    Json values = Json::array();
    size_t bytes = kOverheadBytes;
    for (const Json& level : slice["valuesPerLevel"]) {
      std::optional<std::string> value = value_of(level, i);
      if (!value) return false;
      bytes += value->size() + kOverheadBytes;
      values.push_back(std::move(*value));
    }
    if (bytes > budget_bytes) return false;
    budget_bytes -= bytes;
    std::optional<Json> pods = count_of(slice, i);
    if (!pods || !pods->is_number_integer()) return false;
    domains.push_back(Json{{"values", std::move(values)}, {"count", std::move(*pods)}});
  }
  return true;
}

}  // namespace

std::optional<Json> pack_domains(const Json& assignment) {
  if (!assignment.is_object() || !is_list(assignment, "levels") || !is_list(assignment, "domains")) return {};
  const Json& domains = assignment["domains"];
  const size_t levels = assignment["levels"].size();
  if (!std::ranges::all_of(domains, [&](const Json& domain) { return is_domain(domain, levels); })) return {};
  Json out = assignment;
  out.erase("domains");
  out["slices"] = Json::array();
  if (domains.empty()) return out;
  Json per_level = Json::array(), counts = Json::array();
  for (size_t level = 0; level < levels; ++level) {
    Json roots = Json::array();
    for (const Json& domain : domains) roots.push_back(domain["values"][level]);
    per_level.push_back(all_equal(roots) ? Json{{"universalValue", roots.front()}} : Json{{"roots", roots}});
  }
  for (const Json& domain : domains) counts.push_back(domain["count"]);
  Json slice{{"domainCount", domains.size()}, {"valuesPerLevel", std::move(per_level)}};
  if (all_equal(counts)) slice["universalPodCount"] = counts.front();
  else slice["podCounts"] = std::move(counts);
  out["slices"].push_back(std::move(slice));
  return out;
}

std::optional<Json> unpack_domains(const Json& assignment) {
  if (!assignment.is_object() || !is_list(assignment, "levels") || !is_list(assignment, "slices")) return {};
  Json domains = Json::array();
  size_t budget_bytes = kUnpackedBytesMax;
  for (const Json& slice : assignment["slices"])
    if (!unpack_slice(slice, assignment["levels"].size(), domains, budget_bytes)) return {};
  Json out = assignment;
  out.erase("slices");
  out["domains"] = std::move(domains);
  return out;
}

}  // namespace berth::webhook
