#include "packing/fleet.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>

namespace berth::packing {
namespace {

constexpr Request kHalf = {.cpu_milli = 1000, .devices = 1, .milli_each = 500};
constexpr Request kOne = {.cpu_milli = 1000, .devices = 1, .milli_each = 1000};
constexpr Request kTwo = {.cpu_milli = 1000, .devices = 2, .milli_each = 1000};
constexpr Request kCpu = {.cpu_milli = 1000};

const PolicyEntry& policy_named(std::string_view name) {
  const auto& all = placement_policies();
  return *std::find_if(all.begin(), all.end(), [&](const PolicyEntry& entry) { return entry.name == name; });
}

// A fleet with everything that it borrows.
struct Filled {
  Filled(std::string_view name, std::vector<Node> nodes, const std::vector<Request>& mix, uint64_t seed = 1,
         size_t kept_scores_max = kKeptScoresMax)
      : measure(typical_mix(mix, 100)),
        policy(policy_named(name).make(facts_of(nodes))),
        fleet(std::move(nodes), *policy, measure, seed, kept_scores_max) {}

  FleetFacts facts_of(const std::vector<Node>& nodes) const {
    FleetFacts facts{.measure = measure};
    for (const Node& node : nodes) {
      facts.cpu_milli_max = std::max(facts.cpu_milli_max, node.cpu_milli());
      facts.device_milli_max = std::max(facts.device_milli_max, node.devices().free());
    }
    return facts;
  }
  uint32_t node_of(const Request& request) { return fleet.place(request).value().node; }

