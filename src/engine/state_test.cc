// State and Txn: nodes that come and go, charges, change log, and undo.
#include "engine/state.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/rng.h"
#include "engine/testing.h"
#include "engine/txn.h"

namespace berth::engine::testing {
namespace {

TEST(State, APlaceholderLivesAsLongAsPodsNameIt) {
  State state;
  const PodSlot pod = state.add_pod(make_pod("p", {{"cpu", 100}}));
  state.assign(pod, state.node_or_placeholder("a"), PodPhase::kBound);
  EXPECT_FALSE(state.find_node("a").valid());
  EXPECT_EQ(state.nodes_by_name().size(), 1U);
  const NodeSlot slot = state.upsert_node(make_node("a"));
  EXPECT_EQ(state.view(slot).used(kCpu), 100);
  state.remove_node("a");
  EXPECT_EQ(state.node_count(), 0U);
  EXPECT_EQ(state.view(slot).used(kCpu), 100);
  EXPECT_EQ(state.view(slot).allocatable(kCpu), 0);
  state.unassign(pod, PodPhase::kNotQueued);
  EXPECT_TRUE(state.nodes_by_name().empty());
}

TEST(State, AnUnchangedNodeGetsNoNewGeneration) {
  State state;
  const NodeSlot slot = state.upsert_node(make_node("a"));
  const uint32_t generation = state.node(slot).generation;
  state.upsert_node(make_node("a"));
  EXPECT_EQ(state.node(slot).generation, generation);
  state.upsert_node(make_node("a", {{"cpu", 1}}));
  EXPECT_GT(state.node(slot).generation, generation);
}

TEST(State, AReusedSlotKeepsCountingGenerations) {
  State state;
  const NodeSlot slot = state.upsert_node(make_node("a"));
  const uint32_t generation = state.node(slot).generation;
  state.remove_node("a");
  EXPECT_EQ(state.upsert_node(make_node("b")), slot);
  EXPECT_GT(state.node(slot).generation, generation);
}

TEST(State, AllocatableIsClampedBelowARequest) {
  State state;
  const NodeSlot slot = state.upsert_node(make_node("a", {{"memory", INT64_MAX}, {"cpu", -5}}));
  EXPECT_EQ(state.view(slot).allocatable(kMemory), kMaxAmount - 1);
  EXPECT_EQ(state.view(slot).allocatable(kCpu), 0);
  const PodSlot pod = state.add_pod(make_pod("p", {{"memory", INT64_MAX}}));
  EXPECT_EQ(state.pod_class(state.pod(pod).cls).request(kMemory), kMaxAmount);
}

TEST(State, EqualSpecsShareOneClassAndOneCopy) {
  State state;
  const PodSlot p = state.add_pod(make_pod("p")), q = state.add_pod(make_pod("q"));
  EXPECT_EQ(state.pod(p).cls, state.pod(q).cls);
  EXPECT_EQ(state.pod(p).pod.spec, state.pod(q).pod.spec);
}

TEST(State, TheHashIgnoresHistory) {
  State one, two;
  one.upsert_node(make_node("a", {{"x.com/y", 1}}));
  one.upsert_node(make_node("b"));
  one.upsert_node(make_node("c"));
  one.remove_node("b");
  two.upsert_node(make_node("c"));
  two.upsert_node(make_node("a", {{"x.com/y", 1}}));
  EXPECT_EQ(one.hash(), two.hash());
  const PodSlot pod = two.add_pod(make_pod("p"));
  EXPECT_NE(one.hash(), two.hash());
  two.remove_pod(pod);
  EXPECT_EQ(one.hash(), two.hash());
}

TEST(State, OrderFollowsNamesThroughRenumbering) {
  State state;
  state.upsert_node(make_node("a"));
  state.upsert_node(make_node("b"));
  for (std::string name = "a"; name.size() < 80; name += "a")
    state.upsert_node(make_node(name + "b"));  // each between two
  for (std::string name = "b"; name.size() < 80; name = "a" + name) state.upsert_node(make_node(name));
  uint64_t last = 0;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    EXPECT_GT(state.node(slot).order, last) << name;
    last = state.node(slot).order;
  }
}

TEST(State, TheChangeLogForgetsItsStart) {
  State state;
  const NodeSlot slot = state.upsert_node(make_node("a"));
  for (int i = 1; i < 3000; ++i) state.upsert_node(make_node("a", {{"cpu", i}}));
  EXPECT_GT(state.change_base(), 0U);
  EXPECT_EQ(state.change(state.change_end() - 1), slot);
}

RC_GTEST_PROP(Txn, RollbackRestoresTheState, (uint32_t seed)) {
  Rng rng(seed);
  State state;
  std::vector<NodeSlot> nodes;
  std::vector<PodSlot> pods;
  for (const char* name : {"a", "b", "c"}) nodes.push_back(state.upsert_node(make_node(name)));
  for (int i = 0; i < 8; ++i) {
    pods.push_back(state.add_pod(make_pod("p" + std::to_string(i), {{"cpu", i % 3}})));
    if (rng.chance(50))
      state.assign(pods.back(), nodes[rng.below(3)], rng.chance(50) ? PodPhase::kBound : PodPhase::kBinding);
  }
  const uint64_t before = state.hash();
  {
    Txn txn(state);
    std::vector<std::pair<size_t, uint64_t>> marks;
    for (int step = 0; step < 40; ++step) {
      const PodSlot pod = pods[rng.below(pods.size())];
      if (rng.chance(20)) marks.emplace_back(txn.mark(), state.hash());
      if (rng.chance(15) && !marks.empty()) {
        txn.rollback_to(marks.back().first);
        RC_ASSERT(state.hash() == marks.back().second);
        marks.pop_back();
      } else if (holds_room(state.pod(pod).phase)) {
        txn.evict(pod);
      } else {
        txn.place(pod, nodes[rng.below(3)]);
      }
    }
    if (rng.chance(50)) {
      txn.rollback();
      RC_ASSERT(state.hash() == before);
    }
  }
  RC_ASSERT(state.hash() == before);
}

TEST(Txn, CommitKeepsAndReportsInOrder) {
  State state;
  const NodeSlot a = state.upsert_node(make_node("a"));
  const PodSlot p = state.add_pod(make_pod("p")), q = state.add_pod(make_pod("q"));
  state.assign(q, a, PodPhase::kBound);
  {
    Txn txn(state);
    txn.place(p, a);
    txn.evict(q);
    const auto changes = txn.commit();
    ASSERT_EQ(changes.size(), 2U);
    EXPECT_EQ(changes[0].pod, p);
    EXPECT_EQ(changes[1].from, a);
    EXPECT_EQ(changes[1].phase_before, PodPhase::kBound);
  }
  EXPECT_EQ(state.pod(p).phase, PodPhase::kReserved);
  EXPECT_FALSE(holds_room(state.pod(q).phase));
}

}  // namespace
}  // namespace berth::engine::testing
