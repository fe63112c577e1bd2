// What nodes are worth to a pod, accounted for from nothing: a part of the scheduler that is small and obviously right
// (engine/brute_force_test.h). For tests only.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "engine/brute_force_fit_test.h"
#include "engine/brute_force_gathering_test.h"
#include "engine/brute_force_peers_test.h"
#include "engine/policy_set.h"
#include "engine/state.h"

namespace berth::engine::testing {

// The weights of the queue that the pod names, which its namespace may have alone; 0: none.
inline uint32_t brute_force_queue(const model::Pod& pod, const PolicySet& policies) {
  if (pod.labels == nullptr || pod.labels->find(kQueueNameLabel) == nullptr) return 0;
  const std::string& queue = *pod.labels->find(kQueueNameLabel);
  uint32_t anywhere = 0;
  for (const auto& [name, weights] : policies.queues.weights) {
    if (name == pod.namespace_name + "/" + queue) return weights;
    if (name == queue) anywhere = weights;
  }
  return anywhere;
}

// The first pool whose labels the node has, counted from 1; 0: none.
inline size_t brute_force_pool(const model::Node& node, const PolicySet& policies) {
  for (size_t i = 0; i < policies.nodes.pools.size(); ++i) {
    const auto& wanted = policies.nodes.pools[i].node_selector;
    if (std::all_of(wanted.begin(), wanted.end(), [&](const auto& label) {
          const std::string* value = node.labels.find(label.first);
          return value != nullptr && *value == label.second;
        }))
      return i + 1;
  }
  return 0;
}

// The weighted sum of the score policies on a node.
inline int64_t brute_force_score(const model::Pod& pod, const BruteForcePeers::Place& place,
                                 const PolicySet& policies) {
  State state(policies.nodes);
  const NodeSlot node = state.upsert_node(place.node);
  for (const model::Pod& other : place.pods) state.assign(state.add_pod(model::Pod(other)), node, PodPhase::kBound);
  const PodClass& cls = state.pod_class(state.pod(state.add_pod(model::Pod(pod))).cls);
  int64_t total = 0;
  const uint32_t queue = brute_force_queue(pod, policies);
  const QueueScores weights = queue > 0 ? policies.queue_scores[queue - 1]
                                        : QueueScores{policies.scores, policies.group_scores, policies.pool_scores, {}};
  const size_t pool = brute_force_pool(place.node, policies);
  const std::vector<WeightedScore>* scores = pool == 0 ? &weights.scores : &weights.pool_scores[pool - 1];
  const auto concerns = [&](const WeightedScore& score) {
    if (score.policy->placement == model::Placement::kDefault) return true;
    if (pod.spec->placement != model::Placement::kDefault) return pod.spec->placement == score.policy->placement;
    if (score.unasked != model::Placement::kDefault) return score.unasked == score.policy->placement;
    return cls.requests_gpu == (score.policy->placement == model::Placement::kPack);
  };
  for (const WeightedScore& score : *scores)
    if (concerns(score)) total += int64_t{score.policy->score(cls, state.view(node))} * score.weight;
  return total;
}

// Of nodes that fit, in their order: what each is worth by itself and, normalised, among them. `gathering`
// knows all pods.
inline std::vector<int64_t> brute_force_scores(const model::Pod& pod,
                                               const std::vector<BruteForcePeers::Place*>& fitting,
                                               const PolicySet& policies, const BruteForcePeers& peers,
                                               const BruteForceGathering& gathering) {
  std::vector<int64_t> out;
  out.reserve(fitting.size());
  for (const auto* place : fitting) out.push_back(brute_force_score(pod, *place, policies));
  const uint32_t queue = brute_force_queue(pod, policies);
  const auto& scores = queue > 0 ? policies.queue_scores[queue - 1].group_scores : policies.group_scores;
  const auto& in_pools = queue > 0 ? policies.queue_scores[queue - 1].pool_group_weights : policies.pool_group_weights;
  for (size_t s = 0; s < scores.size(); ++s) {
    const WeightedScore& score = scores[s];
    const auto weight = [&](const model::Node& node) {
      const size_t pool = brute_force_pool(node, policies);
      return pool == 0 || in_pools.empty() ? score.weight : in_pools[pool - 1][s];
    };
    std::vector<std::optional<int64_t>> raw;
    std::optional<int64_t> least, most;
    for (const auto* place : fitting) {
      const std::string_view name = score.policy->name;
      raw.push_back(name == "topology"              ? gathering.score(pod, place->node)
                    : name == "pod-topology-spread" ? peers.spread_score(pod, place->node)
                                                    : peers.affinity_score(pod, place->node));
      if (!raw.back()) continue;
      least = std::min(least.value_or(*raw.back()), *raw.back());
      most = std::max(most.value_or(*raw.back()), *raw.back());
    }
    for (size_t i = 0; i < raw.size(); ++i)
      if (raw[i] && *least < *most)
        out[i] += (*raw[i] - *least) * kMaxScore / (*most - *least) * weight(fitting[i]->node);
  }
  return out;
}

}  // namespace berth::engine::testing
