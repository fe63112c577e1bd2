// The registry: which policies a configuration makes of weights, pools, queues and prices, and what it refuses.
#include "policy/registry.h"

#include <gtest/gtest.h>

#include "engine/testing.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr const char* kGpu = "nvidia.com/gpu";

TEST(Registry, APoolHasWeightsOfItsOwnAndTheClustersOtherwise) {
  PolicyOptions options{.weights = {{"spread", 7}}};
  options.pools = {{"a", {{"pool", "a"}}, {{"pack", 0}, {"power", 3}}}, {"b", {{"pool", "b"}}, {}}};
  const PolicySet set = *make_policy_set(options);
  const auto weight = [&](const model::Labels& labels, std::string_view name) {
    State state(set.nodes);
    model::Node node = make_node("n");
    node.labels = labels;
    const auto& scores = set.scores_on(PodClass{}, state.view(state.upsert_node(node)));
    const auto at = std::find_if(scores.begin(), scores.end(), [&](auto& score) { return score.policy->name == name; });
    return at == scores.end() ? 0 : at->weight;
  };
  EXPECT_EQ(weight({}, "pack"), 1);
  EXPECT_EQ(weight({}, "power"), 0);
  EXPECT_EQ(weight({}, "spread"), 7);
  EXPECT_EQ(weight({{"pool", "a"}}, "pack"), 0);
  EXPECT_EQ(weight({{"pool", "a"}}, "power"), 3);
  EXPECT_EQ(weight({{"pool", "a"}}, "spread"), 7);
  EXPECT_EQ(weight({{"pool", "b"}}, "pack"), 1);
}

model::Pod in_queue(const std::string& namespace_name, const std::string& queue) {
  model::Pod pod = make_pod("p", {{kGpu, 1}});
  pod.namespace_name = namespace_name;
  pod.labels = std::make_shared<model::Labels>(model::Labels{{std::string(kQueueNameLabel), queue}});
  return pod;
}

TEST(Registry, AQueueHasWeightsOfItsOwnAndThePoolsOrTheClustersOtherwise) {
  PolicyOptions options{.weights = {{"spread", 7}}};
  options.pools = {{"a", {{"pool", "a"}}, {{"pack", 0}, {"power", 3}}}};
  options.queues = {{"train", {{"pack", 5}, {"topology", 9}}}, {"ml/train", {{"spread", 0}, {"topology", 0}}}};
  const PolicySet set = *make_policy_set(options);
  const auto weight = [&](const model::Pod& pod, const model::Labels& labels, std::string_view name) {
    State state(set.nodes, set.queues);
    model::Node node = make_node("n");
    node.labels = labels;
    const NodeSlot slot = state.upsert_node(node);
    const PodClass& cls = state.pod_class(state.pod(state.add_pod(model::Pod(pod))).cls);
    std::vector<WeightedScore> scores = set.scores_on(cls, state.view(slot));
    const auto& of_groups = set.group_scores_of(cls);
    scores.insert(scores.end(), of_groups.begin(), of_groups.end());
    const auto at = std::find_if(scores.begin(), scores.end(), [&](auto& score) { return score.policy->name == name; });
    return at == scores.end() ? 0 : at->weight;
  };
  const model::Pod named = in_queue("ml", "train"), anywhere = in_queue("web", "train"), other = in_queue("ml", "x");
  EXPECT_EQ(weight(anywhere, {}, "pack"), 5);
  EXPECT_EQ(weight(anywhere, {{"pool", "a"}}, "pack"), 5) << "a queue comes before a pool";
  EXPECT_EQ(weight(anywhere, {{"pool", "a"}}, "power"), 3) << "a pool comes before the cluster";
  EXPECT_EQ(weight(anywhere, {}, "spread"), 7);
  EXPECT_EQ(weight(anywhere, {}, "topology"), 9) << "groups of nodes are compared for the pod";
  EXPECT_EQ(weight(named, {}, "pack"), 1) << "a queue that names its namespace has nothing of its namesakes";
  EXPECT_EQ(weight(named, {}, "spread"), 0);
  EXPECT_EQ(weight(named, {}, "topology"), 0);
  EXPECT_EQ(weight(named, {{"pool", "a"}}, "pack"), 0);
  EXPECT_EQ(weight(other, {}, "pack"), 1);
  EXPECT_EQ(weight(make_pod("p"), {}, "pack"), 1);
}

