// What a Trial shows of a node, and that nothing of it is left; what looking for victims costs.
#include "engine/trial.h"

#include <gtest/gtest.h>

#include "engine/testing.h"

namespace berth::engine::testing {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr ReasonInfo kTaken{.text = "taken", .preemption_helps = true};

void room_or_taken(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  for (const ResourceAmount& request : pod.requests)
    if (request.amount > node.free(request.id)) return reasons.push_back({&kTaken, {}, 0});
}
constexpr PolicyInfo kRoomOrTaken = filter_policy("room-or-taken", "", 10, &room_or_taken);

model::Pod with_port(const model::Pod& pod) {
  return with_spec(pod, [](model::SchedulingSpec& spec) { spec.host_ports = {{.port = 80}}; });
}

struct Scene {
  explicit Scene(const model::Pod& incoming) {
    node = state.upsert_node(make_node("a", {{kGpu, 8}}));
    for (const char* name : {"p", "q"}) {
      pods.push_back(state.add_pod(with_port(make_pod(name, {{kGpu, 3}}))));
      state.assign(pods.back(), node, PodPhase::kBound);
    }
    cls = state.pod(state.add_pod(model::Pod(incoming))).cls;
  }
  int64_t free_gpus() const { return state.view(node).free(state.pod_class(cls).requests.back().id); }
  std::span<const ResourceAmount> requests(PodSlot pod) const { return state.pod_class(state.pod(pod).cls).requests; }

  State state;
  NodeSlot node;
  std::vector<PodSlot> pods;
  ClassId cls;
};

TEST(Trial, ShowsTheNodeWithoutThePodsThatAreOutAndLeavesNoTrace) {
  Scene scene(with_port(make_pod("new", {{kGpu, 1}})));
  const uint64_t before = scene.state.hash(), changes = scene.state.change_end();
  ASSERT_EQ(scene.free_gpus(), 2);
  {
    Trial trial(scene.state, scene.node, scene.state.pod_class(scene.cls));
    for (const PodSlot pod : scene.pods) trial.take_out(pod, scene.requests(pod));
    EXPECT_EQ(scene.free_gpus(), 8);
    EXPECT_TRUE(scene.state.view(scene.node).host_ports().empty());
    trial.put_back(scene.pods[0], scene.requests(scene.pods[0]));
    EXPECT_EQ(scene.free_gpus(), 5);
    EXPECT_EQ(scene.state.view(scene.node).host_ports().size(), 1U);
  }
  EXPECT_EQ(scene.free_gpus(), 2);
  EXPECT_EQ(scene.state.view(scene.node).host_ports().size(), 2U);
  EXPECT_EQ(scene.state.hash(), before);
  EXPECT_EQ(scene.state.change_end(), changes);
}

// A full fleet, and what its cycles cost in units of work.
struct Fleet {
  static constexpr int kNodes = 200;
  explicit Fleet(const EngineOptions& options = {}) : driver({{&kRoomOrTaken}, {}}, options) {
    for (int i = 0; i < kNodes; ++i) {
      const std::string name = std::to_string(1000 + i);
      driver.add(make_node(name, {{kGpu, 1}}));
      driver.add(bound_to(make_pod("low-" + name, {{kGpu, 1}}), name));
    }
    driver.cycle();
  }
  void submit(const std::string& name, int32_t priority = 10) {
    driver.add(with_priority(make_pod(name, {{kGpu, 1}}), priority));
  }
  Driver driver;
};

TEST(VictimSearch, TheNextPodOfAClassCostsNoLookAtNodesThatDidNotChange) {
  Fleet fleet;
  fleet.submit("first");
  EXPECT_GE(fleet.driver.cycle().work_used, Fleet::kNodes);
  fleet.submit("second");
  EXPECT_LT(fleet.driver.cycle().work_used, 20);
  EXPECT_EQ(fleet.driver.node_of("first"), "1000");
  EXPECT_EQ(fleet.driver.node_of("second"), "1001");
}

TEST(VictimSearch, ANominatedPodAloneInItsClassAsksNoMoreWhomItCouldSendAway) {
  Fleet fleet;
  fleet.submit("first");
  fleet.driver.cycle();
  for (int i = 100; i < 150; ++i) fleet.driver.apply(PodDeleted{"uid-low-" + std::to_string(1000 + i)});
  for (int i = 100; i < 150; ++i) {
    const std::string name = std::to_string(1000 + i);
    fleet.driver.add(bound_to(make_pod("next-" + name, {{kGpu, 1}}), name));
  }
  EXPECT_LE(fleet.driver.cycle().work_used, 60);  // a look whether it fits there, and no more
  EXPECT_EQ(fleet.driver.phase_of("first"), PodPhase::kNominated);
}

TEST(VictimSearch, WhatAClassKnowsIsKeptWhileAPodOfItIsNominated) {
  Fleet fleet({.idle_classes = 0});
  fleet.submit("first", 10);
  fleet.submit("second", 20);
  fleet.driver.cycle();
  fleet.driver.apply(PodDeleted{"uid-low-1150"});
  fleet.driver.add(bound_to(make_pod("next", {{kGpu, 1}}), "1150"));
  EXPECT_LT(fleet.driver.cycle().work_used, 10);
  EXPECT_EQ(fleet.driver.phase_of("first"), PodPhase::kNominated);
  EXPECT_EQ(fleet.driver.phase_of("second"), PodPhase::kNominated);
}

}  // namespace
}  // namespace berth::engine::testing
