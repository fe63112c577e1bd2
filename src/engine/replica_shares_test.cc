#include "engine/replica_shares.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/rng.h"

namespace berth::engine {
namespace {

ReplicaShares of(const std::vector<int64_t>& sizes) {
  ReplicaShares out;
  for (const int64_t size : sizes) out.add(size);
  return out;
}

TEST(ReplicaShares, AShareLiesOnOneDevice) {
  EXPECT_TRUE(of({3}).fits(3, 4, 8));
  EXPECT_FALSE(of({3, 3}).fits(2, 4, 8)) << "a replica is left on each of two devices";
  EXPECT_TRUE(of({3, 3}).fits(1, 4, 8));
  EXPECT_FALSE(of({}).fits(5, 4, 8)) << "more than a device is";
  EXPECT_FALSE(of({}).fits(1, 4, 0));
}

TEST(ReplicaShares, TheLastDeviceMayHaveFewerReplicas) {
  EXPECT_TRUE(of({2}).fits(2, 4, 5));
  EXPECT_FALSE(of({2, 2}).fits(2, 4, 5));
  EXPECT_TRUE(of({2, 2}).fits(1, 4, 5));
  EXPECT_FALSE(of({}).fits(3, 4, 2));
}

TEST(ReplicaShares, FindsWhatTheLargestFirstWouldMiss) {
  EXPECT_TRUE(of({4, 3, 3, 4, 3}).fits(3, 10, 20)) << "4 + 3 + 3 on each";
}

TEST(ReplicaShares, WhatIsOverUsedTakesNoMore) {
  EXPECT_FALSE(of({3, 3, 3}).fits(1, 4, 8));
  ReplicaShares shares = of({3, 3, 3});
  shares.remove(3);
  EXPECT_TRUE(shares.fits(1, 4, 8));
  EXPECT_EQ(shares.count(3), 2);
  EXPECT_EQ(shares.count(1), 0);
}

TEST(ReplicaShares, ManyDevicesCostNothing) { EXPECT_TRUE(of({1}).fits(1, 1, INT64_MAX)); }

// All rooms that some way of laying the shares one by one leaves.
bool some_way(const std::vector<int64_t>& sizes, int64_t each, int64_t all) {
  std::vector<int64_t> rooms(static_cast<size_t>(all / each), each);
  if (all % each > 0) rooms.push_back(all % each);
  std::set<std::vector<int64_t>> states{rooms};
  for (const int64_t size : sizes) {
    std::set<std::vector<int64_t>> next;
    for (const auto& state : states)
      for (size_t d = 0; d < state.size(); ++d) {
        if (state[d] < size) continue;
        std::vector<int64_t> after = state;
        after[d] -= size;
        std::sort(after.begin(), after.end());
        next.insert(after);
      }
    states = std::move(next);
  }
  return !states.empty();
}

TEST(ReplicaShares, AnswersWhatTryingAllWaysDoes) {
  Rng rng(7);
  int yes = 0, no = 0;
  for (int i = 0; i < 5'000; ++i) {
    const auto each = static_cast<int64_t>(2 + rng.below(9));
    const auto all = static_cast<int64_t>(1 + rng.below(static_cast<uint64_t>(each) * 4));
    std::vector<int64_t> sizes;
    int64_t left = all;
    while (left > 0 && !rng.chance(10)) {
      sizes.push_back(static_cast<int64_t>(1 + rng.below(static_cast<uint64_t>(each))));
      left -= sizes.back();
    }
    if (left < 0 || sizes.empty()) continue;
    const bool expected = some_way(sizes, each, all);
    const int64_t more = sizes.back();
    sizes.pop_back();
    EXPECT_EQ(of(sizes).fits(more, each, all), expected) << "seed 7, case " << i;
    ++(expected ? yes : no);
  }
  EXPECT_GT(yes, 300);
  EXPECT_GT(no, 150);
}

}  // namespace
}  // namespace berth::engine