TEST(Registry, PodsOfQueuesWithTheSameWeightsAreOneClass) {
  PolicyOptions options;
  options.queues = {{"a", {{"pack", 5}}}, {"b", {{"pack", 5}}}, {"c", {{"pack", 6}}}, {"d", {{"pack", 1}}}};
  const PolicySet set = *make_policy_set(options);
  State state(set.nodes, set.queues);
  const auto class_of = [&](const std::string& queue) {
    model::Pod pod = in_queue("ml", queue);
    pod.uid = std::to_string(state.pod_count());
    return state.pod(state.add_pod(std::move(pod))).cls;
  };
  EXPECT_EQ(class_of("a"), class_of("b"));
  EXPECT_NE(class_of("a"), class_of("c"));
  EXPECT_EQ(class_of("d"), class_of("elsewhere")) << "the cluster's weights, said again";
  EXPECT_NE(class_of("d"), class_of("a"));
}

TEST(Registry, RefusesQueuesThatMakeNoSense) {
  const auto code = [](const Weights& weights) {
    PolicyOptions options;
    options.queues = {{"a", weights}};
    const auto set = make_policy_set(options);
    return set ? std::nullopt : std::optional(set.error().code);
  };
  EXPECT_EQ(code({{"pack", 2}, {"inter-pod-affinity", 2}}), std::nullopt);
  EXPECT_EQ(code({{"pakc", 2}}), ErrorCode::kInvalidInput);
  EXPECT_EQ(code({{"node-ports", 2}}), ErrorCode::kInvalidInput);
  EXPECT_EQ(code({{"pack", 10'001}}), ErrorCode::kInvalidInput);
  EXPECT_EQ(code({{"cost", 2}}), ErrorCode::kInvalidInput);
}

TEST(Registry, WhatComparesGroupsOfNodesHasAWeightInEachPool) {
  PolicyOptions options{.weights = {{"inter-pod-affinity", 0}}};
  options.pools = {{"a", {{"pool", "a"}}, {{"topology", 9}, {"inter-pod-affinity", 3}}}, {"b", {{"pool", "b"}}, {}}};
  options.queues = {{"train", {{"topology", 5}}}};
  const PolicySet set = *make_policy_set(options);
  const auto weight = [&](const model::Pod& pod, uint32_t pool, std::string_view name) {
    State state(set.nodes, set.queues);
    const PodClass& cls = state.pod_class(state.pod(state.add_pod(model::Pod(pod))).cls);
    const auto& scores = set.group_scores_of(cls);
    for (size_t i = 0; i < scores.size(); ++i)
      if (scores[i].policy->name == name) return set.group_weight(cls, i, pool);
    return -1;
  };
  const model::Pod any = make_pod("p"), queued = in_queue("web", "train");
  EXPECT_EQ(weight(any, 0, "topology"), 2);
  EXPECT_EQ(weight(any, 1, "topology"), 9);
  EXPECT_EQ(weight(any, 2, "topology"), 2);
  EXPECT_EQ(weight(any, 0, "inter-pod-affinity"), 0);
  EXPECT_EQ(weight(any, 1, "inter-pod-affinity"), 3) << "only there";
  EXPECT_EQ(weight(queued, 1, "topology"), 5) << "a queue comes before a pool";
  EXPECT_EQ(weight(queued, 1, "inter-pod-affinity"), 3);
}

TEST(Registry, RefusesPoolsThatMakeNoSense) {
  const auto code = [](const Weights& weights) {
    PolicyOptions options;
    options.pools = {{"a", {{"pool", "a"}}, weights}};
    const auto set = make_policy_set(options);
    return set ? std::nullopt : std::optional(set.error().code);
  };
  EXPECT_EQ(code({{"pack", 2}}), std::nullopt);
  EXPECT_EQ(code({{"pakc", 2}}), ErrorCode::kInvalidInput);
  EXPECT_EQ(code({{"cost", 2}}), ErrorCode::kInvalidInput);
}

TEST(Registry, RefusesWeightsThatMakeNoSense) {
  EXPECT_EQ(make_policy_set({{{"pakc", 1}}}).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(make_policy_set({{{"node-ports", 1}}}).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(make_policy_set({{{"pack", -1}}}).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(make_policy_set({{{"pack", 10'001}}}).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(make_policy_set({{{"cost", 1}}}).error().code, ErrorCode::kInvalidInput) << "without prices";
  EXPECT_TRUE(make_policy_set({{{"cost", 1}}, {{"L4", 1}}}));
  const PolicySet set = *make_policy_set({{{"pack", 0}, {"spread", 7}}});
  for (const auto& score : set.scores) {
    EXPECT_NE(score.policy->name, "pack");
    if (score.policy->name != "spread") continue;
    EXPECT_EQ(score.weight, 7);
  }
}

}  // namespace
}  // namespace berth::policy
