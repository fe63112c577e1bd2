#include "quota/spending.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace berth::quota {
namespace {

constexpr int64_t kHour = 3600, kDay = 24 * kHour;
const Spending::Queue kTeam{"", "team"};

Time at(int64_t seconds) { return Time{} + Duration::seconds(seconds); }

Spending::Rate gpus(int64_t count, int64_t dollars = 0) { return {7'000'000 * count, 7 * count * dollars * 1'000'000}; }

model::Budget hours(int64_t count, Period window = Period::kDay) { return {count * 1'000'000, std::nullopt, window}; }

int64_t due(const Spending& spending) {
  const std::optional<Time> next = spending.next_due();
  return next ? (*next - Time{}).nanos / Duration::seconds(1).nanos : -1;
}

TEST(Spending, IsDueWhenTheBudgetIsSpentAndWhenTheNextBegins) {
  Spending spending;
  spending.set(kTeam, hours(8), {}, at(0));
  EXPECT_TRUE(spending.advance(at(0)).empty());
  EXPECT_EQ(due(spending), -1);
  spending.begin(kTeam, gpus(4), at(kHour), at(kHour));
  EXPECT_EQ(due(spending), 3 * kHour);
  EXPECT_TRUE(spending.advance(at(3 * kHour - 1)).empty());
  EXPECT_EQ(spending.advance(at(3 * kHour)), std::vector{kTeam});
  EXPECT_TRUE(spending.is_spent(kTeam));
  EXPECT_EQ(spending.message(kTeam), "ClusterQueue team has spent its 8 GPU-hours of this day; the next begins at 24h");
  EXPECT_EQ(due(spending), kDay);
  EXPECT_EQ(spending.advance(at(kDay)), std::vector{kTeam});  // it goes on spending
  EXPECT_EQ(due(spending), kDay + 2 * kHour);
}

TEST(Spending, ThatCannotReachTheBudgetIsDueWithTheWindow) {
  Spending spending;
  spending.set(kTeam, hours(1000), {}, at(0));
  spending.begin(kTeam, gpus(1), at(0), at(0));
  EXPECT_EQ(due(spending), kDay);
  spending.advance(at(kDay + kHour));
  EXPECT_EQ(spending.spent(kTeam, at(kDay + kHour))->gpu_time, 1'000'000);
}

TEST(Spending, CountsMoneyBesideTime) {
  Spending spending;
  model::Budget budget = hours(100);
  budget.cost = 20'000'000;
  spending.set(kTeam, budget, {}, at(0));
  spending.begin(kTeam, gpus(2, 5), at(0), at(0));
  spending.advance(at(2 * kHour));
  EXPECT_EQ(spending.message(kTeam), "ClusterQueue team has spent its 20 dollars of this day; the next begins at 24h");
}

TEST(Spending, NothingLeftIsSpentAtOnce) {
  Spending spending;
  spending.set(kTeam, hours(0), {}, at(5));
  EXPECT_EQ(spending.advance(at(5)), std::vector{kTeam});
}

TEST(Spending, GoesOnFromWhatTheObjectSays) {
  const Duration ahead = Duration::seconds(1'000 * kDay);
  const Time wall = at(1'000 * kDay);
  Spending spending(ahead);
  // Counted until a quarter of an hour ago; the workload has run for two hours.
  spending.set(kTeam, hours(8), model::Spent{wall, wall + Duration::seconds(3 * kHour), 5'000'000, 0},
               at(3 * kHour + 900));
  spending.begin(kTeam, gpus(4), at(kHour + 900), at(3 * kHour + 900));
  EXPECT_EQ(spending.spent(kTeam, at(3 * kHour + 900))->gpu_time, 6'000'000);
  EXPECT_EQ(due(spending), 3 * kHour + 900 + 1800);
}

TEST(Spending, OfAWindowThatIsOverDoesNotCount) {
  Spending spending(Duration::seconds(1'000 * kDay));
  const Time yesterday = at(999 * kDay);
  spending.set(kTeam, hours(8), model::Spent{yesterday, yesterday + Duration::seconds(kHour), 7'000'000, 0}, at(kHour));
  spending.begin(kTeam, gpus(4), at(-kHour), at(kHour));  // half of its two hours are of this day
  EXPECT_EQ(spending.spent(kTeam, at(kHour))->gpu_time, 4'000'000);
}

TEST(Spending, AnotherWindowBeginsAnewAndAnotherAmountDoesNot) {
  Spending spending;
  spending.set(kTeam, hours(8), {}, at(0));
  spending.begin(kTeam, gpus(1), at(0), at(0));
  spending.set(kTeam, hours(2), {}, at(3 * kHour));
  EXPECT_EQ(spending.advance(at(3 * kHour)), std::vector{kTeam});
  spending.set(kTeam, hours(2, Period::kMonth), {}, at(4 * kHour));
  EXPECT_EQ(spending.advance(at(4 * kHour)), std::vector{kTeam});
  EXPECT_EQ(spending.spent(kTeam, at(5 * kHour))->gpu_time, 1'000'000);
}

// Second by second, with what each second costs added to the window that it is of.
RC_GTEST_PROP(SpendingProperty, IsWhatEachSecondCosts, ()) {
  Spending spending;
  spending.set(kTeam, hours(*rc::gen::inRange<int64_t>(0, 30)), {}, at(0));
  int64_t now = 0, rate = 0, sum = 0;  // sum: GPU-seconds of this window
  for (int step = *rc::gen::inRange(1, 20); step > 0; --step) {
    const int64_t next = now + *rc::gen::inRange<int64_t>(0, 8 * kHour);
    for (; now < next; ++now) sum = (now % kDay == 0 ? 0 : sum) + rate;
    if (now % kDay == 0) sum = 0;
    const int64_t count = *rc::gen::inRange<int64_t>(1, 5);
    if (*rc::gen::arbitrary<bool>()) {
      const int64_t before = *rc::gen::inRange<int64_t>(0, kHour);  // it has run for so long already
      spending.begin(kTeam, gpus(count), at(now - before), at(now));
      sum += count * std::min(before, now % kDay);
      rate += count;
    } else if (rate >= count) {
      spending.end(kTeam, gpus(count), at(now));
      rate -= count;
    }
    if (*rc::gen::arbitrary<bool>()) spending.advance(at(now));
    RC_ASSERT(spending.spent(kTeam, at(now))->gpu_time == sum * 1'000'000 / kHour);
  }
}

}  // namespace
}  // namespace berth::quota
