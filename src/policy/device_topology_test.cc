// Whole devices across what can happen to a pod; where they lie is tried in scenarios/device-topology, and over random
// histories in gpu_share_property_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Four devices, with two under a switch.
model::Node pcie_node() {
  model::Node node = make_node("pcie", {{"nvidia.com/gpu", 4}});
  node.gpus.resource = model::kWholeGpuResource;
  for (int i = 0; i < 4; ++i) {
    model::GpuDevice& device = node.devices.devices.emplace_back();
    device.uuid = "GPU-" + std::to_string(i);
    device.pcie_root = "root";
    device.pcie_switch = i < 2 ? "s0" : "s1";
  }
  return node;
}

std::vector<int32_t> devices_of(const Driver& driver, const std::string& name) {
  return driver.state().devices_of(driver.state().find_pod("uid-" + name)).numbers;
}

TEST(WholeDevices, OneThatIsBoundWhereItWasNominatedHasThoseThatItSays) {
  Driver driver(default_policies());
  driver.add(pcie_node());
  model::Pod low = bound_to(make_pod("low", {{"nvidia.com/gpu", 4}}), "pcie");
  driver.add(low);
  model::Pod urgent = with_priority(make_pod("urgent", {{"nvidia.com/gpu", 2}}), 10);
  driver.add(urgent);
  driver.cycle();
  ASSERT_EQ(driver.phase_of("urgent"), PodPhase::kNominated);
  EXPECT_THAT(devices_of(driver, "urgent"), IsEmpty());
  urgent = bound_to(urgent, "pcie");
  urgent.gpu_devices = {"GPU-2", "GPU-3"};
  driver.add(urgent);
  EXPECT_THAT(devices_of(driver, "urgent"), ElementsAre(2, 3));
  driver.apply(PodDeleted{"uid-low"});
  driver.add(make_pod("next", {{"nvidia.com/gpu", 2}}));
  driver.cycle();
  EXPECT_THAT(devices_of(driver, "next"), ElementsAre(0, 1));
}

TEST(WholeDevices, StayTheSameFromTheDecisionToTheBind) {
  Driver driver(default_policies());
  driver.add(pcie_node());
  driver.add(make_pod("pair", {{"nvidia.com/gpu", 2}}));
  driver.cycle();
  EXPECT_THAT(devices_of(driver, "pair"), ElementsAre(0, 1));
  for (const BindOutcome outcome : {BindOutcome::kPreBinding, BindOutcome::kSent, BindOutcome::kSucceeded}) {
    driver.bind_progress("uid-pair", outcome);
    EXPECT_THAT(devices_of(driver, "pair"), ElementsAre(0, 1));
  }
}

}  // namespace
}  // namespace berth::policy
