#include "engine/device_topologies.h"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

// Two devices, under one PCIe switch or under two.
model::NodeDevices pair(const std::string& root, bool one_switch, int32_t numa = 0) {
  model::NodeDevices out;
  for (const char* name : {"a", "b"}) {
    model::GpuDevice& device = out.devices.emplace_back();
    device.uuid = root + name;
    device.numa_node = numa;
    device.pcie_root = root;
    device.pcie_switch = one_switch ? "switch" : name;
  }
  return out;
}

TEST(DeviceTopologies, AreSharedByNodesWhoseDevicesAreConnectedAlike) {
  DeviceTopologies known;
  const auto first = known.of(pair("0000:00", true));
  EXPECT_EQ(first, known.of(pair("0001:80", true))) << "names do not matter";
  EXPECT_NE(first, known.of(pair("0000:00", false)));
  EXPECT_EQ(first->weakest(0b11), model::DeviceLink::kPcieSwitch);
  EXPECT_EQ(known.of(pair("0000:00", false))->weakest(0b11), model::DeviceLink::kPcieRoot);
  EXPECT_EQ(known.of({}), nullptr);
}

TEST(DeviceTopologies, AreForgottenWhenNoNodeHasThemAnyMore) {
  DeviceTopologies known;
  const auto kept = known.of(pair("r", true));
  for (int32_t shape = 1; shape < 1000; ++shape) known.of(pair("r", true, shape));
  EXPECT_LE(known.size(), 64U);
  EXPECT_EQ(kept, known.of(pair("r", true)));
}

}  // namespace
}  // namespace berth::engine
