// Places of admitted workloads that are lost: one that has not begun does so with all of its pods or with none.
#include <gtest/gtest.h>

#include "scenario/workload_world.h"

namespace berth::scenario {
namespace {

// A gang of six pods of two GPUs each, admitted on nodes with room for eight and four.
struct LostPlaces : WorkloadWorld, ::testing::Test {
  LostPlaces() {
    queues(64);
    driver.add(make_node("b", {{kGpu, 4}}));
  }
  void admit() {
    driver.apply(WorkloadUpserted{workload_of("gang", 6)});
    driver.cycle();
    ASSERT_EQ(status("gang").phase, quota::WorkloadPhase::kAdmitted);
  }
  void come(int from, int to) {
    for (int i = from; i < to; ++i) driver.add(pod_of("gang", "gang-" + std::to_string(i)));
  }
  void cordon(const std::string& name) {
    model::Node node = driver.state().node(driver.state().find_node(name)).node;
    node.unschedulable = true;
    driver.add(node);
  }
  // The node on which the first pod is not.
  std::string other_node() const { return driver.node_of("gang-0") == "a" ? "b" : "a"; }
  void settle() {
    for (int turn = 0; turn < 5; ++turn) {
      for (const Decision& decision : driver.cycle().decisions) bound += decision.kind == DecisionKind::kBind ? 1 : 0;
      driver.confirm();
    }
  }
  int bound = 0;
};

TEST_F(LostPlaces, BeforePodsComeTheGangWaitsForPlacesAgain) {
  admit();
  cordon("b");
  come(0, 6);
  settle();
  EXPECT_EQ(bound, 0);
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
  driver.apply(WorkloadReleased{"uid-gang"});
  settle();
  EXPECT_EQ(status("gang").reason, "WaitingForPlace");
  driver.add(make_node("c", {{kGpu, 4}}));
  settle();
  EXPECT_EQ(status("gang").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(bound, 6);
}

TEST_F(LostPlaces, AnotherPlaceIsTakenWhereThereIsOne) {
  admit();
  driver.add(make_node("c", {{kGpu, 4}}));
  cordon("b");
  come(0, 6);
  settle();
  EXPECT_EQ(bound, 6);
  EXPECT_EQ(status("gang").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(driver.node_of("gang-5"), "c");
}

TEST_F(LostPlaces, WhatHasJustBegunIsTakenBack) {
  admit();
  come(0, 2);
  settle();
  ASSERT_EQ(bound, 2);
  cordon(other_node());
  come(2, 6);
  settle();
  EXPECT_EQ(bound, 2);
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
}

TEST_F(LostPlaces, PodsThatHaveTakenTheirPlacesGiveThemBack) {
  admit();
  come(0, 6);
  bound += static_cast<int>(driver.cycle({}, {.max_binds = 1}).decisions.size());
  driver.confirm();
  ASSERT_EQ(bound, 1);
  cordon(other_node());
  settle();
  EXPECT_EQ(bound, 1);
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
}

TEST_F(LostPlaces, WhatHasRunForAWhileGoesOn) {
  admit();
  come(0, 2);
  settle();
  driver.cycle(Duration::seconds(61));
  cordon(other_node());
  come(2, 6);
  settle();
  EXPECT_EQ(status("gang").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("gang").evicted, "");
  EXPECT_LT(bound, 6);
  driver.add(make_node("c", {{kGpu, 12}}));
  settle();
  EXPECT_EQ(bound, 6);
}

TEST_F(LostPlaces, WhatHasRunAndEndedGoesOn) {
  admit();
  come(0, 6);
  settle();
  ASSERT_EQ(bound, 6);
  for (int i = 0; i < 6; ++i) driver.apply(PodDeleted{"uid-gang-" + std::to_string(i)});
  cordon("b");
  come(6, 12);
  settle();
  EXPECT_EQ(status("gang").evicted, "");
  EXPECT_EQ(bound, 10);
}

TEST_F(LostPlaces, AMoreImportantPodTakesAPlaceAndTheGangGivesAllBack) {
  admit();
  model::Pod important = with_priority(make_pod("important", {{kGpu, 4}}), 1000);
  come(0, 6);
  bound += static_cast<int>(driver.cycle({}, {.max_binds = 1}).decisions.size());
  driver.confirm();
  ASSERT_EQ(bound, 1);
  const std::string other = other_node();
  driver.add(with_spec(important, [&](auto& spec) { spec.node_selector = {{"kubernetes.io/hostname", other}}; }));
  settle();
  EXPECT_EQ(driver.node_of("important"), other);
  EXPECT_EQ(bound, 2) << "the important one beside the first of the gang";
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
}

// Its annotation is the tenant's to edit.
TEST_F(LostPlaces, APodStaysWithTheWorkloadThatItNamedFirst) {
  admit();
  come(0, 6);
  settle();
  ASSERT_EQ(bound, 6);
  model::Pod first = bound_to(pod_of("other", "gang-0"), driver.node_of("gang-0"));
  model::Pod second = bound_to(pod_of("gang", "gang-1"), driver.node_of("gang-1"));
  second.workload.clear();
  for (const model::Pod& edited : {first, second}) {
    driver.add(edited);
    driver.cycle();
    driver.apply(PodDeleted{edited.uid});
    settle();
  }
  EXPECT_EQ(status("gang").phase, quota::WorkloadPhase::kAdmitted);
  come(6, 9);
  settle();
  EXPECT_EQ(bound, 8) << "two took the places of those that have gone";
}

struct RestoredPlaces : LostPlaces {
  void restore(std::optional<bool> ran) {
    driver.apply(
        WorkloadAdmitted{workload_of("gang", 6), {.cluster_queue = "team", .assignment = given(6), .ran = ran}});
  }
};

TEST_F(RestoredPlaces, PodsThatWaitAreBoundAllOrNone) {
  cordon("b");
  come(0, 6);
  restore(std::nullopt);
  settle();
  EXPECT_EQ(bound, 0);
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
}

TEST_F(RestoredPlaces, WithoutPodsItHasNotBegunWhereOthersSaySo) {
  cordon("b");
  restore(false);
  settle();
  EXPECT_EQ(status("gang").evicted, "NodeFailures");
}

TEST_F(RestoredPlaces, PodsThatNobodyLinksToItMayRun) {
  cordon("b");
  restore(std::nullopt);
  settle();
  EXPECT_EQ(status("gang").evicted, "");
}

TEST_F(RestoredPlaces, OneThatLeavesItsPlaceHasRun) {
  for (int i = 0; i < 4; ++i) {
    model::Pod pod = bound_to(pod_of("gang", "gang-" + std::to_string(i)), "a");
    pod.terminating = i == 0;
    driver.add(pod);
  }
  cordon("b");
  restore(std::nullopt);
  settle();
  EXPECT_EQ(status("gang").evicted, "") << "its place is there once it has left";
}

TEST_F(RestoredPlaces, PodsThatHaveEndedHaveRun) {
  cordon("b");
  come(0, 6);
  restore(true);
  settle();
  EXPECT_EQ(status("gang").evicted, "");
  EXPECT_EQ(bound, 4);
}

TEST_F(RestoredPlaces, PodsOfOtherSchedulersAreNoneOfItsBusiness) {
  cordon("b");
  model::Pod other = pod_of("gang", "gang-0");
  other.ours = false;
  driver.add(other);
  restore(std::nullopt);
  settle();
  EXPECT_EQ(status("gang").evicted, "");
}

}  // namespace
}  // namespace berth::scenario
