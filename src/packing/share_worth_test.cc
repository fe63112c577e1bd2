#include "packing/share_worth.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>

namespace berth::packing {
namespace {

constexpr double kExact = 1e-6;

TEST(ShareWorth, AShareIsThePartOfADeviceThatItTakes) {
  const ShareWorth halves({{.milli = 470, .count = 9}});
  EXPECT_NEAR(halves.of(470), 0.5, kExact) << "two go on a device";
  EXPECT_NEAR(halves.of(530), 0.5, kExact);
  EXPECT_NEAR(halves.of(940), 1, kExact);
  EXPECT_EQ(halves.of(469), 0);
  EXPECT_EQ(halves.of(0), 0);
  EXPECT_NEAR(halves.waste(1000, 470), 0, kExact);
  EXPECT_NEAR(halves.waste(530, 100), 0.5, kExact) << "430 holds no 470";
}

TEST(ShareWorth, WhatLeavesNoUsefulRemnantTakesItAll) {
  const ShareWorth worth({{.milli = 810, .count = 10}, {.milli = 160, .count = 2}});
  EXPECT_NEAR(worth.of(810), 1, kExact);
  EXPECT_NEAR(worth.of(190), 0, kExact) << "there are more such remnants than shares for them";
  const ShareWorth scarce({{.milli = 810, .count = 2}, {.milli = 160, .count = 100}});
  EXPECT_NEAR(scarce.of(160), 1.0 / 6, kExact);
  EXPECT_NEAR(scarce.of(810), 5.0 / 6, kExact);
}

TEST(ShareWorth, PartnersShareADeviceAsTheMixHasThem) {
  const ShareWorth worth({{.milli = 650, .count = 10}, {.milli = 320, .count = 40}});
  EXPECT_NEAR(worth.of(320), 1.0 / 3, kExact);
  EXPECT_NEAR(worth.of(650), 2.0 / 3, kExact);
}

TEST(ShareWorth, WithoutSharesOnlyIdleDevicesCount) {
  const ShareWorth worth({});
  EXPECT_EQ(worth.of(999), 0);
  EXPECT_EQ(worth.of(1000), 1);
  Devices devices = {.free_milli = {1000, 500, 1000}, .count = 3};
  EXPECT_EQ(worth.of(devices), 2);
}

TEST(ShareWorth, TheRarestSizesAreLeftOut) {
  std::vector<ShareCount> shares = {{.milli = 999, .count = 1}};
  for (int32_t s = 0; s < static_cast<int32_t>(kShareSizesMax); ++s) shares.push_back({.milli = 501 + s, .count = 2});
  const ShareWorth worth(std::move(shares));
  EXPECT_NEAR(worth.of(501), 1, kExact);
  EXPECT_EQ(worth.of(500), 0);
}

// Devices that first-fit needs, largest first.
double first_fit(const std::map<int32_t, int64_t>& counts) {
  std::vector<int32_t> free;
  for (auto size = counts.rbegin(); size != counts.rend(); ++size) {
    for (int64_t n = 0; n < size->second; ++n) {
      auto device = std::find_if(free.begin(), free.end(), [&](int32_t room) { return room >= size->first; });
      if (device == free.end()) device = free.insert(device, kMilliPerDevice);
      *device -= size->first;
    }
  }
  return static_cast<double>(free.size());
}

RC_GTEST_PROP(ShareWorth, PricesAreFeasibleAndNoWorseThanThoseOneCanName, ()) {
  std::map<int32_t, int64_t> counts;
  for (int n = *rc::gen::inRange(1, 12); n > 0; --n)
    counts[*rc::gen::inRange(4, 100) * 10] = *rc::gen::inRange<int64_t>(1, 40);
  std::vector<ShareCount> shares;
  for (const auto& [milli, count] : counts) shares.push_back({.milli = milli, .count = count});
  const ShareWorth worth(std::move(shares));
  double sum = 0;
  double volume = 0;
  double large = 0;
  for (const auto& [milli, count] : counts) {
    sum += worth.of(milli) * static_cast<double>(count);
    volume += milli / 1000.0 * static_cast<double>(count);
    large += milli > 500 ? static_cast<double>(count) : 0;
  }
  RC_ASSERT(sum >= volume - kExact);  // by size
  RC_ASSERT(sum >= large - kExact);   // one device for each that is more than half
  RC_ASSERT(sum <= first_fit(counts) + kExact);
  for (int32_t room = 0; room <= kMilliPerDevice; room += 10) {
    RC_ASSERT(worth.of(room) <= 1 + kExact);
    for (int32_t part = 0; part <= room; part += 10) RC_ASSERT(worth.waste(room, part) >= -kExact);
  }
}

}  // namespace
}  // namespace berth::packing
