// PolicySet: the policies that one engine runs with, and what each weighs for whom: in the cluster, in a pool of nodes,
// for the pods of a queue. A plain value, made from configuration by policy/registry.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/node_catalog.h"
#include "engine/policy.h"
#include "engine/queue_catalog.h"

namespace berth::engine {

struct WeightedScore {
  const PolicyInfo* policy = nullptr;
  int32_t weight = 0;
  // How these weights place pods that ask for no placement; kDefault: those with GPUs pack, others spread.
  model::Placement unasked = model::Placement::kDefault;

  // The policy speaks of the class's pods.
  bool concerns(const PodClass& cls) const {
    if (policy->placement == model::Placement::kDefault) return true;
    const bool asks = cls.spec->placement != model::Placement::kDefault || unasked == model::Placement::kDefault;
    return policy->placement == (!asks ? unasked : cls.packs ? model::Placement::kPack : model::Placement::kSpread);
  }
  friend bool operator==(const WeightedScore&, const WeightedScore&) = default;
};

// The weights that hold for pods of a queue; as the members of PolicySet of the same names.
struct QueueScores {
  std::vector<WeightedScore> scores;
  std::vector<WeightedScore> group_scores;
  std::vector<std::vector<WeightedScore>> pool_scores;
  std::vector<std::vector<int32_t>> pool_group_weights;
  friend bool operator==(const QueueScores&, const QueueScores&) = default;
};

struct PolicySet {
  std::vector<const PolicyInfo*> filters;             // in order
  std::vector<WeightedScore> scores;                  // weight > 0
  std::vector<const PolicyInfo*> group_filters = {};  // in order
  std::vector<WeightedScore> group_scores = {};       // weight > 0, there or in some pool
  NodeCatalog nodes = {};
  std::vector<std::vector<WeightedScore>> pool_scores = {};  // as `scores`, by NodeCatalog::pools
  // The weights of `group_scores`, by NodeCatalog::pools; empty: no pool has other ones, whatever the queue.
  std::vector<std::vector<int32_t>> pool_group_weights = {};

  QueueCatalog queues = {};
  std::vector<QueueScores> queue_scores = {};  // by PodClass::queue_weights

  // The scores with the weights that hold for the pod's queue and the node's pool.
  const std::vector<WeightedScore>& scores_on(const PodClass& cls, const NodeView& node) const {
    if (cls.queue_weights == 0) return node.pool() == 0 ? scores : pool_scores[node.pool() - 1];
    const QueueScores& queue = queue_scores[cls.queue_weights - 1];
    return node.pool() == 0 ? queue.scores : queue.pool_scores[node.pool() - 1];
  }
  // The scores of groups of nodes with the weights that hold for the pod's queue.
  const std::vector<WeightedScore>& group_scores_of(const PodClass& cls) const {
    return cls.queue_weights == 0 ? group_scores : queue_scores[cls.queue_weights - 1].group_scores;
  }
  // The weight of one of these on a group of nodes of the pool.
  int32_t group_weight(const PodClass& cls, size_t score, uint32_t pool) const {
    if (pool == 0 || pool_group_weights.empty()) return group_scores_of(cls)[score].weight;
    const auto& by_pool =
        cls.queue_weights == 0 ? pool_group_weights : queue_scores[cls.queue_weights - 1].pool_group_weights;
    return by_pool[pool - 1][score];
  }
  // Some score goes by the mix of requests, so that it has to be measured.
  bool needs_mix() const;
};

inline bool PolicySet::needs_mix() const {
  const auto needed = [](const std::vector<WeightedScore>& weighted) {
    return std::any_of(weighted.begin(), weighted.end(), [](const WeightedScore& s) { return s.policy->needs_mix; });
  };
  const auto needed_of_queue = [&](const QueueScores& queue) {
    return needed(queue.scores) || std::any_of(queue.pool_scores.begin(), queue.pool_scores.end(), needed);
  };
  return needed(scores) || std::any_of(pool_scores.begin(), pool_scores.end(), needed) ||
         std::any_of(queue_scores.begin(), queue_scores.end(), needed_of_queue);
}

}  // namespace berth::engine
