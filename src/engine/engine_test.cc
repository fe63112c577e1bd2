// What the engine makes of awkward streams of events: binds that fail late, stale watch events, lists in the middle.
#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "engine/testing_policies.h"

namespace berth::engine::testing {
namespace {

// A verdict in a cluster of `nodes` nodes of which none could be cleared for the pod.
std::string not_helped(const std::string& verdict, int nodes) {
  const std::string n = std::to_string(nodes);
  return verdict + " no new claims to deallocate, preemption: 0/" + n + " nodes are available: " + n +
         " Preemption is not helpful for scheduling.";
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGpu = "nvidia.com/gpu";

std::vector<std::string> names_of(const CycleResult& result, DecisionKind kind) {
  std::vector<std::string> out;
  for (const Decision& d : result.decisions)
    if (d.kind == kind) out.push_back(d.pod_name);
  return out;
}
std::vector<std::string> bound_in(const CycleResult& result) { return names_of(result, DecisionKind::kBind); }
std::vector<std::string> told_in(const CycleResult& result) { return names_of(result, DecisionKind::kUnschedulable); }

struct EngineTest : ::testing::Test {
  Driver driver{room_policies()};
};

TEST_F(EngineTest, TriesPodsByPriorityThenCreationThenNameThenUid) {
  driver.add(make_node("a"));
  const auto later = [](model::Pod pod, int64_t nanos) { return pod.created = Time{nanos}, pod; };
  auto twin = make_pod("young");
  twin.uid = "a-uid";
  driver.add(make_pod("young"));
  driver.add(twin);
  driver.add(later(make_pod("old"), -5));
  driver.add(later(with_priority(make_pod("urgent"), 7), 9));
  driver.add(make_pod("middle", {{"cpu", 10}}));
  const CycleResult result = driver.cycle();
  EXPECT_THAT(bound_in(result), ElementsAre("urgent", "old", "middle", "young", "young"));
  EXPECT_EQ(result.decisions[3].pod_uid, "a-uid");
}

TEST_F(EngineTest, APodThatBecomesUrgentOvertakes) {
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.add(make_pod("q", {{kGpu, 1}}));
  driver.add(with_priority(make_pod("q", {{kGpu, 1}}), 5));
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("q"));
}

TEST_F(EngineTest, AStaleWatchEventAfterOurBindKeepsThePlace) {
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  driver.bind_progress("uid-p", BindOutcome::kSucceeded);
  driver.add(make_pod("p", {{kGpu, 1}}));  // sent before the bind, arrives after it
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kBound);
  driver.add(make_pod("q", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
}

TEST_F(EngineTest, AnUnansweredBindKeepsItsPlaceUntilItsFateIsKnown) {
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  driver.bind_progress("uid-p", BindOutcome::kPreBinding);
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kPreBinding);
  driver.bind_progress("uid-p", BindOutcome::kSent);
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kBinding);
  driver.bind_progress("uid-p", BindOutcome::kUnknown);
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kUnknown);
  EXPECT_THAT(driver.cycle(Duration::seconds(100)).decisions, IsEmpty());
  EXPECT_EQ(driver.node_of("p"), "a");
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  EXPECT_THAT(bound_in(driver.cycle(Duration::seconds(1))), ElementsAre("p"));
}

