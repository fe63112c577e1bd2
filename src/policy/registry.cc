#include "policy/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::policy {
namespace {

constexpr int64_t kMaxWeight = 10'000;

int32_t weight_of(const engine::PolicyInfo& policy, const Weights& weights, int32_t otherwise) {
  const auto at = weights.find(std::string(policy.name));
  return at == weights.end() ? otherwise : static_cast<int32_t>(at->second);
}

const engine::PolicyInfo* find(const std::string& name) {
  const auto& all = all_policies();
  const auto at = std::find_if(all.begin(), all.end(), [&](auto* policy) { return policy->name == name; });
  return at == all.end() ? nullptr : *at;
}

Status check_prices(const engine::PolicyInfo& policy, const PolicyOptions& options) {
  if (!policy.needs_prices || !options.gpu_prices.empty()) return {};
  return fail(
      ErrorCode::kInvalidInput,
      fmt::format("'{}' has a weight and no prices to go by; say in berth.yaml what a GPU-hour costs, for example "
                  "prices: {{NVIDIA-L4: 0.80}}, or give it the weight 0",
                  policy.name));
}

}  // namespace

Status check_weight(const std::string& name, int64_t weight) {
  const engine::PolicyInfo* policy = find(name);
  if (policy == nullptr)
    return fail(ErrorCode::kInvalidInput, fmt::format("no policy is called '{}'; `berth policies` lists them", name));
  if (!policy->scores())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("'{}' is a filter, which has no weight and cannot be turned off", name));
  if (weight < 0 || weight > kMaxWeight)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("weight {} of '{}' is outside 0 to {}", weight, name, kMaxWeight));
  return {};
}

Status check_pool_weight(const std::string& name, int64_t weight) {
  BERTH_TRY_VOID(check_weight(name, weight));
  if (find(name)->group_score == nullptr) return {};
  return fail(ErrorCode::kInvalidInput,
              fmt::format("'{}' compares zones, racks and the like, which lie across pools, and has one weight for the "
                          "whole cluster; give it under the cluster's scores",
                          name));
}

Result<engine::PolicySet> make_policy_set(const PolicyOptions& options) {
  for (const auto& [name, weight] : options.weights) BERTH_TRY_VOID(check_weight(name, weight));
  engine::PolicySet set;
  set.nodes.gpu_prices = options.gpu_prices;
  set.pool_scores.resize(options.pools.size());
  for (const PoolOptions& pool : options.pools) {
    for (const auto& [name, weight] : pool.weights) BERTH_TRY_VOID(check_pool_weight(name, weight));
    set.nodes.pools.push_back({pool.name, pool.node_selector});
  }
  for (const engine::PolicyInfo* policy : all_policies()) {
    if (policy->filter != nullptr) set.filters.push_back(policy);
    if (policy->group_filter != nullptr) set.group_filters.push_back(policy);
    if (!policy->scores()) continue;
    const int32_t weight = weight_of(*policy, options.weights, policy->default_weight);
    if (weight > 0) BERTH_TRY_VOID(check_prices(*policy, options));
    if (weight > 0 && policy->score != nullptr) set.scores.push_back({policy, weight});
    if (weight > 0 && policy->group_score != nullptr) set.group_scores.push_back({policy, weight});
    for (size_t i = 0; i < options.pools.size() && policy->score != nullptr; ++i) {
      const int32_t in_pool = weight_of(*policy, options.pools[i].weights, weight);
      if (in_pool > 0) BERTH_TRY_VOID(check_prices(*policy, options));
      if (in_pool > 0) set.pool_scores[i].push_back({policy, in_pool});
    }
  }
  const auto by_order = [](auto* a, auto* b) { return a->order < b->order; };
  std::stable_sort(set.filters.begin(), set.filters.end(), by_order);
  std::stable_sort(set.group_filters.begin(), set.group_filters.end(), by_order);
  return set;
}

engine::PolicySet default_policies() { return *make_policy_set(); }

}  // namespace berth::policy
