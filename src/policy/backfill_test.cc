// Kept room that is lent to pods which declare that they will have ended in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "base/rng.h"
#include "base/testing.h"
#include "policy/testing_runtimes.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using berth::engine::testing::Driver;
using namespace berth::policy::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const EngineOptions kSoon{.reservations = {.after = Duration::seconds(300)}};

// A node of eight GPUs where six run for half an hour, and a pod of eight that has waited for five minutes.
void let_one_wait(TimedCluster& cluster) {
  cluster.submit(gpus("six", 6, 30), 30);
  cluster.settle();
  cluster.submit(gpus("large", 8), 60);
  for (int i = 0; i < 6; ++i) cluster.minute();
}

TEST(Backfill, WhoEndsInTimeTakesTheKeptRoomAndNobodyElse) {
  TimedCluster cluster(kSoon);
  let_one_wait(cluster);
  EXPECT_EQ(cluster.promised("large"), 30);
  EXPECT_THAT(cluster.driver().told("uid-large").back(), HasSubstr("that is enough by"));
  cluster.submit(gpus("silent", 1), 1);
  cluster.submit(gpus("long", 1, 25), 25);
  cluster.submit(gpus("short", 2, 24), 24);
  cluster.settle();
  EXPECT_EQ(cluster.started("silent"), std::nullopt);
  EXPECT_EQ(cluster.started("long"), std::nullopt);
  EXPECT_EQ(cluster.started("short"), 6);
  while (cluster.now() < 30) cluster.minute();
  EXPECT_EQ(cluster.started("large"), 30);
}

TEST(Backfill, WithoutDeclarationsNothingIsPromisedOrLent) {
  TimedCluster cluster(kSoon);
  cluster.submit(gpus("six", 6), 30);
  cluster.settle();
  cluster.submit(gpus("large", 8), 60);
  for (int i = 0; i < 6; ++i) cluster.minute();
  EXPECT_EQ(cluster.promised("large"), std::nullopt);
  cluster.submit(gpus("short", 1, 1), 1);
  cluster.settle();
  EXPECT_EQ(cluster.started("short"), std::nullopt);
}

TEST(Backfill, WhoIsPastItsEstimateIsTheFirstToLeaveAndNobodyElseHasTo) {
  TimedCluster cluster(kSoon);
  let_one_wait(cluster);
  cluster.submit(gpus("liar", 1, 10), 1000);
  cluster.submit(gpus("honest", 1, 10), 10);
  while (cluster.now() < 29) cluster.minute();
  EXPECT_EQ(cluster.started("liar"), 7);
  EXPECT_THAT(cluster.evicted(), ElementsAre());
  cluster.minute();
  EXPECT_THAT(cluster.evicted(), ElementsAre("uid-liar"));
  cluster.minute();
  EXPECT_EQ(cluster.started("large"), 31);
}

TEST(Backfill, WhileSomeoneIsOnItsWayOutNothingIsSaidAgain) {
  TimedCluster cluster(kSoon);
  let_one_wait(cluster);
  cluster.submit(gpus("liar", 1, 10), 1000);
  while (cluster.now() < 29) cluster.minute();
  cluster.end("uid-six");
  Driver& driver = cluster.driver();
  driver.cycle(Duration::seconds(60));
  EXPECT_TRUE(driver.state().pod(driver.state().find_pod("uid-liar")).evicting);
  const size_t told = driver.told("uid-large").size();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(driver.cycle(Duration::seconds(60)).decisions.empty());
  EXPECT_EQ(driver.told("uid-large").size(), told);
  EXPECT_EQ(driver.phase_of("large"), PodPhase::kNominated);
}

// The promise is broken by a pod that was there before: it is nobody's to send away, and the pod is told so.
TEST(Backfill, AnEarlierPodThatRunsOnIsNotSentAway) {
  TimedCluster cluster(kSoon);
  cluster.submit(gpus("six", 6, 30), 45);
  cluster.settle();
  cluster.submit(gpus("large", 8), 60);
  while (cluster.now() < 31) cluster.minute();
  EXPECT_EQ(cluster.promised("large"), std::nullopt);
  EXPECT_THAT(cluster.driver().told("uid-large").back(), Not(HasSubstr("enough by")));
  while (cluster.now() < 45) cluster.minute();
  EXPECT_EQ(cluster.started("large"), 45);
  EXPECT_THAT(cluster.evicted(), ElementsAre());
}

TEST(Backfill, TheNodeIsKeptWhereEnoughIsFreeTheSoonest) {
  TimedCluster cluster(kSoon, 2);
  cluster.submit(gpus("few", 1, 300), 300);
  cluster.settle();
  cluster.submit(gpus("many", 8, 60), 60);
  cluster.settle();
  cluster.submit(gpus("large", 8), 60);
  for (int i = 0; i < 6; ++i) cluster.minute();
  EXPECT_EQ(cluster.driver().node_of("large"), cluster.driver().node_of("many"));
  EXPECT_EQ(cluster.promised("large"), 60);
}

