#include "policy/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::policy {
namespace {

constexpr int64_t kMaxWeight = 10'000;

Status check_weight(const std::string& name, int64_t weight) {
  const auto& all = all_policies();
  const auto at = std::find_if(all.begin(), all.end(), [&](auto* policy) { return policy->name == name; });
  if (at == all.end())
    return fail(ErrorCode::kInvalidInput, fmt::format("no policy is called '{}'; `berth policies` lists them", name));
  if (!(*at)->scores())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("'{}' is a filter, which has no weight and cannot be turned off", name));
  if (weight < 0 || weight > kMaxWeight)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("weight {} of '{}' is outside 0 to {}", weight, name, kMaxWeight));
  return {};
}

}  // namespace

Result<engine::PolicySet> make_policy_set(const std::map<std::string, int64_t>& weights) {
  for (const auto& [name, weight] : weights) BERTH_TRY_VOID(check_weight(name, weight));
  engine::PolicySet set;
  for (const engine::PolicyInfo* policy : all_policies()) {
    if (policy->filter != nullptr) set.filters.push_back(policy);
    if (policy->group_filter != nullptr) set.group_filters.push_back(policy);
    if (!policy->scores()) continue;
    const auto at = weights.find(std::string(policy->name));
    const int32_t weight = at == weights.end() ? policy->default_weight : static_cast<int32_t>(at->second);
    if (weight <= 0) continue;
    if (policy->score != nullptr) set.scores.push_back({policy, weight});
    if (policy->group_score != nullptr) set.group_scores.push_back({policy, weight});
  }
  const auto by_order = [](auto* a, auto* b) { return a->order < b->order; };
  std::stable_sort(set.filters.begin(), set.filters.end(), by_order);
  std::stable_sort(set.group_filters.begin(), set.group_filters.end(), by_order);
  return set;
}

engine::PolicySet default_policies() { return *make_policy_set(); }

}  // namespace berth::policy
