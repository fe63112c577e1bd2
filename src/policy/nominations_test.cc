// Nominations where inter-pod terms are at stake: a nominated pod counts where it will run, and promises do not undo
// one another for ever.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "engine/testing.h"
#include "engine/testing_peers.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

model::Pod web(const std::string& name, int64_t cpu = 1000) {
  model::Pod pod = make_pod(name, {{"cpu", cpu}});
  pod.labels = std::make_shared<const model::Labels>(model::Labels{{"app", "web"}});
  return pod;
}

model::Pod spread_web(const std::string& name, int64_t cpu = 1000) {
  return with_spec(web(name, cpu),
                   [](model::SchedulingSpec& spec) { spec.peers.spread = {spread_over(kHostname, app("web"))}; });
}

model::Pod leaving(model::Pod pod) {
  pod.terminating = true;
  return pod;
}

// "Bind high full", "Evict low full", ... in order; what is said of pods that wait is left out.
std::vector<std::string> acts_of(const CycleResult& result) {
  std::vector<std::string> out;
  for (const Decision& decision : result.decisions) {
    const std::string what = decision.pod_name + " " + decision.node_name;
    if (decision.kind == DecisionKind::kBind) out.push_back("Bind " + what);
    if (decision.kind == DecisionKind::kEvict) out.push_back("Evict " + what);
    if (decision.kind == DecisionKind::kNominate) out.push_back("Nominate " + what);
  }
  return out;
}

using Acts = std::vector<std::string>;

TEST(Nominations, APlaceThatOnlyTheNominationMakesIsNoReasonToGiveItUp) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(make_node("wide"));
  driver.add(bound_to(make_pod("low", {{"cpu", 1000}}), "full"));
  driver.add(bound_to(web("one"), "wide"));
  driver.add(with_priority(spread_web("two"), 10));
  driver.cycle();
  ASSERT_EQ(driver.explain("uid-two").phase, PodPhase::kNominated);
  // With two promised to "full", one more on "wide" would make no skew; without it, it would.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.cycle(Duration::seconds(1)).decisions.empty());
  EXPECT_EQ(driver.explain("uid-two").phase, PodPhase::kNominated);
  driver.apply(PodDeleted{"uid-low"});
  const CycleResult bound = driver.cycle(Duration::seconds(1));
  ASSERT_EQ(bound.decisions.size(), 1U);
  EXPECT_EQ(bound.decisions[0].node_name, "full");
}

// "high" may have one more of its kind beside it on no node. While "low" leaves, "middle" is nominated for the same
// node: that must not cost "high" its nomination, which it would take back at once, and so on.
TEST(Nominations, ALesserNominationDoesNotUndoAGreaterOne) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(make_node("bare", {{"cpu", 10}}));
  driver.add(bound_to(web("low", 100), "full"));
  driver.add(with_priority(spread_web("high", 900), 10));
  driver.add(with_priority(web("middle", 100), 5));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict low full", "Nominate high full", "Nominate middle full"}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.cycle(Duration::seconds(1)).decisions.empty());
  driver.apply(PodDeleted{"uid-low"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind high full", "Bind middle full"}));
}

// Nor does it where the two are promised different nodes of one zone, of which "high" would take either. When "high"
// can start, "middle" has to give way for as long as that takes; "other", in another zone, does not.
TEST(Nominations, ALesserNominationOnAnotherNodeDoesNotUndoAGreaterOne) {
  Driver driver(default_policies());
  const std::vector<std::tuple<std::string, std::string, int64_t>> nodes = {
      {"a", "x", 1000}, {"b", "x", 1000}, {"c", "y", 1000}, {"far", "z", 10}};
  for (const auto& [name, zone, cpu] : nodes) {
    model::Node node = make_node(name, {{"cpu", cpu}});
    node.labels.set("zone", zone);
    driver.add(node);
    if (cpu == 1000) driver.add(bound_to(make_pod("low-" + name, {{"cpu", 1000}}), name));
  }
  driver.add(with_priority(
      with_spec(web("high"),
                [](model::SchedulingSpec& spec) { spec.peers.spread = {spread_over("zone", app("web"))}; }),
      10));
  driver.add(with_priority(web("middle"), 5));
  driver.add(with_priority(web("other"), 4));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict low-a a", "Nominate high a", "Evict low-b b", "Nominate middle b",
                                           "Evict low-c c", "Nominate other c"}));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.cycle(Duration::seconds(1)).decisions.empty());
  driver.apply(PodDeleted{"uid-low-a"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind high a", "Nominate middle b"}));
  driver.apply(PodDeleted{"uid-low-b"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind middle b"}));
}

// The same, with a pod that does not end: once nothing but the lesser nomination is in its way, "high" starts.
TEST(Nominations, WhereOnlyLesserNominationsAreInTheWayTheGreaterOneStarts) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(make_node("bare", {{"cpu", 10}}));
  driver.add(leaving(bound_to(make_pod("stuck", {{"cpu", 100}}), "full")));
  driver.add(bound_to(web("low", 100), "full"));
  driver.add(with_priority(spread_web("high", 800), 10));
  driver.add(with_priority(web("middle", 100), 5));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict low full", "Nominate high full", "Nominate middle full"}));
  driver.apply(PodDeleted{"uid-low"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind high full", "Bind middle full"}));
}

// A nomination alone keeps nobody more important waiting, and nobody leaves for its sake before it is clear for whom.
TEST(Nominations, APodThatFitsWithoutALesserNominationStartsAtOnce) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(with_priority(bound_to(make_pod("small", {{"cpu", 100}}), "full"), 1));
  driver.add(bound_to(make_pod("large", {{"cpu", 500}}), "full"));
  driver.add(with_priority(make_pod("middle", {{"cpu", 600}}), 5));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict large full", "Nominate middle full"}));
  driver.add(with_priority(make_pod("high", {{"cpu", 400}}), 10));
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))),
            (Acts{"Bind high full", "Evict small full", "Nominate middle full"}));
}