// What is known of a pod's class is over when another pod comes whose terms see it: before the next cycle, a pod whose
// node that one may take is explained with care.
TEST(Backfill, WhoseClassHasChangedMayTakeANodeAllTheSame) {
  EngineOptions options = kSoon;
  options.reservations.per_queue = 2;
  TimedCluster cluster(options, 2);
  const auto only_on = [](const std::string& node, const model::Pod& pod) {
    return engine::testing::with_spec(pod, [&](auto& spec) { spec.node_selector.set("kubernetes.io/hostname", node); });
  };
  cluster.submit(only_on("n0", gpus("late", 8, 60)), 60);
  cluster.submit(only_on("n1", gpus("soon", 8, 30)), 30);
  cluster.settle();
  cluster.submit(only_on("n0", gpus("first", 8)), 60);
  cluster.submit(gpus("second", 8), 60);
  for (int i = 0; i < 6; ++i) cluster.minute();
  Driver& driver = cluster.driver();
  EXPECT_EQ(cluster.promised("first"), 60);
  EXPECT_EQ(cluster.promised("second"), 30);
  EXPECT_THAT(driver.explain("uid-second").message, Not(HasSubstr("unless")));
  driver.add(engine::testing::with_spec(gpus("stranger", 1), [](auto& spec) {
    spec.peers.anti_affinity.push_back({{.namespaces = {"default"}, .namespace_selector = {}, .pods = {}}, "rack"});
  }));
  EXPECT_THAT(driver.explain("uid-second").message, HasSubstr("unless who comes before it takes it"));
}

// Where the engine knows the time on the wall, people are told that, and pods have begun when they say.
TEST(Backfill, TimesAreThoseOnTheWall) {
  EngineOptions options = kSoon;
  options.wall_offset = Duration::seconds(1'800'000'000);  // 2027-01-15T08:00:00Z
  TimedCluster cluster(options);
  for (int i = 0; i < 20; ++i) cluster.minute();
  model::Pod six = engine::testing::bound_to(gpus("six", 6, 30), "n0");
  six.started = *parse_rfc3339("2027-01-15T08:05:00Z");
  cluster.submit(six, 30);
  cluster.settle();
  EXPECT_THAT(cluster.driver().explain("uid-six").message, HasSubstr("ends by 2027-01-15T08:35:00Z"));
}

// A stream in which everything takes as long as it declares, and whether those that come after the first minutes
// declare it. When the pod of eight GPUs starts, and how many started before it of those that came after its node was
// kept.
struct Outcome {
  int start = 0, passed = 0;
};
Outcome play_exact(uint64_t seed, bool declare) {
  Rng rng(seed);
  TimedCluster cluster(kSoon);
  Outcome out;
  for (int i = 0; !cluster.started("large"); ++i) {
    if (i == 1) cluster.submit(gpus("large", 8), 30);
    for (int k = 0; k < 3; ++k) {
      const auto count = rng.between(1, 4), minutes = rng.between(1, 25);
      const bool says = declare || i < 8;
      cluster.submit(
          gpus("s" + std::to_string(3 * i + k), count, says ? std::optional(static_cast<int>(minutes)) : std::nullopt),
          static_cast<int>(minutes));
    }
    cluster.minute();
    if (i > 200) break;
  }
  out.start = cluster.started("large").value_or(1000);
  for (int i = 8; i < out.start; ++i)
    for (int k = 0; k < 3; ++k)
      out.passed += cluster.started("s" + std::to_string(3 * i + k)).value_or(1000) < out.start;
  return out;
}

TEST(BackfillProperty, ItNeverDelaysWhoHasWaitedLonger) {
  const uint64_t histories = histories_to_play(60, 600);
  int64_t lent = 0;
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    const Outcome with = play_exact(seed, true), without = play_exact(seed, false);
    EXPECT_EQ(with.start, without.start) << "seed " << seed;
    lent += with.passed - without.passed;
  }
  EXPECT_GT(lent, static_cast<int64_t>(histories / 2)) << "hardly anything was lent, so nothing was tested";
}

// Several nodes, and most end sooner than they say.
TEST(BackfillProperty, WhatIsPromisedHoldsWhereNobodyRunsLongerThanHeSaid) {
  const uint64_t histories = histories_to_play(60, 600);
  uint64_t promises = 0, lent = 0;
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    Rng rng(seed);
    TimedCluster cluster(kSoon, static_cast<int>(rng.between(1, 4)));
    std::optional<int> promised;
    for (int i = 0; i < 120 && !cluster.started("large"); ++i) {
      if (i == 1) cluster.submit(gpus("large", 8), 30);
      for (int k = 0; k < 8; ++k) {
        const auto minutes = static_cast<int>(rng.between(1, 40));
        cluster.submit(gpus("s" + std::to_string(8 * i + k), rng.between(1, 4), minutes),
                       static_cast<int>(rng.between(1, minutes)));
      }
      cluster.minute();
      const auto now = cluster.started("large") ? std::nullopt : cluster.promised("large");
      EXPECT_LE(now.value_or(0), promised.value_or(10'000)) << "seed " << seed;
      if (now) promised = now;
      for (const PodSlot pod : cluster.driver().state().pods()) lent += cluster.driver().state().pod(pod).backfilled;
    }
    if (!promised) continue;
    ++promises;
    ASSERT_TRUE(cluster.started("large").has_value()) << "seed " << seed;
    EXPECT_LE(*cluster.started("large"), *promised) << "seed " << seed;
    EXPECT_THAT(cluster.evicted(), ElementsAre()) << "seed " << seed;
  }
  EXPECT_GT(promises, histories / 2);
  EXPECT_GT(lent, histories * 2) << "hardly anything was lent, so nothing was tested";
}

}  // namespace
}  // namespace berth::policy
