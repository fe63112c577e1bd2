#include "model/device_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <vector>

namespace berth::model {
namespace {

void join(NodeDevices& node, uint32_t a, uint32_t b, int32_t links) {
  node.devices[a].nvlinks.emplace_back(b, links);
  node.devices[b].nvlinks.emplace_back(a, links);
}

// Eight devices behind two CPUs of two switches each, as in a server with PCIe cards; those of a pair in `bridges` have
// an NVLink bridge.
NodeDevices pcie_server(const std::vector<std::pair<uint32_t, uint32_t>>& bridges = {}) {
  NodeDevices node;
  for (int i = 0; i < 8; ++i) {
    GpuDevice device;
    device.uuid = "GPU-" + std::to_string(i);
    device.numa_node = i / 4;
    device.pcie_root = "root" + std::to_string(i / 4);
    device.pcie_switch = "switch" + std::to_string(i / 2);
    node.devices.push_back(device);
  }
  for (const auto& [a, b] : bridges) join(node, a, b, 4);
  return node;
}

TEST(DeviceTopology, PrefersOneSwitchToOneCpuAndThatToTwo) {
  const DeviceTopology node(pcie_server());
  EXPECT_EQ(node.choose(0b1100'0001, 2), 0b1100'0000U);
  EXPECT_EQ(node.choose(0b1010'0001, 2), 0b1010'0000U);
  EXPECT_EQ(node.choose(0b1111'0111, 4), 0b1111'0000U);
  EXPECT_EQ(node.weakest(0b1100'0000), DeviceLink::kPcieSwitch);
  EXPECT_EQ(node.weakest(0b1010'0000), DeviceLink::kPcieRoot);
  EXPECT_EQ(node.weakest(0b1000'0001), DeviceLink::kSystem);
}

TEST(DeviceTopology, PrefersNvlinksToAnyPcie) {
  const DeviceTopology node(pcie_server({{1, 6}, {3, 4}}));
  EXPECT_EQ(node.choose(0b1111'1111, 2), 0b0100'0010U);
  EXPECT_EQ(node.choose(0b1011'1111, 2), 0b0001'1000U);
  EXPECT_EQ(node.weakest(0b0100'0010), DeviceLink::kNvlink);
}

TEST(DeviceTopology, PrefersThatAllAreCloseToManyLinksOfSome) {
  NodeDevices node;
  for (int i = 0; i < 5; ++i) node.devices.emplace_back().numa_node = i / 3;
  join(node, 0, 1, kNvlinksMax);
  for (const auto& [a, b] : {std::pair(2, 3), {2, 4}, {3, 4}})
    join(node, static_cast<uint32_t>(a), static_cast<uint32_t>(b), 4);
  const DeviceTopology topology(node);
  EXPECT_GT(topology.score(0b0'0111), topology.score(0b1'1100));
  EXPECT_EQ(topology.choose(0b1'1111, 3), 0b1'1100U) << "three that are all joined, whatever two of the others have";
  EXPECT_EQ(topology.choose(0b1'1111, 2), 0b0'0011U) << "of pairs that are joined the one with the most links";
  EXPECT_EQ(topology.choose(0b0'1111, 3), 0b0'0111U) << "none are all joined, but these are at one CPU";
}

TEST(DeviceTopology, LeavesWhatGoesTogetherToOthers) {
  const DeviceTopology node(pcie_server());
  EXPECT_EQ(node.choose(0b0000'0111, 1), 0b0000'0100U) << "0 and 1 are under one switch";
  EXPECT_EQ(node.choose(0b1111'1111, 1), 0b0000'0001U) << "of equals the first";
  EXPECT_EQ(node.choose(0b0011'1111, 2), 0b0011'0000U) << "the other CPU keeps its four";
}

TEST(DeviceTopology, SomeNumaNodesAreAllThatIsKnownOfSomeMachines) {
  NodeDevices node;
  for (const int numa : {0, 1, 0, 1}) {
    GpuDevice device;
    device.numa_node = numa;
    node.devices.push_back(device);
  }
  const DeviceTopology topology(node);
  EXPECT_EQ(topology.choose(0b1111, 2), 0b0101U);
  EXPECT_EQ(topology.weakest(0b0101), DeviceLink::kNuma);
}

TEST(DeviceTopology, GivesNothingWhereThereIsTooLittle) {
  const DeviceTopology node(pcie_server());
  EXPECT_EQ(node.choose(0b11, 3), 0U);
  EXPECT_EQ(node.choose(0, 1), 0U);
  EXPECT_EQ(node.choose(0b11, 0), 0U);
  EXPECT_EQ(DeviceTopology(NodeDevices{}).choose(0, 1), 0U);
}

TEST(DeviceTopology, ASetIsRatedByItsPairs) {
  NodeDevices node = pcie_server();
  join(node, 0, 1, kNvlinksMax);
  const DeviceTopology topology(node);
  EXPECT_EQ(topology.closeness(0b11), 1000);
  EXPECT_EQ(topology.closeness(0b1), 1000);
  EXPECT_EQ(topology.closeness(0b1100), 700);
  EXPECT_EQ(topology.closeness(0b1'0001), 0);
  EXPECT_EQ(topology.closeness(0b1111), 500 + ((1000 + 700 + 4 * 500) / 6 - 500) / 20);
  EXPECT_EQ(topology.score(0b1111), 1850 + 50 + 4 * 30);
}

TEST(WholeDevices, AreHealthyAndNotCut) {
  NodeDevices node = pcie_server();
  node.devices[2].unhealthy = "XID 79";
  node.devices[5].mig_enabled = true;
  EXPECT_EQ(whole_devices(node), 0b1101'1011U);
}

NodeDevices any_node(int count) {
  NodeDevices node;
  const std::vector<int> numa_of_root{*rc::gen::inRange(0, 2), *rc::gen::inRange(0, 2), *rc::gen::inRange(0, 2)};
  for (int i = 0; i < count; ++i) {
    GpuDevice device;
    const int root = *rc::gen::inRange(0, 3);
    device.pcie_root = std::string(1, "abc"[root]);
    if (*rc::gen::inRange(0, 2) == 0) device.numa_node = numa_of_root[static_cast<size_t>(root)];
    device.pcie_switch = std::vector<std::string>{"", "x", "y"}[static_cast<size_t>(*rc::gen::inRange(0, 3))];
    node.devices.push_back(device);
  }
  for (uint32_t i = 0; i < node.devices.size(); ++i)
    for (uint32_t j = 0; j < i; ++j)
      if (*rc::gen::inRange(0, 3) == 0) join(node, i, j, *rc::gen::inRange(1, 4));
  return node;
}

// -1: neither the device nor another below its root says it.
int numa_of(const NodeDevices& node, const GpuDevice& device) {
  int out = device.numa_node;
  for (const GpuDevice& other : node.devices)
    if (other.pcie_root == device.pcie_root) out = std::max(out, other.numa_node);
  return out;
}

// Pair by pair, from the devices themselves.
int score_of(const NodeDevices& node, DeviceSet set) {
  int sum = 0;
  for (uint32_t a = 0; a < node.devices.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if ((set >> a & 1) == 0 || (set >> b & 1) == 0) continue;
      const GpuDevice &x = node.devices[a], &y = node.devices[b];
      const bool root = !x.pcie_root.empty() && x.pcie_root == y.pcie_root;
      if (root && !x.pcie_switch.empty() && x.pcie_switch == y.pcie_switch) sum += 50;
      else if (root) sum += 30;
      else sum += numa_of(node, x) >= 0 && numa_of(node, x) == numa_of(node, y) ? 20 : 10;
      for (const auto& [peer, links] : x.nvlinks) sum += peer == b ? 100 * links : 0;
    }
  }
  return sum;
}

// The worst way between two: 0 for NVLink, up to 4 for two CPUs.
int worst_of(const NodeDevices& node, DeviceSet set) {
  int worst = 0;
  for (uint32_t a = 0; a < node.devices.size(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if ((set >> a & 1) == 0 || (set >> b & 1) == 0) continue;
      const GpuDevice &x = node.devices[a], &y = node.devices[b];
      const bool root = !x.pcie_root.empty() && x.pcie_root == y.pcie_root;
      const bool below = root && !x.pcie_switch.empty() && x.pcie_switch == y.pcie_switch;
      const bool numa = numa_of(node, x) >= 0 && numa_of(node, x) == numa_of(node, y);
      const bool joined = std::ranges::any_of(x.nvlinks, [&](const auto& link) { return link.first == b; });
      const bool told = numa_of(node, x) >= 0 && numa_of(node, y) >= 0;
      worst = std::max(worst, joined ? 0 : below ? 1 : root ? 2 : numa ? 3 : told ? 4 : 5);
    }
  }
  return worst;
}

std::vector<int> list_of(DeviceSet set) {
  std::vector<int> out;
  for (; set != 0; set &= set - 1) out.push_back(std::countr_zero(set));
  return out;
}

RC_GTEST_PROP(DeviceTopology, ChoosesWhatEverySetComparedWouldSay, ()) {
  const int count = *rc::gen::inRange(1, 11);  // on both sides of the number up to which answers are kept
  const NodeDevices node = any_node(count);
  const DeviceTopology topology(node);
  const auto free = static_cast<DeviceSet>(*rc::gen::inRange(0, 1 << count));
  const int wanted = *rc::gen::inRange(1, count + 1);
  DeviceSet best = 0;
  for (DeviceSet set = 1; set < DeviceSet{1} << count; ++set) {
    if (std::popcount(set) != wanted || (set & ~free) != 0) continue;
    const auto worth = [&](DeviceSet s) {
      return std::tuple(-worst_of(node, s), score_of(node, s), score_of(node, free & ~s));
    };
    if (best == 0 || worth(set) > worth(best) || (worth(set) == worth(best) && list_of(set) < list_of(best)))
      best = set;
  }
  RC_ASSERT(topology.choose(free, wanted) == best);
  RC_ASSERT(topology.score(best) == score_of(node, best));
  RC_ASSERT(static_cast<int>(topology.weakest(best)) == worst_of(node, best));
}

}  // namespace
}  // namespace berth::model