// When the first of several victims has left, none of those that wait for the others loses its nomination.
TEST(Nominations, EachWaitsUntilThereIsRoomForAll) {
  Driver driver(default_policies());
  for (const char* node : {"a", "b"}) driver.add(make_node(node, {{"cpu", 400}}));
  for (const char* name : {"low-1", "low-2", "low-3", "low-4"})
    driver.add(bound_to(make_pod(name, {{"cpu", 100}}), "a"));
  driver.add(bound_to(with_priority(make_pod("mid", {{"cpu", 400}}), 1), "b"));
  for (const char* name : {"boss-1", "boss-2", "boss-3"}) driver.add(with_priority(make_pod(name, {{"cpu", 100}}), 10));
  EXPECT_EQ(driver.cycle().decisions.size(), 6U);
  driver.apply(PodDeleted{"uid-low-4"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), Acts{});
  driver.apply(PodDeleted{"uid-low-3"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), Acts{});
  driver.apply(PodDeleted{"uid-low-2"});
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind boss-1 a", "Bind boss-2 a", "Bind boss-3 a"}));
}

// But one of higher priority waits for none of lower priority, whose victims may take long to leave.
TEST(Nominations, AGreaterPodDoesNotWaitForTheVictimsOfALesserOne) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 800}}));
  driver.add(bound_to(make_pod("slow", {{"cpu", 600}}), "full"));
  driver.add(with_priority(make_pod("middle", {{"cpu", 600}}), 5));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict slow full", "Nominate middle full"}));
  driver.add(with_priority(make_pod("high", {{"cpu", 200}}), 10));
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind high full", "Nominate middle full"}));
}

TEST(Nominations, OnlyThoseInTheWayAreLost) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(bound_to(make_pod("low", {{"cpu", 400}}), "full"));
  driver.add(with_priority(make_pod("first", {{"cpu", 700}}), 5));
  driver.add(with_priority(make_pod("second", {{"cpu", 300}}), 5));
  EXPECT_EQ(acts_of(driver.cycle()), (Acts{"Evict low full", "Nominate first full", "Nominate second full"}));
  driver.add(with_priority(make_pod("high", {{"cpu", 200}}), 10));
  EXPECT_EQ(acts_of(driver.cycle(Duration::seconds(1))), (Acts{"Bind high full", "Bind second full"}));
  EXPECT_EQ(driver.phase_of("first"), PodPhase::kPending);  // takes nothing from its equal
}

}  // namespace
}  // namespace berth::policy
