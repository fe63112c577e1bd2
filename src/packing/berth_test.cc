#include <gtest/gtest.h>

#include <algorithm>

#include "packing/fleet.h"

namespace berth::packing {
namespace {

Request share(int32_t milli, int64_t cpu_milli = 0) {
  return {.cpu_milli = cpu_milli, .devices = 1, .milli_each = milli};
}

std::unique_ptr<PlacementPolicy> make(std::string_view name, const std::vector<Request>& told) {
  static const FragmentMeasure unused{TypicalMix{}};
  const auto& all = placement_policies();
  return std::find_if(all.begin(), all.end(), [&](const PolicyEntry& entry) { return entry.name == name; })
      ->make({.measure = unused, .told = told});
}

int32_t score(const PlacementPolicy& policy, const Node& node, const Request& request) {
  return policy.score({.node = node, .fragment = 0}, request);
}

TEST(Berth, TakesTheRemnantThatKeepsItsWorth) {
  const auto policy = make("berth-told", {share(470), share(470), share(470), share(50)});
  Node node(1000, 0, 3, 0);
  node.take(share(520), 0b001);
  node.take(share(470), 0b010);
  Rng rng(1);
  EXPECT_EQ(policy->share_device({.node = node, .fragment = 0}, share(50), rng), 1) << "480 still holds a 470";
}

TEST(Berth, PrefersARemnantElsewhereToAnIdleDevice) {
  const auto policy = make("berth-told", {share(650), share(320), share(320), share(320), share(320)});
  Node used(1000, 0, 1, 0);
  used.take(share(650), 0b1);
  EXPECT_GT(score(*policy, used, share(320)), score(*policy, Node(1000, 0, 1, 0), share(320)));
}

TEST(Berth, SpendsCpuAndMemoryWhereThereIsMuchForEachDevice) {
  Request request = share(1000, 8000);
  request.memory_bytes = 8000;
  const auto policy = make("berth-told", {request, share(1000, 1000)});
  const Node even(10'000, 10'000, 2, 0);
  EXPECT_GT(score(*policy, Node(90'000, 10'000, 2, 0), request), score(*policy, even, request));
  EXPECT_GT(score(*policy, Node(10'000, 90'000, 2, 0), request), score(*policy, even, request));
  Node full(10'000, 10'000, 1, 0);
  full.take(share(1000), 0b1);
  EXPECT_GT(score(*policy, full, {.cpu_milli = 8000}), score(*policy, even, {.cpu_milli = 8000}));
}

TEST(Berth, KeepsWholeNodesForThoseThatNeedThem) {
  const Request pair = {.cpu_milli = 1000, .devices = 2, .milli_each = 1000};
  const auto policy = make("berth-told", {share(500, 1000), pair, pair});
  EXPECT_GT(score(*policy, Node(8000, 0, 1, 0), share(500, 1000)),
            score(*policy, Node(8000, 0, 2, 0), share(500, 1000)));
}

TEST(Berth, LearnsWhatItIsToldOtherwise) {
  std::vector<Request> requests;
  for (int n = 0; n < 16; ++n) requests.insert(requests.end(), {share(470, 4000), share(50, 1000)});
  const auto told = make("berth-told", requests);
  const auto learned = make("berth", requests);
  Node node(16'000, 0, 2, 0);
  node.take(share(520, 1000), 0b01);
  const int32_t before = score(*learned, node, share(50));
  EXPECT_NE(before, score(*told, node, share(50)));
  for (size_t n = 0; n + 1 < requests.size(); ++n) EXPECT_FALSE(learned->observe(requests[n]));
  EXPECT_EQ(score(*learned, node, share(50)), before) << "renewed after 32";
  EXPECT_TRUE(learned->observe(requests.back()));
  EXPECT_EQ(score(*learned, node, share(50)), score(*told, node, share(50)));
  EXPECT_FALSE(told->observe(requests.back()));
}

TEST(Berth, ForgetsTheMixThatLiesBehindItsWindow) {
  const std::vector<Request> later(4096, share(300, 2000));
  const auto told = make("berth-told", later);
  const auto learned = make("berth", {});
  for (int n = 0; n < 1024; ++n) learned->observe(share(470, 8000));
  const Node node(8000, 0, 2, 0);
  bool renewed = false;
  for (const Request& request : later) renewed = learned->observe(request);
  EXPECT_TRUE(renewed);
  EXPECT_EQ(score(*learned, node, share(300, 2000)), score(*told, node, share(300, 2000)));
}

// Scores that were kept before a renewal are not used after it.
TEST(Berth, KeptScoresDecideAsFreshOnesWhileItLearns) {
  const FragmentMeasure measure{TypicalMix{}};
  const auto kept_policy = make("berth", {});
  const auto fresh_policy = make("berth", {});
  std::vector<Node> nodes;
  for (int n = 0; n < 12; ++n) nodes.emplace_back(4000 + 3000 * (n % 4), 100, 1 + n % 3, 0);
  Fleet kept(nodes, *kept_policy, measure, 1);
  Fleet fresh(nodes, *fresh_policy, measure, 1, 0);
  Rng rng(7);
  int placed = 0;
  for (int n = 0; n < 150; ++n) {
    const Request request = share(static_cast<int32_t>(rng.between(1, 6)) * 30, rng.between(0, 3) * 300);
    const auto expected = fresh.place(request);
    const auto found = kept.place(request);
    ASSERT_EQ(found.has_value(), expected.has_value());
    if (!found) continue;
    ASSERT_EQ(found->node, expected->node) << n;
    ASSERT_EQ(found->devices, expected->devices) << n;
    ++placed;
  }
  EXPECT_GT(placed, 70) << "some after the second renewal";
}

}  // namespace
}  // namespace berth::packing
