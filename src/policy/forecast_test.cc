// When what waits will start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "policy/testing_runtimes.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::policy::testing;
using ::testing::HasSubstr;

const EngineOptions kSoon{.reservations = {.after = Duration::seconds(300)}};

Forecast forecast_of(TimedCluster& cluster, const std::string& name) {
  const Forecasts all = cluster.driver().engine().forecast();
  const auto at = all.find("uid-" + name);
  if (at != all.end()) return at->second;
  Forecast none;
  none.unknown = "it does not wait";
  return none;
}

TEST(Forecast, EndsOfThoseThatRunSayWhenTheNextStarts) {
  TimedCluster cluster(kSoon);
  cluster.submit(gpus("six", 6, 30), 30);
  cluster.submit(gpus("two", 2, 10), 10);
  cluster.settle();
  cluster.submit(gpus("next", 2), 60);
  cluster.submit(gpus("whole", 8), 60);
  cluster.minute();
  EXPECT_EQ(forecast_of(cluster, "next").p90, Duration::seconds(540));
  EXPECT_EQ(forecast_of(cluster, "next").p50, Duration::seconds(540)) << "nothing has ended yet";
  EXPECT_EQ(forecast_of(cluster, "next").blockers, 2);
  EXPECT_EQ(forecast_of(cluster, "next").declaring, 2);
  EXPECT_EQ(forecast_of(cluster, "whole").p90, std::nullopt) << "the next one runs for ever, for all that is known";
  EXPECT_EQ(forecast_of(cluster, "six").unknown, "it does not wait");
}

TEST(Forecast, WhoDeclaresNothingMakesItUnknownUnlessOthersSuffice) {
  TimedCluster cluster(kSoon);
  cluster.submit(gpus("silent", 6), 30);
  cluster.submit(gpus("two", 2, 10), 10);
  cluster.settle();
  cluster.submit(gpus("small", 2), 60);
  cluster.minute();
  cluster.submit(gpus("large", 8), 60);
  cluster.settle();
  EXPECT_EQ(forecast_of(cluster, "small").p90, Duration::seconds(540));
  const Forecast large = forecast_of(cluster, "large");
  EXPECT_FALSE(large.p90 || large.p50);
  EXPECT_EQ(large.blockers, 2);
  EXPECT_EQ(large.declaring, 1);
  EXPECT_THAT(large.unknown, HasSubstr("1 declare no runtime"));
}

TEST(Forecast, WhatHasEndedLatelySaysHowMuchOfWhatIsDeclaredItTakes) {
  TimedCluster cluster(kSoon);
  for (int i = 0; i < 5; ++i) cluster.submit(gpus("old" + std::to_string(i), 1, 20), 5);
  cluster.settle();
  for (int i = 0; i < 5; ++i) cluster.minute();
  EXPECT_EQ(cluster.driver().engine().runtime_ratios().median(), 250);
  cluster.submit(gpus("runs", 8, 40), 40);
  cluster.settle();
  cluster.submit(gpus("waits", 8), 1);
  cluster.settle();
  EXPECT_EQ(forecast_of(cluster, "waits").p90, Duration::seconds(2400));
  EXPECT_EQ(forecast_of(cluster, "waits").p50, Duration::seconds(600));
}

TEST(Forecast, WhatCannotBeIsUnknown) {
  TimedCluster cluster(kSoon);
  cluster.submit(gpus("huge", 9), 1);
  cluster.settle();
  EXPECT_EQ(forecast_of(cluster, "huge").unknown, "nothing that could end is in its way");
  cluster.submit(gpus("runs", 8, 5), 5);
  cluster.settle();
  cluster.submit(gpus("waits", 8), 5);
  cluster.settle();
  const Forecasts cut = cluster.driver().engine().forecast({.cycles = 1});
  EXPECT_THAT(cut.at("uid-waits").unknown, HasSubstr("too much"));
}

