#include "webhook/topology_assignment.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace berth::webhook {
namespace {

using Json = nlohmann::json;

bool is_list(const Json& object, const char* key) { return object.contains(key) && object[key].is_array(); }

constexpr size_t kValueBytesMax = 63;  // of a label, and so of each part of one

bool is_value(const Json& value) {
  return value.is_string() && value.get_ref<const std::string&>().size() <= kValueBytesMax;
}

constexpr int32_t kDomainsMax = 100'000;  // of a slice

bool is_count(const Json& count) {
  return count.is_number_integer() && count > 0 && count <= std::numeric_limits<int32_t>::max();
}

// An object with no other members than these.
bool has_only(const Json& object, std::initializer_list<std::string_view> keys) {
  return object.is_object() && std::ranges::all_of(object.items(), [&](const auto& member) {
           return std::ranges::find(keys, member.key()) != keys.end();
         });
}

// {values, count} with a value for each level.
bool is_domain(const Json& domain, size_t levels) {
  return domain.is_object() && domain.size() == 2 && is_list(domain, "values") && domain["values"].size() == levels &&
         domain.contains("count") && is_count(domain["count"]) && std::ranges::all_of(domain["values"], &is_value);
}

bool all_equal(const Json& list) {
  return std::ranges::all_of(list, [&](const Json& item) { return item == list.front(); });
}

// The values or counts of a slice: {universal} or {individual}, of which `individual` checks the latter.
template <typename Individual>
bool is_choice(const Json& choice, bool (*is_item)(const Json&), Individual individual) {
  if (!choice.is_object() || choice.size() != 1) return false;
  return choice.contains("universal") ? is_item(choice["universal"])
                                      : choice.contains("individual") && individual(choice["individual"]);
}

bool is_list_of(const Json& list, size_t count, bool (*is_item)(const Json&)) {
  return list.is_array() && list.size() == count && std::ranges::all_of(list, is_item);
}

// A slice as the schema has it, with a value for each level.
bool is_slice(const Json& slice, size_t levels) {
  if (!has_only(slice, {"domainCount", "valuesPerLevel", "podCounts"}) || slice.size() != 3) return false;
  if (!is_count(slice["domainCount"]) || slice["domainCount"] > kDomainsMax || !is_list(slice, "valuesPerLevel"))
    return false;
  const auto count = slice["domainCount"].get<size_t>();
  const auto fix = [](const Json& values, const char* key) {
    return !values.contains(key) || (is_value(values[key]) && values[key] != "");
  };
  const auto is_values = [&](const Json& values) {
    return has_only(values, {"prefix", "suffix", "roots"}) && values.contains("roots") &&
           is_list_of(values["roots"], count, &is_value) && fix(values, "prefix") && fix(values, "suffix");
  };
  const Json& per_level = slice["valuesPerLevel"];
  return per_level.size() == levels &&
         std::ranges::all_of(per_level, [&](const Json& level) { return is_choice(level, &is_value, is_values); }) &&
         is_choice(slice["podCounts"], &is_count,
                   [&](const Json& counts) { return is_list_of(counts, count, &is_count); });
}

// The value of domain `index` at a level of a slice.
std::string value_of(const Json& level, size_t index) {
  if (level.contains("universal")) return level["universal"].get<std::string>();
  const Json& values = level["individual"];
  return values.value("prefix", "") + values["roots"][index].get<std::string>() + values.value("suffix", "");
}

const Json& count_of(const Json& slice, size_t index) {
  const Json& counts = slice["podCounts"];
  return counts.contains("universal") ? counts["universal"] : counts["individual"][index];
}

// What a domain {values, count}, and each of its values, take in memory beside the text: the nodes of the map, the
// blocks of the list and of the strings, rounded up as an allocator does.
constexpr size_t kDomainBytes = 352, kValueBytes = 96;

// What the domains of a slice will take.
size_t unpacked_bytes(const Json& slice) {
  const auto count = slice["domainCount"].get<size_t>();
  size_t bytes = count * kDomainBytes;
  for (const Json& level : slice["valuesPerLevel"])
    for (size_t i = 0; i < count; ++i) bytes += kValueBytes + value_of(level, i).size();
  return bytes;
}

void unpack_slice(const Json& slice, Json& domains) {
  const auto count = slice["domainCount"].get<size_t>();
  for (size_t i = 0; i < count; ++i) {
    Json values = Json::array();
    for (const Json& level : slice["valuesPerLevel"]) values.push_back(value_of(level, i));
    domains.push_back(Json{{"values", std::move(values)}, {"count", count_of(slice, i)}});
  }
}

bool is_packed(const Json& assignment) {
  return assignment.is_object() && is_list(assignment, "levels") && is_list(assignment, "slices") &&
         std::ranges::all_of(assignment["slices"],
                             [&](const Json& slice) { return is_slice(slice, assignment["levels"].size()); });
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
    if (all_equal(roots)) per_level.push_back(Json{{"universal", roots.front()}});
    else per_level.push_back(Json{{"individual", {{"roots", std::move(roots)}}}});
  }
  for (const Json& domain : domains) counts.push_back(domain["count"]);
  Json slice{{"domainCount", domains.size()}, {"valuesPerLevel", std::move(per_level)}};
  if (all_equal(counts)) slice["podCounts"]["universal"] = counts.front();
  else slice["podCounts"]["individual"] = std::move(counts);
  out["slices"].push_back(std::move(slice));
  return out;
}

std::optional<Json> unpack_domains(const Json& assignment, UnpackBudget& budget) {
  if (!is_packed(assignment)) return {};
  size_t bytes = 0;
  for (const Json& slice : assignment["slices"]) bytes += unpacked_bytes(slice);
  if (bytes > budget.object_bytes) return {};
  if (bytes > budget.request_bytes) budget.exceeded = true;
  if (budget.exceeded) return {};
  budget.object_bytes -= bytes;
  budget.request_bytes -= bytes;
  Json out = assignment;
  out.erase("slices");
  out["domains"] = Json::array();
  for (const Json& slice : assignment["slices"]) unpack_slice(slice, out["domains"]);
  return out;
}

std::optional<size_t> domain_count(const Json& assignment) {
  if (!is_packed(assignment)) return {};
  size_t count = 0;
  for (const Json& slice : assignment["slices"]) count += slice["domainCount"].get<size_t>();
  return count;
}

}  // namespace berth::webhook
