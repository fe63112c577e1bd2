#include "api/queue_limits.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

ObjectMeta with(std::string_view key, const std::string& value) {
  ObjectMeta out;
  out.annotations.set(std::string(key), value);
  return out;
}

TEST(QueueLimits, OfUsersAreAmountsByResource) {
  const model::ResourceList limits =
      user_limits_of(with(kUserLimitsAnnotation, "nvidia.com/gpu=8, cpu=1500m,memory=1Gi"));
  EXPECT_EQ(limits.get("nvidia.com/gpu"), 8'000'000);
  EXPECT_EQ(limits.get("cpu"), 1500);
  EXPECT_EQ(limits.get("memory"), 1 << 30);
}

TEST(QueueLimits, OfUsersMayBePartsOfAGpuAndOfNothingElseThatIsCounted) {
  EXPECT_EQ(user_limits_of(with(kUserLimitsAnnotation, "nvidia.com/gpu=0.25")).get("nvidia.com/gpu"), 250'000);
  EXPECT_EQ(user_limits_of(with(kUserLimitsAnnotation, "nvidia.com/gpu=1500m")).get("nvidia.com/gpu"), 1'500'000);
  EXPECT_NE(queue_limit_problem(kUserLimitsAnnotation, "nvidia.com/gpu.shared=0.25"), "");
}

TEST(QueueLimits, WhatIsNoLimitIsToldAndHasNoEffect) {
  for (const char* wrong : {"", "8", "nvidia.com/gpu", "nvidia.com/gpu=", "=8", "nvidia.com/gpu=-1",
                            "nvidia.com/gpu=8,", "nvidia.com/gpu=8,nvidia.com/gpu=4", "a b=1", "nvidia.com/gpu=8=9"}) {
    EXPECT_NE(queue_limit_problem(kUserLimitsAnnotation, wrong), "") << wrong;
    EXPECT_EQ(user_limits_of(with(kUserLimitsAnnotation, wrong)).begin(), user_limits_of({}).begin()) << wrong;
  }
  EXPECT_EQ(queue_limit_problem(kUserLimitsAnnotation, "8"),
            "'8' is no limit; write each resource once, as nvidia.com/gpu=8, cpu=64");
  EXPECT_EQ(queue_limit_problem(kBudgetGpuHoursAnnotation, "lots"),
            "'lots' is no amount of GPU-hours; write a number with up to six decimals, for example 2500");
  EXPECT_EQ(queue_limit_problem(kBudgetWindowAnnotation, "year"), "'year' is no window; write day, week or month");
  EXPECT_EQ(queue_limit_problem(kBudgetWhenSpentAnnotation, "stop"), "'stop' is neither hold nor drain");
}

TEST(QueueLimits, OfBudgetsEachStandAlone) {
  ObjectMeta metadata = with(kBudgetGpuHoursAnnotation, "100.5");
  metadata.annotations.set(std::string(kBudgetDollarsAnnotation), "x");
  metadata.annotations.set(std::string(kBudgetWindowAnnotation), "week");
  metadata.annotations.set(std::string(kBudgetWhenSpentAnnotation), "drain");
  EXPECT_EQ(budget_of(metadata), (model::Budget{100'500'000, std::nullopt, Period::kWeek, true}));
  EXPECT_FALSE(budget_of(with(kBudgetWindowAnnotation, "day")).exists());
}

TEST(QueueLimits, WhatWasSpentIsReadFromItsOwnMessage) {
  const model::Spent spent{*parse_rfc3339("2026-11-01T00:00:00Z"), *parse_rfc3339("2026-11-23T16:00:00.25Z"),
                           41'250'000, 12'500'001};
  const model::Budget both{100'000'000, 500'000'000};
  EXPECT_EQ(
      budget_message(both, spent),
      "41.25 of 100 GPU-hours and 12.500001 of 500 dollars of the month since 2026-11-01T00:00:00Z, counted until "
      "2026-11-23T16:00:00.250000Z");
  const auto read = [](const std::string& message) {
    return spent_of({{"Active", "True", "Ready", "since 2026-11-01T00:00:00Z"},
                     {std::string(kBudgetCondition), "True", "WithinBudget", message}});
  };
  EXPECT_EQ(read(budget_message(both, spent)), spent);
  model::Spent hours = spent;
  hours.cost = 0;
  EXPECT_EQ(read(budget_message({100'000'000, std::nullopt}, spent)), hours);
  for (const char* other : {"", "since 2026-11-01T00:00:00Z", "since x, until y", "until", "GPU-hours dollars"})
    EXPECT_EQ(read(other), std::nullopt) << other;
  EXPECT_EQ(spent_of({}), std::nullopt);
}

TEST(QueueLimits, ThoseThatCannotBeReadAreNamed) {
  ClusterQueue queue;
  queue.metadata = with(kBudgetGpuHoursAnnotation, "0,002");
  EXPECT_EQ(unreadable_limits(queue),
            "annotation berth.dev/budget-gpu-hours: '0,002' is no amount of GPU-hours; write a number with up to six "
            "decimals, for example 2500");
  queue.metadata = with(kBudgetGpuHoursAnnotation, "0.002");
  EXPECT_EQ(unreadable_limits(queue), "");
  LocalQueue local;
  local.metadata = with(kUserLimitsAnnotation, "no business of its own");
  EXPECT_EQ(unreadable_limits(local), "");
  local.metadata = with(kBudgetWindowAnnotation, "year");
  EXPECT_NE(unreadable_limits(local), "");
}

TEST(QueueLimits, OfUsersOnWhatTheQueueDoesNotCoverAreTold) {
  model::ClusterQueue queue;
  queue.groups = {{{"nvidia.com/gpu", "cpu"}, {}}};
  queue.user_limits.set("cpu", 1);
  EXPECT_EQ(idle_user_limits(queue), "");
  queue.user_limits.set("gpu", 1);
  EXPECT_EQ(idle_user_limits(queue),
            "annotation berth.dev/user-limits limits gpu, which the queue does not cover, so that it has no effect; it "
            "covers nvidia.com/gpu, cpu");
}

TEST(QueueLimits, WhoSpendsIsReadFromTheSameMessage) {
  const auto at = [](const char* text) { return *parse_rfc3339(text); };
  const model::Spent spent{at("2026-11-01T00:00:00Z"), at("2026-11-23T16:00:00Z"), 41'250'000, 12'500'000};
  const std::string text = budget_message({100'000'000, 500'000'000}, spent, {8'000'000, 16'000'000});
  EXPECT_TRUE(text.ends_with("counted until 2026-11-23T16:00:00.000000Z, since then 8 GPUs at 16 dollars/hour"))
      << text;
  const std::vector<Condition> stored = {{std::string(kBudgetCondition), "True", "WithinBudget", text}};
  EXPECT_EQ(spent_of(stored), spent);
  const SpendingRate rate = spending_rate_of(stored);
  EXPECT_EQ(rate.gpus, 8'000'000);
  EXPECT_EQ(rate.cost, 16'000'000);
  const model::Spent later = spent_by(spent, rate, Period::kMonth, at("2026-11-23T16:30:00Z"));
  EXPECT_EQ(later, (model::Spent{spent.since, at("2026-11-23T16:30:00Z"), 45'250'000, 20'500'000}));
  // Of the next window only what is spent in it.
  EXPECT_EQ(spent_by(spent, rate, Period::kMonth, at("2026-12-01T01:00:00Z")),
            (model::Spent{at("2026-12-01T00:00:00Z"), at("2026-12-01T01:00:00Z"), 8'000'000, 16'000'000}));
  EXPECT_EQ(spent_by(spent, {}, Period::kMonth, at("2026-11-23T16:30:00Z")), spent) << "written before rates were";
  EXPECT_EQ(spent_by(spent, rate, Period::kMonth, at("2026-11-23T15:00:00Z")), spent) << "a clock that goes back";
}

}  // namespace
}  // namespace berth::api