// On one node: everybody who waits starts at the time that was foreseen, if all take what they declare and nobody
// comes.
TEST(ForecastProperty, ItComesTrueWhereNobodyComesAndAllTakeWhatTheyDeclare) {
  int seen = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    Rng rng(seed);
    TimedCluster cluster(kSoon);
    for (int i = 0; i < 12; ++i) {
      const auto minutes = static_cast<int>(rng.between(1, 30));
      model::Pod pod = gpus("p" + std::to_string(i), rng.between(1, 8), minutes);
      pod.priority = static_cast<int32_t>(rng.between(0, 1));
      pod.preempts = false;
      cluster.submit(pod, minutes);
      if (rng.below(2) == 0) cluster.minute();
    }
    cluster.settle();
    const int asked = cluster.now();
    const Forecasts all = cluster.driver().engine().forecast();
    for (int i = 0; i < 600; ++i) cluster.minute();
    for (const auto& [uid, forecast] : all) {
      ASSERT_TRUE(forecast.p90.has_value()) << uid << " of seed " << seed << ": " << forecast.unknown;
      const auto foreseen = asked + static_cast<int>(forecast.p90->nanos / Duration::seconds(60).nanos);
      EXPECT_LE(cluster.started(uid.substr(4)).value_or(10'000), foreseen) << uid << " of seed " << seed;
      ++seen;
    }
  }
  EXPECT_GT(seen, 100);
}

// On one node: who has a node kept starts by p90, whatever comes later that is not more important, and though most end
// sooner than they said.
TEST(ForecastProperty, P90IsABoundForWhoHasANodeKept) {
  const uint64_t histories = histories_to_play(60, 600);
  uint64_t seen = 0;
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    Rng rng(seed);
    TimedCluster cluster(kSoon);
    std::optional<int> foreseen;
    for (int i = 0; i < 150 && !cluster.started("large"); ++i) {
      if (i == 2) cluster.submit(gpus("large", rng.between(6, 8), 30), 30);
      for (int k = 0; k < 2; ++k) {
        const auto minutes = static_cast<int>(rng.between(1, 30));
        cluster.submit(gpus("s" + std::to_string(2 * i + k), rng.between(1, 4), minutes),
                       static_cast<int>(rng.between(1, minutes)));
      }
      cluster.minute();
      const bool kept =
          !cluster.started("large") && i > 8 && cluster.driver().phase_of("large") == PodPhase::kNominated;
      if (!kept) continue;
      const Forecast forecast = forecast_of(cluster, "large");
      ASSERT_TRUE(forecast.p90.has_value()) << "seed " << seed << ": " << forecast.unknown;
      EXPECT_LE(*forecast.p50, *forecast.p90);
      const auto bound = cluster.now() + static_cast<int>(forecast.p90->nanos / Duration::seconds(60).nanos);
      EXPECT_LE(bound, foreseen.value_or(10'000)) << "seed " << seed;
      foreseen = bound;
      ++seen;
    }
    EXPECT_LE(cluster.started("large").value_or(10'000), foreseen.value_or(10'000)) << "seed " << seed;
  }
  EXPECT_GT(seen, histories * 5 / 6);
}

// Whether anybody asks changes nothing.
TEST(ForecastProperty, AskingChangesNoDecision) {
  size_t answers = 0;
  const auto play = [&](uint64_t seed, bool ask) {
    Rng rng(seed);
    TimedCluster cluster(kSoon, 3);
    std::vector<uint64_t> hashes;
    for (int i = 0; i < 40; ++i) {
      for (int k = 0; k < 4; ++k) {
        const auto minutes = static_cast<int>(rng.between(1, 20));
        const bool says = rng.below(4) > 0;
        model::Pod pod =
            gpus("s" + std::to_string(4 * i + k), rng.between(1, 8), says ? std::optional(minutes) : std::nullopt);
        pod.priority = static_cast<int32_t>(rng.between(0, 2));
        cluster.submit(pod, static_cast<int>(rng.between(1, 20)));
      }
      cluster.minute();
      hashes.push_back(cluster.driver().state().hash());
      if (ask) answers += cluster.driver().engine().forecast().size();
      const CycleResult bounded = cluster.driver().cycle({}, {.work = 7});
      hashes.push_back(static_cast<uint64_t>(bounded.work_used));
      cluster.settle();
      hashes.push_back(cluster.driver().state().hash());
    }
    return hashes;
  };
  for (uint64_t seed = 1; seed <= histories_to_play(5, 50); ++seed)
    EXPECT_EQ(play(seed, true), play(seed, false)) << "seed " << seed;
  EXPECT_GT(answers, 1000U);
}

}  // namespace
}  // namespace berth::policy
