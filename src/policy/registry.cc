#include "policy/registry.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::policy {
namespace {

constexpr int64_t kMaxWeight = 10'000;

const engine::PolicyInfo* find(const std::string& name) {
  const auto& all = all_policies();
  const auto at = std::find_if(all.begin(), all.end(), [&](auto* policy) { return policy->name == name; });
  return at == all.end() ? nullptr : *at;
}

struct Given {
  int64_t weight = 0;
  bool named = false;  // somebody says so; else it is the default
};

// What the first of `layers` gives that names the policy; else its default.
Given given_to(const engine::PolicyInfo& policy, const std::vector<const Weights*>& layers) {
  const std::string name(policy.name);
  for (const Weights* layer : layers)
    if (const auto at = layer->find(name); at != layer->end()) return {at->second, true};
  return {policy.default_weight, false};
}

// How pods that ask for no placement are placed: as that policy does which somebody names and which weighs the most.
model::Placement placement_of(const std::vector<const Weights*>& layers) {
  Given pack, spread;
  for (const engine::PolicyInfo* policy : all_policies()) {
    if (policy->placement == model::Placement::kPack) pack = given_to(*policy, layers);
    if (policy->placement == model::Placement::kSpread) spread = given_to(*policy, layers);
  }
  if (pack.named && pack.weight > spread.weight) return model::Placement::kPack;
  return spread.named && spread.weight > pack.weight ? model::Placement::kSpread : model::Placement::kDefault;
}

// The scores, of groups of nodes or of nodes, each with the weight that is given to it.
Result<std::vector<engine::WeightedScore>> scores_of(const PolicyOptions& options,
                                                     const std::vector<const Weights*>& layers, bool groups) {
  std::vector<engine::WeightedScore> out;
  const model::Placement unasked = placement_of(layers);
  for (const engine::PolicyInfo* policy : all_policies()) {
    if (groups ? policy->group_score == nullptr : policy->score == nullptr) continue;
    const int64_t weight = given_to(*policy, layers).weight;
    if (weight <= 0) continue;
    BERTH_TRY_VOID(check_prices(std::string(policy->name), weight, options));
    const bool places = policy->placement != model::Placement::kDefault;
    out.push_back({policy, static_cast<int32_t>(weight), places ? unasked : model::Placement::kDefault});
  }
  return out;
}

// Some pool has weights of its own for policies that compare groups of nodes.
bool groups_by_pool(const PolicyOptions& options) {
  const auto names_group_score = [](const PoolOptions& pool) {
    return std::ranges::any_of(pool.weights, [](const auto& each) {
      const engine::PolicyInfo* policy = find(each.first);
      return policy != nullptr && policy->group_score != nullptr;
    });
  };
  return std::ranges::any_of(options.pools, names_group_score);
}

// Sets the scores of groups of nodes, and what they weigh in each pool where these are to differ. `named`: weights that
// count before those of a pool, of a queue; null: none.
template <typename Scores>
Status set_group_scores(const PolicyOptions& options, const Weights* named, Scores& out) {
  const auto of = [&](const PoolOptions* pool) {
    std::vector<const Weights*> layers;
    for (const Weights* layer : {named, pool == nullptr ? nullptr : &pool->weights, &options.weights})
      if (layer != nullptr) layers.push_back(layer);
    return scores_of(options, layers, true);
  };
  BERTH_TRY(scores, of(nullptr));
  out.group_scores = std::move(scores);
  if (!groups_by_pool(options)) return {};
  std::vector<std::vector<engine::WeightedScore>> pools;
  for (const PoolOptions& pool : options.pools) {
    BERTH_TRY(of_pool, of(&pool));
    for (const engine::WeightedScore& score : of_pool)
      if (std::ranges::find(out.group_scores, score.policy, &engine::WeightedScore::policy) == out.group_scores.end())
        out.group_scores.push_back({score.policy, 0, score.unasked});
    pools.push_back(std::move(of_pool));
  }
  for (const auto& pool : pools) {
    std::vector<int32_t>& weights = out.pool_group_weights.emplace_back();
    for (const engine::WeightedScore& score : out.group_scores) {
      const auto at = std::ranges::find(pool, score.policy, &engine::WeightedScore::policy);
      weights.push_back(at == pool.end() ? 0 : at->weight);
    }
  }
  return {};
}

// Adds a queue to a set that has the weights of the cluster and of its pools. Queues with the same weights share them,
// so that their pods can be of one class; those of the cluster are 0.
Status add_queue(const QueueOptions& queue, const PolicyOptions& options, engine::PolicySet& set) {
  for (const auto& [name, weight] : queue.weights) BERTH_TRY_VOID(check_weight(name, weight));
  engine::QueueScores own;
  BERTH_TRY(scores, scores_of(options, {&queue.weights, &options.weights}, false));
  own.scores = std::move(scores);
  BERTH_TRY_VOID(set_group_scores(options, &queue.weights, own));
  for (const PoolOptions& pool : options.pools) {
    BERTH_TRY(of_pool, scores_of(options, {&queue.weights, &pool.weights, &options.weights}, false));
    own.pool_scores.push_back(std::move(of_pool));
  }
  uint32_t& weights = set.queues.weights[queue.name];
  if (own == engine::QueueScores{set.scores, set.group_scores, set.pool_scores, set.pool_group_weights}) return {};
  const auto at = std::find(set.queue_scores.begin(), set.queue_scores.end(), own);
  weights = static_cast<uint32_t>(at - set.queue_scores.begin()) + 1;
  if (at == set.queue_scores.end()) set.queue_scores.push_back(std::move(own));
  return {};
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

Status check_prices(const std::string& name, int64_t weight, const PolicyOptions& options) {
  const engine::PolicyInfo* policy = find(name);
  if (weight <= 0 || policy == nullptr || !policy->needs_prices || !options.gpu_prices.empty()) return {};
  return fail(
      ErrorCode::kInvalidInput,
      fmt::format("'{}' has a weight and no prices to go by; say in berth.yaml what a GPU-hour costs, for example "
                  "prices: {{NVIDIA-L4: 0.80}}, or give it the weight 0",
                  name));
}

Result<engine::PolicySet> make_policy_set(const PolicyOptions& options) {
  for (const auto& [name, weight] : options.weights) BERTH_TRY_VOID(check_weight(name, weight));
  const auto layer = [&](const std::vector<const Weights*>& layers) { return scores_of(options, layers, false); };
  engine::PolicySet set;
  BERTH_TRY(scores, layer({&options.weights}));
  set.scores = std::move(scores);
  set.nodes.gpu_prices = options.gpu_prices;
  for (const PoolOptions& pool : options.pools) {
    for (const auto& [name, weight] : pool.weights) BERTH_TRY_VOID(check_weight(name, weight));
    set.nodes.pools.push_back({pool.name, pool.node_selector});
    BERTH_TRY(of_pool, layer({&pool.weights, &options.weights}));
    set.pool_scores.push_back(std::move(of_pool));
  }
  BERTH_TRY_VOID(set_group_scores(options, nullptr, set));
  for (const QueueOptions& queue : options.queues) BERTH_TRY_VOID(add_queue(queue, options, set));
  for (const engine::PolicyInfo* policy : all_policies()) {
    if (policy->filter != nullptr) set.filters.push_back(policy);
    if (policy->group_filter != nullptr) set.group_filters.push_back(policy);
  }
  const auto by_order = [](auto* a, auto* b) { return a->order < b->order; };
  std::stable_sort(set.filters.begin(), set.filters.end(), by_order);
  std::stable_sort(set.group_filters.begin(), set.group_filters.end(), by_order);
  return set;
}

engine::PolicySet default_policies() { return *make_policy_set(); }

}  // namespace berth::policy
