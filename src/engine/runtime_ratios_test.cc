#include "engine/runtime_ratios.h"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

constexpr Duration kMinute = Duration::seconds(60);

TEST(RuntimeRatios, TheMedianOfWhatHasEndedIsKnownAtTheNextSettle) {
  RuntimeRatios ratios;
  EXPECT_EQ(ratios.median(), RuntimeRatios::kWhole);
  const Time now = Time{} + kMinute * 100;
  ratios.note(now + kMinute * -10, kMinute * 40);  // a quarter
  ratios.note(now + kMinute * -30, kMinute * 60);  // half
  ratios.note(now + kMinute * -90, kMinute * 60);  // more than all: counts as all
  EXPECT_EQ(ratios.median(), RuntimeRatios::kWhole);
  ratios.settle(now);
  EXPECT_EQ(ratios.median(), 500);
  ratios.settle(now + kMinute);
  EXPECT_EQ(ratios.seen(), 3U) << "each counts once";
}

TEST(RuntimeRatios, OnlyTheLatestCount) {
  RuntimeRatios ratios;
  for (size_t i = 0; i < RuntimeRatios::kWindow; ++i) ratios.note(Time{}, kMinute * 10);
  ratios.settle(Time{} + kMinute);
  EXPECT_EQ(ratios.median(), 100);
  for (size_t i = 0; i < RuntimeRatios::kWindow; ++i) ratios.note(Time{}, kMinute * 2);
  ratios.settle(Time{} + kMinute);
  EXPECT_EQ(ratios.median(), 500);
  EXPECT_EQ(ratios.seen(), RuntimeRatios::kWindow);
}

}  // namespace
}  // namespace berth::engine