  FragmentMeasure measure;
  std::unique_ptr<PlacementPolicy> policy;
  Fleet fleet;
};

std::vector<Node> nodes(std::initializer_list<int> devices) {
  std::vector<Node> out;
  for (const int count : devices) out.emplace_back(16'000, 1 << 20, count, 0);
  return out;
}

TEST(Node, GivesBackToTheDeviceThatItTookFrom) {
  Node node(4000, 10, 3, 0);
  const Request share = {.cpu_milli = 500, .memory_bytes = 4, .devices = 1, .milli_each = 300};
  node.take(share, 0b010);
  node.take(kTwo, node.first_idle(kTwo));
  EXPECT_EQ(node.devices().free_milli[1], 700);
  EXPECT_EQ(node.devices().free(), 700);
  EXPECT_FALSE(node.fits(kOne));
  EXPECT_EQ(node.placed()[0], 1);
  EXPECT_EQ(node.placed()[2], 1);
  node.give_back(share, 0b010);
  node.give_back(kTwo, 0b101);
  EXPECT_EQ(node.devices().idle(), 3);
  EXPECT_EQ(node.cpu_milli(), 4000);
  EXPECT_EQ(node.memory_bytes(), 10);
  EXPECT_EQ(node.placed()[0] + node.placed()[2], 0);
}

TEST(Node, FitsByCpuMemoryDevicesAndModel) {
  const Node node(1000, 10, 2, 3);
  EXPECT_TRUE(node.fits(kTwo));
  EXPECT_FALSE(node.fits({.cpu_milli = 1001}));
  EXPECT_FALSE(node.fits({.memory_bytes = 11}));
  EXPECT_FALSE(node.fits({.devices = 3, .milli_each = 1000}));
  EXPECT_TRUE(node.fits({.devices = 1, .milli_each = 10, .models = 0b1000}));
  EXPECT_FALSE(node.fits({.devices = 1, .milli_each = 10, .models = 0b0111}));
  EXPECT_TRUE(node.fits({.cpu_milli = 1, .models = 0b0111})) << "a model is of no account without devices";
}

TEST(BestFit, LeavesTheLeast) {
  Filled filled("best-fit", nodes({8, 2, 4}), {kHalf});
  EXPECT_EQ(filled.node_of(kTwo), 1U);
  EXPECT_EQ(filled.node_of(kOne), 2U);
}

TEST(BestFit, PutsAShareOnTheFullestDeviceWithRoom) {
  Filled filled("best-fit", nodes({3}), {kHalf});
  Request large = kHalf;
  large.milli_each = 600;
  EXPECT_EQ(filled.fleet.place(large)->devices, 0b001U);
  EXPECT_EQ(filled.fleet.place(kHalf)->devices, 0b010U);
  EXPECT_EQ(filled.fleet.place(kHalf)->devices, 0b010U);
  large.milli_each = 400;
  EXPECT_EQ(filled.fleet.place(large)->devices, 0b001U);
}

TEST(DotProduct, KeepsLargeFreeNodes) {
  Filled filled("dot-product", nodes({8, 4}), {kHalf});
  EXPECT_EQ(filled.node_of(kTwo), 1U);
}

TEST(GpuPacking, PrefersSharedDevicesThenUsedNodes) {
  Filled filled("gpu-packing", nodes({2, 4, 8}), {kHalf});
  EXPECT_EQ(filled.node_of(kTwo), 0U) << "the smallest idle node";
  EXPECT_EQ(filled.node_of(kHalf), 1U);
  EXPECT_EQ(filled.node_of(kOne), 1U) << "an idle device of a node in use";
  EXPECT_EQ(filled.fleet.place(kHalf)->devices, 0b0001U) << "the device that is shared";
  EXPECT_EQ(filled.node_of(kCpu), 0U);
}

TEST(GpuClustering, KeepsOneShapeTogether) {
  Filled filled("gpu-clustering", nodes({4, 4, 4}), {kHalf});
  EXPECT_EQ(filled.node_of(kHalf), 0U);
  EXPECT_EQ(filled.node_of(kTwo), 1U) << "an idle node before one with others";
  EXPECT_EQ(filled.node_of(kHalf), 0U);
  EXPECT_EQ(filled.node_of(kTwo), 1U);
  EXPECT_EQ(filled.node_of(kTwo), 2U) << "no room among its like";
}

TEST(Fgd, BreaksNoPairForAShare) {
  Filled filled("fgd", nodes({2, 1, 2}), {kHalf, kTwo, kTwo});
  EXPECT_EQ(filled.node_of(kHalf), 1U);
  EXPECT_EQ(filled.node_of(kHalf), 1U);
}

TEST(Fgd, EqualNodesAreTakenInOrder) {
  Filled filled("fgd", nodes({2, 2, 2}), {kTwo});
  for (uint32_t node = 0; node < 3; ++node) EXPECT_EQ(filled.node_of(kTwo), node);
  EXPECT_FALSE(filled.fleet.place(kTwo));
}

TEST(Random, DrawsFromItsSeed) {
  const auto drawn = [](uint64_t seed) {
    Filled filled("random", nodes({8, 8, 8, 8, 8, 8, 8, 8}), {kHalf}, seed);
    std::vector<std::pair<uint32_t, DeviceMask>> out;
    for (int i = 0; i < 20; ++i) {
      const Placement placement = filled.fleet.place(kHalf).value();
      out.emplace_back(placement.node, placement.devices);
    }
    return out;
  };
  EXPECT_EQ(drawn(7), drawn(7));
  EXPECT_NE(drawn(7), drawn(8));
}

Request any_request() {
  const int32_t devices = *rc::gen::element(0, 1, 1, 1, 2, 4);
  const int32_t milli = devices == 0 ? 0 : devices > 1 ? 1000 : *rc::gen::element(200, 500, 700, 1000);
  return {.cpu_milli = *rc::gen::inRange<int64_t>(1, 6) * 1000,
          .memory_bytes = *rc::gen::inRange<int64_t>(0, 3),
          .devices = devices,
          .milli_each = milli,
          .models = *rc::gen::element(ModelSet{kAnyModel}, ModelSet{1}, ModelSet{2})};
}

// The best place by looking at every node anew.
std::optional<uint32_t> looked_up(const Filled& filled, const Request& request) {
  std::optional<uint32_t> best;
  int32_t highest = -1;
  for (uint32_t n = 0; n < filled.fleet.nodes().size(); ++n) {
    const Node& node = filled.fleet.nodes()[n];
    if (!node.fits(request)) continue;
    const int32_t score = filled.policy->score({.node = node, .fragment = filled.measure.of(node)}, request);
    RC_ASSERT(score >= 0);
    if (score > highest) highest = score, best = n;
  }
  return best;
}

RC_GTEST_PROP(Fleet, KeptScoresDecideAsFreshOnes, ()) {
  const std::string_view name = placement_policies()[*rc::gen::inRange<size_t>(0, placement_policies().size())].name;
  std::vector<Node> members;
  for (int n = *rc::gen::inRange(1, 6); n > 0; --n)
    members.emplace_back(*rc::gen::inRange<int64_t>(0, 16) * 1000, 8, *rc::gen::inRange(0, 5),
                         *rc::gen::inRange(0U, 2U));
  std::vector<Request> shapes(3);
  for (Request& shape : shapes) shape = any_request();
  Filled filled(name, members, shapes, 1,
                *rc::gen::element(size_t{0}, members.size(), 2 * members.size(), kKeptScoresMax));
  for (int step = 0; step < 30; ++step) {
    const Request& request = shapes[*rc::gen::inRange<size_t>(0, shapes.size())];
    const auto expected = looked_up(filled, request);
    const auto placement = filled.fleet.place(request);
    RC_ASSERT(placement.has_value() == expected.has_value());
    if (placement && !filled.policy->draws()) RC_ASSERT(placement->node == *expected);
    if (placement) RC_ASSERT(std::popcount(placement->devices) == request.devices);
    int64_t free = 0;
    int64_t fragment = 0;
    for (const Node& node : filled.fleet.nodes()) {
      free += node.devices().free();
      fragment += filled.measure.of(node);
    }
    RC_ASSERT(free == filled.fleet.free_milli());
    RC_ASSERT(fragment == filled.fleet.fragment());
  }
}

}  // namespace
}  // namespace berth::packing