TEST_F(EngineTest, AListInTheMiddleOfBindsKeepsThePlacesOfPodsItNames) {
  driver.add(make_node("a", {{kGpu, 2}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.add(make_pod("q", {{kGpu, 1}}));
  driver.cycle();
  driver.apply(PodsReplaced{{make_pod("q", {{kGpu, 1}}), make_pod("r", {{kGpu, 2}})}});
  EXPECT_EQ(driver.phase_of("q"), PodPhase::kReserved);
  EXPECT_FALSE(driver.state().find_pod("uid-p").valid());
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());        // one of two GPUs is free, r asks for both
  driver.bind_progress("uid-p", BindOutcome::kSucceeded);  // of a pod that no longer exists
  EXPECT_FALSE(driver.state().find_pod("uid-p").valid());
}

TEST_F(EngineTest, ABindThatFailsAfterItsNodeHasGoneLeavesNothingBehind) {
  driver.add(make_node("a"));
  driver.add(make_pod("p"));
  driver.cycle();
  driver.apply(NodeDeleted{"a"});
  EXPECT_EQ(driver.node_of("p"), "a");
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  EXPECT_EQ(driver.phase_of("p"), PodPhase::kBackoff);
  EXPECT_THAT(driver.state().nodes_by_name(), IsEmpty());
}

TEST_F(EngineTest, BindReportsAboutADeletedPodAreIgnored) {
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  driver.bind_progress("uid-p", BindOutcome::kSent);
  driver.apply(PodDeleted{"uid-p"});
  for (const auto outcome : {BindOutcome::kFailed, BindOutcome::kUnknown, BindOutcome::kSucceeded})
    driver.bind_progress("uid-p", outcome);
  driver.add(make_pod("q", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("q"));
}

TEST_F(EngineTest, APodOfTheSameNameWithANewUidIsAnotherPod) {
  driver.add(make_node("a", {{kGpu, 2}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  model::Pod next = make_pod("p", {{kGpu, 1}});
  next.uid = "uid-next";
  driver.add(next);  // a StatefulSet's: the old one is still on its way out
  EXPECT_THAT(driver.cycle().decisions, SizeIs(1));
  driver.apply(PodDeleted{"uid-p"});
  EXPECT_TRUE(driver.state().find_pod("uid-next").valid());
}

TEST_F(EngineTest, AnotherSchedulersBindWinsOverOurs) {
  driver.add(make_node("a", {{"cpu", 64'000}}));
  driver.add(make_node("b", {{"cpu", 1'000}}));
  driver.add(make_pod("p"));
  driver.cycle();
  ASSERT_EQ(driver.node_of("p"), "a");
  driver.add(bound_to(make_pod("p"), "b"));
  EXPECT_EQ(driver.node_of("p"), "b");
  EXPECT_THAT(driver.state().node(driver.state().find_node("a")).pods, IsEmpty());
  driver.bind_progress("uid-p", BindOutcome::kFailed);  // the 409 of our own bind comes after the watch
  EXPECT_EQ(driver.node_of("p"), "b");
}

TEST_F(EngineTest, AnInPlaceResizeMayOverUseANodeAndIsWorkedOffLater) {
  driver.add(make_node("a", {{"cpu", 1000}}));
  driver.add(bound_to(make_pod("p", {{"cpu", 500}}), "a"));
  driver.add(bound_to(make_pod("p", {{"cpu", 4000}}), "a"));
  driver.add(make_pod("q", {{"cpu", 1}}));
  driver.add(make_pod("r"));  // asks for no cpu: over-use of cpu is not its affair
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("r"));
  driver.add(bound_to(make_pod("p", {{"cpu", 999}}), "a"));
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("q"));
}

TEST_F(EngineTest, AShrinkingNodeKeepsItsPodsAndTakesNoMore) {
  driver.add(make_node("a", {{kGpu, 8}}));
  for (const char* name : {"p", "q"}) driver.add(make_pod(name, {{kGpu, 4}}));
  driver.cycle();
  driver.confirm();
  driver.add(make_node("a", {{kGpu, 6}}));
  driver.add(make_pod("r", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
  driver.apply(PodDeleted{"uid-p"});
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("r"));
}

TEST_F(EngineTest, GatedTerminatingAndForeignPodsAreNotScheduled) {
  driver.add(make_node("a"));
  model::Pod gated = make_pod("gated"), terminating = make_pod("terminating"), foreign = make_pod("foreign");
  gated.gated = terminating.terminating = true;
  foreign.ours = false;
  for (const auto& pod : {gated, terminating, foreign}) driver.add(pod);
  EXPECT_THAT(driver.cycle().decisions, IsEmpty());
  EXPECT_EQ(driver.explain("uid-gated").reason, "SchedulingGated");
  EXPECT_EQ(driver.explain("uid-terminating").reason, "Terminating");
  EXPECT_EQ(driver.explain("uid-foreign").reason, "OtherScheduler");
  EXPECT_FALSE(driver.explain("uid-nobody").known);
  gated.gated = false;
  driver.add(gated);
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("gated"));
}

TEST_F(EngineTest, ATerminatingPodHoldsItsRoomUntilItIsTerminal) {
  driver.add(make_node("a", {{kGpu, 1}}));
  model::Pod old = bound_to(make_pod("old", {{kGpu, 1}}), "a");
  old.terminating = true;
  driver.add(old);
  driver.add(make_pod("p", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
  old.terminal = true;
  driver.add(old);
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("p"));
}

TEST_F(EngineTest, AFailingBindBacksOffTwiceAsLongEachTimeUpToTheCap) {
  driver.add(make_node("a"));
  driver.add(make_pod("p"));
  driver.cycle();
  for (const int64_t seconds : {1, 2, 4, 8, 10, 10}) {
    driver.bind_progress("uid-p", BindOutcome::kFailed);
    const CycleResult early = driver.cycle(Duration::millis(seconds * 1000 - 1));
    EXPECT_THAT(early.decisions, IsEmpty()) << seconds;
    EXPECT_EQ(driver.explain("uid-p").reason, "Backoff");
    EXPECT_EQ(early.wakeup, driver.now() + Duration::millis(1)) << seconds;
    EXPECT_THAT(bound_in(driver.cycle(Duration::millis(1))), ElementsAre("p")) << seconds;
  }
}

TEST_F(EngineTest, ABackoffCountsFromTheLatestTimeThatTheEngineWasTold) {
  driver.add(make_node("a"));
  driver.add(make_pod("p"));
  driver.cycle();
  driver.apply(ClockAdvanced{driver.now() + Duration::seconds(60)});
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  EXPECT_THAT(driver.cycle(Duration::seconds(60)).decisions, IsEmpty());
  EXPECT_THAT(bound_in(driver.cycle(Duration::seconds(1))), ElementsAre("p"));
}

TEST_F(EngineTest, AStatusUpdateDoesNotEndABackoff) {
  driver.add(make_node("a"));
  driver.add(make_pod("p"));
  driver.cycle();
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  driver.add(make_pod("p"));
  EXPECT_THAT(driver.cycle(Duration::millis(999)).decisions, IsEmpty());
  EXPECT_EQ(driver.engine().backoff_pods(), 1U);
}

TEST_F(EngineTest, ReplacementsOfPodsThatTheKubeletRefusedWaitLongerEachTime) {
  driver.add(make_node("a"));
  const auto replacement = [](const std::string& name) {
    model::Pod pod = make_pod(name);
    return pod.owner_uid = "job", pod;
  };
  driver.add(replacement("p0"));
  driver.cycle();
  for (int i = 0; i < 3; ++i) {
    model::Pod refused = bound_to(replacement("p" + std::to_string(i)), "a");
    refused.terminal = refused.rejected_by_kubelet = true;
    driver.add(refused);
    EXPECT_FALSE(driver.state().find_pod(refused.uid).valid());
    driver.add(replacement("p" + std::to_string(i + 1)));
    EXPECT_THAT(driver.cycle(Duration::millis((1000 << i) - 1)).decisions, IsEmpty()) << i;
    EXPECT_THAT(driver.cycle(Duration::millis(1)).decisions, SizeIs(1)) << i;
  }
}

TEST_F(EngineTest, APodOnAnUnknownNodeCountsOnceTheNodeAppears) {
  driver.add(bound_to(make_pod("early", {{kGpu, 1}}), "a"));
  EXPECT_EQ(driver.state().node_count(), 0U);
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("p", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
  driver.apply(NodeDeleted{"a"});
  driver.add(make_node("a", {{kGpu, 2}}));
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("p"));
}

TEST_F(EngineTest, ANodeListDropsWhatItDoesNotName) {
  driver.add(make_node("a"));
  driver.add(make_node("b"));
  driver.apply(NodesReplaced{{make_node("c")}});
  EXPECT_EQ(driver.state().node_count(), 1U);
  driver.add(make_pod("p"));
  driver.cycle();
  EXPECT_EQ(driver.node_of("p"), "c");
}

TEST_F(EngineTest, AFailedBindFollowsItsNamespacesNewPlacement) {
  driver.add(make_node("a"));
  driver.add(make_pod("p"));
  driver.cycle();
  driver.apply(NamespaceUpserted{"default", model::Placement::kPack});
  driver.bind_progress("uid-p", BindOutcome::kFailed);
  const PodState& pod = driver.state().pod(driver.state().find_pod("uid-p"));
  EXPECT_TRUE(driver.state().pod_class(pod.cls).packs);
}

TEST_F(EngineTest, APodsOwnPlacementWinsOverItsNamespaces) {
  model::Pod own = make_pod("own"), other = make_pod("other");
  own.placement = model::Placement::kSpread;
  driver.add(own);
  driver.add(other);
  const auto packs = [&](const char* uid) {
    return driver.state().pod_class(driver.state().pod(driver.state().find_pod(uid)).cls).packs;
  };
  driver.apply(NamespaceUpserted{"default", model::Placement::kPack});
  EXPECT_FALSE(packs("uid-own"));
  EXPECT_TRUE(packs("uid-other"));
  driver.apply(NamespaceUpserted{"default", model::Placement::kDefault});
  EXPECT_FALSE(packs("uid-other"));
}

TEST_F(EngineTest, AClassIdThatIsUsedAgainStartsAfresh) {
  driver.add(make_node("a", {{kGpu, 1}}));
  driver.add(make_pod("big", {{kGpu, 2}}));
  driver.cycle();
  driver.apply(PodDeleted{"uid-big"});
  driver.add(make_pod("small", {{kGpu, 1}}));  // takes the released class id
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("small"));
}

TEST_F(EngineTest, HostileAmountsNeverOversell) {
  driver.add(make_node("a", {{"cpu", INT64_MAX}, {"memory", INT64_MAX}}));
  driver.add(make_pod("p", {{"memory", INT64_MAX}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
  PodsReplaced flood;  // more of them than 64 bits can add up
  for (int i = 0; i < 9000; ++i)
    flood.pods.push_back(bound_to(make_pod("f" + std::to_string(i), {{"memory", INT64_MAX}}), "a"));
  driver.apply(flood);
  driver.add(make_node("a", {{"cpu", INT64_MAX}, {"memory", INT64_MAX}, {"pods", 100'000}}));
  driver.add(make_pod("q", {{"memory", 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), IsEmpty());
  driver.apply(PodsReplaced{{make_pod("q", {{"memory", 1}})}});
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("q"));
}

using EngineDeathTest = EngineTest;

TEST_F(EngineDeathTest, TimeDoesNotGoBack) {
  Engine engine(room_policies());
  engine.run_cycle(Time{5});
  EXPECT_DEATH(engine.run_cycle(Time{4}), "time does not go back");
}

// ---- What waiting pods are told, and when.

struct EngineReports : EngineTest {};

TEST_F(EngineReports, EachWaitingPodIsToldOnceAtOnce) {
  driver.add(make_node("a", {{kGpu, 1}}));
  for (const char* name : {"p", "q"}) driver.add(make_pod(name, {{kGpu, 2}}));
  EXPECT_THAT(told_in(driver.cycle()), ElementsAre("p", "q"));
  EXPECT_THAT(driver.told("uid-p"),
              ElementsAre(not_helped("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", 1)));
  EXPECT_EQ(driver.engine().unschedulable_pods(), 2U);
  for (int i = 0; i < 5; ++i) EXPECT_THAT(driver.cycle(Duration::seconds(60)).decisions, IsEmpty());
}

TEST_F(EngineReports, OurOwnStatusPatchComingBackIsNoNews) {
  driver.add(make_pod("p"));
  EXPECT_THAT(told_in(driver.cycle()), ElementsAre("p"));
  driver.add(make_pod("p"));
  EXPECT_THAT(driver.cycle(Duration::seconds(60)).decisions, IsEmpty());
}

TEST_F(EngineReports, AChangedVerdictIsToldAfterTheIntervalAndTheWakeupSaysWhen) {
  driver.add(make_node("a"));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  const Time told_at = driver.now();
  driver.add(make_node("b"));
  const CycleResult early = driver.cycle(Duration::seconds(29));
  EXPECT_THAT(early.decisions, IsEmpty());
  ASSERT_TRUE(early.has_wakeup);
  EXPECT_EQ(early.wakeup, told_at + Duration::seconds(30));
  const CycleResult due = driver.cycle(Duration::seconds(1));
  EXPECT_THAT(told_in(due), ElementsAre("p"));
  ASSERT_TRUE(due.has_wakeup);
  EXPECT_EQ(due.wakeup, told_at + Duration::seconds(600)) << "then a node may be kept for it";
  EXPECT_EQ(driver.told("uid-p").back(), not_helped("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 2));
}

TEST_F(EngineReports, APodThatHeardAnOlderTextHearsTheNewOneThoughANewcomerHeardItFirst) {
  driver.add(make_node("a"));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.cycle();
  driver.add(make_node("b"));
  driver.add(make_pod("q", {{kGpu, 1}}));
  const CycleResult first = driver.cycle();
  EXPECT_THAT(told_in(first), ElementsAre("q"));
  EXPECT_TRUE(first.has_wakeup);
  EXPECT_THAT(told_in(driver.cycle(Duration::seconds(30))), ElementsAre("p"));
}

TEST_F(EngineReports, APodWhoseSpecChangesIsToldAfresh) {
  driver.add(make_node("a"));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.add(make_pod("q", {{"x.com/y", 1}}));
  driver.cycle();
  driver.add(make_pod("p", {{"x.com/y", 1}}));
  driver.cycle();
  EXPECT_THAT(driver.told("uid-p"),
              ElementsAre(not_helped("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", 1),
                          not_helped("0/1 nodes are available: 1 Insufficient x.com/y.", 1)));
}

TEST_F(EngineReports, APodThatChangesBeforeItWasToldIsToldTheLatter) {
  driver.add(make_node("a"));
  driver.add(make_pod("first", {{kGpu, 1}}));
  driver.cycle();
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.add(make_pod("p", {{"x.com/y", 1}}));
  driver.cycle();
  EXPECT_THAT(driver.told("uid-p"), ElementsAre(not_helped("0/1 nodes are available: 1 Insufficient x.com/y.", 1)));
}

TEST_F(EngineReports, NoCycleTellsMoreThanItsBoundAndNoPodIsForgotten) {
  for (int i = 0; i < 7; ++i) driver.add(make_pod("p" + std::to_string(i)));
  int told = 0;
  for (int cycles = 0; cycles < 4; ++cycles) {
    const CycleResult result = driver.cycle({}, {.max_reports = 2});
    EXPECT_EQ(result.unfinished, cycles < 3);
    told += static_cast<int>(result.decisions.size());
  }
  EXPECT_EQ(told, 7);
  EXPECT_THAT(driver.told("uid-p6"), ElementsAre("no nodes available to schedule pods"));
}

TEST_F(EngineReports, AFlappingVerdictDoesNotFlood) {
  driver.add(make_pod("p", {{kGpu, 1}}));
  size_t told = 0;
  for (int second = 0; second < 120; ++second) {
    if (second % 2 == 0) driver.add(make_node("a"));
    else driver.apply(NodeDeleted{"a"});
    told += driver.cycle(Duration::seconds(1)).decisions.size();
    driver.add(make_pod("p", {{kGpu, 1}}));  // our condition, patched into the pod, comes back
  }
  EXPECT_LE(told, 5U);
}

TEST_F(EngineReports, ABlockedClassCostsTheSameForOnePodOrAHundredThousand) {
  const auto work_after_change = [](int pods) {
    Engine engine(room_policies());
    engine.apply(NodesReplaced{{make_node("a"), make_node("b")}});
    PodsReplaced list;
    const auto spec = make_pod("x", {{kGpu, 1}}).spec;
    for (int i = 0; i < pods; ++i) list.pods.push_back(make_pod("p" + std::to_string(i))), list.pods.back().spec = spec;
    engine.apply(list);
    EXPECT_EQ(engine.run_cycle(Time{1}).work_used, 2);
    EXPECT_EQ(engine.run_cycle(Time{2}).work_used, 0);
    engine.apply(NodeUpserted{make_node("b", {{"cpu", 1}})});
    return engine.run_cycle(Time{3}).work_used;
  };
  EXPECT_EQ(work_after_change(1), 1);
  EXPECT_EQ(work_after_change(100'000), 1);
}

// ---- Bounded cycles.

TEST_F(EngineTest, AnEventBetweenBoundedCyclesReachesClassesThatWereLookedAtBefore) {
  driver.add(make_node("a"));
  driver.add(make_pod("p", {{kGpu, 1}}));
  driver.add(make_pod("q", {{"x.com/y", 1}}));
  driver.cycle();
  driver.add(make_node("a", {{"cpu", 5}}));
  EXPECT_TRUE(driver.cycle({}, {.work = 1}).unfinished);  // p's class has been looked at, q's has not
  driver.add(make_node("a", {{kGpu, 1}}));
  EXPECT_THAT(bound_in(driver.cycle()), ElementsAre("p"));
}

TEST_F(EngineTest, BindsStopAtTheirBoundAndGoOnNextTime) {
  driver.add(make_node("a"));
  for (const char* name : {"p", "q", "r"}) driver.add(make_pod(name));
  EXPECT_THAT(bound_in(driver.cycle({}, {.max_binds = 2})), ElementsAre("p", "q"));
  const CycleResult rest = driver.cycle({}, {.max_binds = 2});
  EXPECT_THAT(bound_in(rest), ElementsAre("r"));
  EXPECT_FALSE(rest.unfinished);
}

// Each cycle has less work than what changes between cycles: placing still gets its turn.
TEST_F(EngineTest, PlacingIsNotStarvedByABusyCluster) {
  for (char c = 'a'; c < 'i'; ++c) driver.add(make_node(std::string(1, c)));
  for (int i = 0; i < 4; ++i) driver.add(make_pod("blocked" + std::to_string(i), {{"x.com/y" + std::to_string(i), 1}}));
  driver.cycle();
  driver.add(make_pod("p"));
  bool placed = false;
  for (int cycle = 0; cycle < 100 && !placed; ++cycle) {
    for (char c = 'a'; c < 'd'; ++c) driver.add(make_node(std::string(1, c), {{"cpu", 1000 + cycle}}));
    placed = !bound_in(driver.cycle({}, {.work = 8})).empty();
  }
  EXPECT_TRUE(placed);
}

TEST_F(EngineTest, ExplainsNodeByNode) {
  driver.add(make_node("b", {{kGpu, 1}}));
  driver.add(make_node("a"));
  driver.add(make_pod("p", {{kGpu, 2}}));
  driver.cycle();
  const Explanation why = driver.explain("uid-p");
  EXPECT_EQ(why.reason, "Unschedulable");
  EXPECT_EQ(why.message, not_helped("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.", 2));
  ASSERT_THAT(why.nodes, SizeIs(2));
  EXPECT_EQ(why.nodes[0].node, "a");
  ASSERT_THAT(why.nodes[1].reasons, SizeIs(1));
  EXPECT_EQ(why.nodes[1].reasons[0].detail, "asks 2, free 1");
  driver.add(make_node("c", {{kGpu, 2}}));
  EXPECT_EQ(driver.explain("uid-p").reason, "Pending");
  driver.cycle();
  EXPECT_EQ(driver.explain("uid-p").message, "has a place on c");
}

}  // namespace
}  // namespace berth::engine::testing
