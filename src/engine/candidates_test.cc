// The ranking: after any history its winner and counts are those of a linear look at all nodes.
#include "engine/candidates.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "engine/testing_policies.h"

namespace berth::engine::testing {
namespace {

struct Linear {
  std::string best;  // "" when none fits
  uint32_t nodes = 0, fitting = 0;
};

// Turns round with every new mix of requests.
int32_t cores_by_mix(const PodClass& cls, const NodeView& node) {
  return node.mix().version() % 2 == 0 ? cores(cls, node) : 10 - cores(cls, node);
}
constexpr PolicyInfo kCoresByMix = mix_score_policy("cores-by-mix", "prefers many cores or few", 1, &cores_by_mix);

Linear linear_look(const State& state, const PodClass& cls) {
  Linear out;
  int32_t best_score = -1;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (!state.node(slot).present) continue;
    ++out.nodes;
    Reasons reasons;
    room(cls, state.view(slot), reasons);
    if (!reasons.empty()) continue;
    ++out.fitting;
    if (const int32_t score = cores_by_mix(cls, state.view(slot)); score > best_score)
      out.best = name, best_score = score;
  }
  return out;
}

struct Look {
  PolicySet policies = {{&kRoom}, {{&kCoresByMix, 1}}};
  FailureSets sets;
  Candidates candidates;

  Linear at(const State& state, const PodClass& cls, int64_t work = INT64_MAX) {
    WorkBudget budget{work};
    while (!candidates.refresh(state, policies, cls, sets, budget)) budget.left = work;
    const NodeSlot best = candidates.best();
    const auto& counts = candidates.counts();
    return {best.valid() ? state.node(best).node.name : "", counts.nodes, counts.by_set.empty() ? 0 : counts.by_set[0]};
  }
};

// Names that fall between one another, so that order keys run out and are given anew.
std::string random_name(Rng& rng) {
  std::string name;
  for (auto length = rng.between(1, 12); length > 0; --length) name += rng.chance(50) ? 'a' : 'b';
  return name;
}

void expect_the_linear_winner(uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  State state;
  Look look;
  const PodSlot asker = state.add_pod(make_pod("asker", {{"cpu", 2000}}));
  const PodClass cls = state.pod_class(state.pod(asker).cls);
  std::vector<std::string> names;
  std::vector<PodSlot> pods;
  for (int i = 0; i < 10; ++i) pods.push_back(state.add_pod(make_pod("p" + std::to_string(i), {{"cpu", 700 * i}})));
  for (int round = 0; round < 25; ++round) {
    const auto changes = rng.between(1, rng.chance(10) ? 60 : 4);
    for (int64_t i = 0; i < changes; ++i) {
      const PodSlot pod = pods[rng.below(pods.size())];
      const NodeSlot node = names.empty() ? NodeSlot{} : state.find_node(names[rng.below(names.size())]);
      const auto dice = rng.below(10);
      if (dice < 4) {
        names.push_back(random_name(rng));
        state.upsert_node(make_node(names.back(), {{"cpu", 1000 * rng.between(0, 4)}}));
      } else if (dice < 7 && node.valid()) {
        state.remove_node(std::string(state.node(node).node.name));
      } else if (holds_room(state.pod(pod).phase)) {
        state.unassign(pod, PodPhase::kNotQueued);
      } else if (node.valid()) {
        state.assign(pod, node, PodPhase::kBound);
      }
    }
    if (rng.chance(10) && !names.empty())  // longer than the change log
      for (int i = 0; i < 2000; ++i) state.upsert_node(make_node(names[0], {{"cpu", 1000 + i}}));
    if (rng.chance(20)) {
      const PodSlot pod = state.add_pod(make_pod("g" + std::to_string(round), {{"nvidia.com/gpu", round + 1}}));
      state.mutable_mix().observe(state.pod_class(state.pod(pod).cls), state.resources());
      ASSERT_TRUE(state.mutable_mix().settle());
    }
    const Linear expected = linear_look(state, cls);
    const Linear actual = look.at(state, cls, rng.chance(30) ? 3 : INT64_MAX);
    ASSERT_EQ(actual.best, expected.best);
    ASSERT_EQ(actual.nodes, expected.nodes);
    ASSERT_EQ(actual.fitting, expected.fitting);
  }
}

TEST(Candidates, TheWinnerIsTheLinearOneAfterAnyHistory) {
  const uint64_t histories = histories_to_play(100, 1000);
  for (uint64_t seed = 1; seed <= histories && !HasFailure(); ++seed) expect_the_linear_winner(seed);
}

TEST(Candidates, EachChangedNodeIsExaminedOnce) {
  State state;
  for (int i = 0; i < 100; ++i) state.upsert_node(make_node("n" + std::to_string(i)));
  const PodClass cls = state.pod_class(state.pod(state.add_pod(make_pod("p"))).cls);
  Look look;
  const auto work_used = [&] {
    WorkBudget budget{1000};
    EXPECT_TRUE(look.candidates.refresh(state, look.policies, cls, look.sets, budget));
    return 1000 - budget.left;
  };
  EXPECT_EQ(work_used(), 100);
  EXPECT_EQ(work_used(), 0);
  for (int i = 1; i < 6; ++i) state.upsert_node(make_node("n7", {{"cpu", i}}));
  EXPECT_EQ(work_used(), 1);
}

TEST(Candidates, AnEmptyFleetHasNoWinner) {
  State state;
  const PodClass cls = state.pod_class(state.pod(state.add_pod(make_pod("p"))).cls);
  Look look;
  EXPECT_EQ(look.at(state, cls).best, "");
  EXPECT_EQ(fit_message(look.candidates.counts(), look.sets), "no nodes available to schedule pods");
}

}  // namespace
}  // namespace berth::engine::testing
