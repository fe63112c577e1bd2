// How weights choose between packing and spreading for pods that do not ask for either.
#include <gtest/gtest.h>

#include "engine/evaluate.h"
#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using model::Placement;

constexpr const char* kGpu = "nvidia.com/gpu";

// The placement of a pod: that of the only one of both policies which speaks of it; kDefault: neither does.
struct Chooser {
  using Labels = model::Labels;
  explicit Chooser(const PolicyOptions& options) : set(*make_policy_set(options)) {}
  Placement of(int64_t gpus, Placement wish = Placement::kDefault, const std::string& queue = "",
               const Labels& node_labels = {}) const {
    State state(set.nodes, set.queues);
    model::Node node = make_node("n", {{kGpu, 8}});
    node.labels = node_labels;
    const NodeView view = state.view(state.upsert_node(node));
    model::Pod pod = with_spec(gpus > 0 ? make_pod("p", {{kGpu, gpus}}) : make_pod("p", {{"cpu", 1000}}),
                               [&](auto& spec) { spec.placement = wish; });
    if (!queue.empty()) pod.labels = std::make_shared<Labels>(Labels{{std::string(kQueueNameLabel), queue}});
    const PodClass& cls = state.pod_class(state.pod(state.add_pod(std::move(pod))).cls);
    Placement out = Placement::kDefault;
    for (const WeightedScore& score : set.scores_on(cls, view)) {
      if (score.policy->placement == Placement::kDefault || !score.concerns(cls)) continue;
      EXPECT_EQ(out, Placement::kDefault) << "both speak of it";
      out = score.policy->placement;
    }
    return out;
  }

  PolicySet set;
};

TEST(Placements, WithoutWeightsPodsWithGpusPackAndOthersSpread) {
  const Chooser by_default({});
  EXPECT_EQ(by_default.of(1), Placement::kPack);
  EXPECT_EQ(by_default.of(0), Placement::kSpread);
  EXPECT_EQ(by_default.of(1, Placement::kSpread), Placement::kSpread);
  EXPECT_EQ(by_default.of(0, Placement::kPack), Placement::kPack);
}

TEST(Placements, TheNamedOneThatWeighsMoreHoldsForWhoAsksForNone) {
  for (const Weights& weights : {Weights{{"spread", 5}}, Weights{{"pack", 0}, {"spread", 1}}}) {
    const Chooser spreads({.weights = weights});
    EXPECT_EQ(spreads.of(1), Placement::kSpread);
    EXPECT_EQ(spreads.of(0), Placement::kSpread);
  }
  const Chooser packs({.weights = {{"pack", 3}}}), even({.weights = {{"pack", 4}, {"spread", 4}}});
  EXPECT_EQ(packs.of(0), Placement::kPack);
  EXPECT_EQ(packs.of(1), Placement::kPack);
  EXPECT_EQ(packs.of(1, Placement::kSpread), Placement::kSpread) << "who asks has what it asked for";
  EXPECT_EQ(even.of(0), Placement::kSpread);
  EXPECT_EQ(even.of(1), Placement::kPack);
}

TEST(Placements, WhatIsTurnedOffLeavesThePodsToTheOtherRules) {
  const Chooser set({.weights = {{"pack", 0}, {"fragmentation-aware", 5}}});
  EXPECT_EQ(set.of(1), Placement::kDefault) << "nobody said that it spreads";
  EXPECT_EQ(set.of(0), Placement::kSpread);
}

TEST(Placements, APoolAndAQueueChooseForThemselves) {
  PolicyOptions options;
  options.pools = {{"shared", {{"pool", "shared"}}, {{"spread", 2}}}};
  options.queues = {{"serving", {{"pack", 0}, {"spread", 1}}}, {"training", {{"pack", 9}}}};
  const Chooser set(options);
  EXPECT_EQ(set.of(1), Placement::kPack);
  EXPECT_EQ(set.of(1, {}, "", {{"pool", "shared"}}), Placement::kSpread);
  EXPECT_EQ(set.of(1, {}, "serving"), Placement::kSpread);
  EXPECT_EQ(set.of(1, {}, "training", {{"pool", "shared"}}), Placement::kPack) << "a queue comes before a pool";
  EXPECT_EQ(set.of(0, {}, "training"), Placement::kPack);
}

}  // namespace
}  // namespace berth::policy
