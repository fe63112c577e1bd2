#include "mig/idle_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "engine/testing_policies.h"

namespace berth::mig {
namespace {

using namespace berth::engine::testing;

model::Node dgx(const model::ResourceList& gpus, int64_t devices) {
  model::Node node = make_node("dgx", gpus);
  node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, devices, model::MigHand::kLayouts};
  return node;
}

// How many of the resource would fit if idle GPUs were cut for it.
std::optional<int64_t> if_cut(const Driver& driver, const std::string& resource) {
  IdleDevices idle;
  for (const engine::ResourceRoom& room : measure_fragmentation(driver.engine(), idle))
    if (room.resource == resource) return room.shapes.front().fit_if_cut;
  return std::nullopt;
}

TEST(IdleDevices, OfCountsAreAllOrNone) {
  Driver driver(room_policies());
  driver.add(dgx({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 5}}, 2));
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-1g.5gb"), 14);
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-3g.20gb"), 4);
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), 2);
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-3g.40gb"), std::nullopt);  // of another model
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu.shared"), std::nullopt);
  driver.add(bound_to(make_pod("a", {{"nvidia.com/mig-1g.5gb", 1}}), "dgx"));
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), 1);
}

TEST(IdleDevices, OfCountsThatCannotBeAreNone) {
  Driver driver(room_policies());
  driver.add(dgx({{"nvidia.com/mig-1g.5gb", 15}}, 2));
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), std::nullopt);
}

TEST(IdleDevices, BesideThoseInUseCountWithWhatTheseLeaveFree) {
  Driver driver(room_policies());
  model::Node node = dgx({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}}, 2);
  model::GpuDevice whole, cut;
  whole.uuid = "whole";
  cut.uuid = "cut";
  cut.mig_enabled = true;
  cut.mig_instances = {{"a", "3g.20gb", 0}, {"b", "3g.20gb", 4}};
  cut.pods = {"default/a"};
  node.devices.devices = {whole, cut};
  driver.add(node);
  driver.add(bound_to(make_pod("a", {{"nvidia.com/mig-3g.20gb", 1}}), "dgx"));
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-3g.20gb"), 1 + 2);
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-1g.5gb"), 7);
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), 1);
  driver.add(bound_to(make_pod("b", {{"nvidia.com/gpu", 1}}), "dgx"));  // of which the agent has said nothing yet
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), 0);
}

TEST(IdleDevices, MakeUpFirstForWhatRunsOnIllOnes) {
  Driver driver(room_policies());
  model::Node node = dgx({{"nvidia.com/gpu", 0}}, 3);
  model::GpuDevice a, b, ill;
  a.uuid = "a", b.uuid = "b", ill.uuid = "ill";
  a.mig_enabled = b.mig_enabled = true;
  ill.unhealthy = "XID 79";
  ill.pods = {"default/x"};
  node.devices.devices = {a, b, ill};
  driver.add(node);
  driver.add(bound_to(make_pod("x", {{"nvidia.com/gpu", 1}}), "dgx"));
  EXPECT_EQ(if_cut(driver, "nvidia.com/gpu"), 1);
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-7g.40gb"), 2) << "for which kubelet counts nothing in use";
}

TEST(IdleDevices, AreNoneWhereTheListNamesAnEarlierPod) {
  Driver driver(room_policies());
  model::Node node = dgx({{"nvidia.com/mig-1g.5gb", 2}}, 2);
  model::GpuDevice first, second;
  first.uuid = "first";
  second.uuid = "second";
  first.mig_enabled = second.mig_enabled = true;
  first.mig_instances = {{"a", "1g.5gb", 0}};
  second.mig_instances = {{"b", "1g.5gb", 0, {"default/x"}}};
  second.pods = {"default/x"};
  node.devices.devices = {first, second};
  driver.add(node);
  driver.add(make_pod("x", {{"nvidia.com/mig-1g.5gb", 1}}));
  driver.cycle();
  driver.bind_progress("uid-x", engine::BindOutcome::kSucceeded);
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-7g.40gb"), 0);  // it may be on either
  node.devices.devices[0].numa_node = 0;
  driver.add(node);  // the agent has written anew, and names it still
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-7g.40gb"), 1);
}

TEST(IdleDevices, AreNoneWhereThePodAsksForAnotherProfile) {
  Driver driver(room_policies());
  model::Node node = dgx({{"nvidia.com/mig-1g.5gb", 1}, {"nvidia.com/mig-2g.10gb", 1}}, 2);
  model::GpuDevice first, second;
  first.uuid = "first";
  second.uuid = "second";
  first.mig_enabled = second.mig_enabled = true;
  first.mig_instances = {{"a", "2g.10gb", 0}};
  second.mig_instances = {{"b", "1g.5gb", 0, {"default/x"}}};
  second.pods = {"default/x"};
  node.devices.devices = {first, second};
  driver.add(node);
  driver.add(bound_to(make_pod("x", {{"nvidia.com/mig-2g.10gb", 1}}), "dgx"));
  EXPECT_EQ(if_cut(driver, "nvidia.com/mig-7g.40gb"), 0);
}

TEST(IdleDevices, AreLookedAtAnewWhenTheNodeChanges) {
  Driver driver(room_policies());
  driver.add(dgx({{"nvidia.com/gpu", 2}}, 2));
  IdleDevices idle;
  const auto count = [&] {
    const IdleDevices::Known* known = idle.find(driver.state(), driver.state().find_node("dgx"));
    return known == nullptr ? 0 : known->idle.count;
  };
  EXPECT_EQ(count(), 2);
  driver.add(bound_to(make_pod("a", {{"nvidia.com/gpu", 1}}), "dgx"));
  EXPECT_EQ(count(), 0);
  driver.apply(engine::PodDeleted{"uid-a"});
  EXPECT_EQ(count(), 2);
  driver.add(dgx({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-7g.40gb", 2}}, 3));
  EXPECT_EQ(count(), 3);
}

}  // namespace
}  // namespace berth::mig
