#include "engine/fragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "engine/testing_policies.h"
#include "model/mig.h"

namespace berth::engine {
namespace {

using namespace berth::engine::testing;
using ::testing::ElementsAre;

constexpr int64_t kGiB = int64_t{1} << 30;

std::vector<int64_t> fits(const ResourceRoom& room) {
  std::vector<int64_t> out;
  for (const ShapeRoom& shape : room.shapes) out.push_back(shape.fit);
  return out;
}

// Every free device is either part of a request that fits or stranded by something.
void expect_adds_up(const State& state) {
  for (const ResourceRoom& room : measure_fragmentation(state))
    for (const ShapeRoom& shape : room.shapes) {
      int64_t sum = shape.fit * shape.size;
      for (const int64_t devices : shape.stranded) sum += devices;
      EXPECT_EQ(sum, room.free) << room.resource << " by " << shape.size;
    }
}

TEST(Fragmentation, EachCauseHasItsDevices) {
  Driver driver(room_policies());
  model::Node tainted = make_node("tainted", {{"nvidia.com/gpu", 8}});
  tainted.taints = {{"team", "red", model::TaintEffect::kNoSchedule}};
  driver.add(tainted);
  driver.add(make_node("no-cpu", {{"nvidia.com/gpu", 8}, {"cpu", 24'000}}));
  driver.add(make_node("no-memory", {{"nvidia.com/gpu", 4}, {"memory", 10 * kGiB}}));
  driver.add(make_node("no-pods", {{"nvidia.com/gpu", 4}, {"pods", 1}}));
  driver.add(make_node("odd", {{"nvidia.com/gpu", 3}}));
  driver.add(make_node("none"));
  // Eight cores and 4 GiB to a GPU in the median; the node is taken whole.
  driver.add(make_node("full", {{"nvidia.com/gpu", 4}}));
  driver.add(bound_to(make_pod("a", {{"nvidia.com/gpu", 3}, {"cpu", 24'000}, {"memory", 12 * kGiB}}), "full"));
  driver.add(bound_to(make_pod("b", {{"nvidia.com/gpu", 1}, {"cpu", 8'000}, {"memory", 4 * kGiB}}), "full"));
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 1u);
  EXPECT_EQ(rooms[0].resource, "nvidia.com/gpu");
  EXPECT_EQ(rooms[0].allocatable, 31);
  EXPECT_EQ(rooms[0].free, 27);
  EXPECT_EQ(rooms[0].cpu_millis, 8'000);
  EXPECT_EQ(rooms[0].memory_bytes, 4 * kGiB);
  EXPECT_THAT(fits(rooms[0]), ElementsAre(3 + 2 + 1 + 3, 1 + 1 + 1 + 1, 1, 0));
  EXPECT_THAT(rooms[0].shapes[0].stranded, ElementsAre(8, 5, 2, 3, 0));
  EXPECT_THAT(rooms[0].shapes[1].stranded, ElementsAre(8, 6, 2, 2, 1));
  EXPECT_THAT(rooms[0].shapes[2].stranded, ElementsAre(8, 8, 4, 0, 3));
  expect_adds_up(driver.state());
}

TEST(Fragmentation, PodsOfQueuesThatHaveNotComeCount) {
  Driver driver(room_policies());
  model::Node node = make_node("gpu", {{"nvidia.com/gpu", 8}, {"cpu", 32'000}});
  node.taints = {{"team", "red", model::TaintEffect::kNoSchedule}};
  driver.add(node);
  const model::Toleration red{.key = "team", .value = "red", .op = model::TolerationOperator::kEqual};
  const std::vector<QueuedPods> queued = {{3, {{"nvidia.com/gpu", 2}, {"cpu", 16'000}}, false, {red}},
                                          {1, {{"nvidia.com/gpu", 1}, {"cpu", 1'000}}, false, {}}};
  const ResourceRoom room = measure_fragmentation(driver.state(), {}, queued)[0];
  EXPECT_EQ(room.cpu_millis, 8'000);
  EXPECT_THAT(fits(room), ElementsAre(4, 2, 1, 0));
  EXPECT_THAT(fits(measure_fragmentation(driver.state())[0]), ElementsAre(0, 0, 0, 0)) << "nobody known tolerates it";
}

TEST(Fragmentation, ATaintThatAPodToleratesIsNone) {
  Driver driver(room_policies());
  model::Node node = make_node("gpu", {{"nvidia.com/gpu", 8}});
  node.taints = {{"nvidia.com/gpu", "", model::TaintEffect::kNoSchedule}};
  driver.add(node);
  EXPECT_EQ(measure_fragmentation(driver.state())[0].shapes[3].fit, 1);  // named like the resource
  driver.add(make_pod("plain", {{"nvidia.com/gpu", 9}}));
  EXPECT_EQ(measure_fragmentation(driver.state())[0].shapes[3].fit, 0);  // nobody known tolerates it
  driver.add(with_spec(make_pod("tolerant", {{"nvidia.com/gpu", 9}}), [](model::SchedulingSpec& spec) {
    spec.tolerations = {{.key = "nvidia.com/gpu", .value = "", .op = model::TolerationOperator::kExists}};
  }));
  EXPECT_EQ(measure_fragmentation(driver.state())[0].shapes[3].fit, 1);
  node.unschedulable = true;
  driver.add(node);
  EXPECT_THAT(measure_fragmentation(driver.state())[0].shapes[0].stranded, ElementsAre(8, 0, 0, 0, 0));
}

TEST(Fragmentation, SlicesAndSharesComeOneByOne) {
  Driver driver(room_policies());
  driver.add(make_node("mig", {{"nvidia.com/mig-1g.10gb", 7}, {"nvidia.com/mig-3g.40gb", 2}}));
  const auto add_sliced = [&](const std::string& name, const std::string& resource) {
    model::Node node = make_node(name, {{resource, 16}});
    node.gpus = {model::GpuSharing::kReplicas, resource, 0, 4};
    driver.add(node);
  };
  add_sliced("shared", "nvidia.com/gpu.shared");
  add_sliced("sliced", "nvidia.com/gpu");
  driver.add(make_node("whole", {{"nvidia.com/gpu", 2}}));
  driver.add(bound_to(make_pod("a", {{"nvidia.com/mig-1g.10gb", 1}}), "mig"));
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 5u);
  EXPECT_EQ(rooms[0].resource, "nvidia.com/gpu");
  EXPECT_THAT(fits(rooms[0]), ElementsAre(2, 1, 0, 0));
  EXPECT_TRUE(rooms[1].unit == GpuUnit::kReplica && rooms[1].resource == "nvidia.com/gpu");
  EXPECT_THAT(fits(rooms[1]), ElementsAre(16));
  EXPECT_TRUE(rooms[2].unit == GpuUnit::kReplica && rooms[2].resource == "nvidia.com/gpu.shared");
  EXPECT_THAT(fits(rooms[2]), ElementsAre(16));
  EXPECT_THAT(fits(rooms[3]), ElementsAre(6));
  EXPECT_THAT(fits(rooms[4]), ElementsAre(2));
  expect_adds_up(driver.state());
}

TEST(Fragmentation, ReplicasOfInstancesStandApart) {
  Driver driver(room_policies());
  const std::string profile = "nvidia.com/mig-3g.20gb";
  driver.add(make_node("alone", {{profile, 2}}));
  const auto add_sliced = [&](const std::string& resource, int64_t replicas) {
    model::Node node = make_node(resource, {{resource, replicas}});
    node.gpus.time_sliced = {resource};
    driver.add(node);
  };
  add_sliced(profile, 8);
  add_sliced(profile + ".shared", 4);
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 3u);
  EXPECT_TRUE(rooms[0].unit == GpuUnit::kDevice && rooms[0].resource == profile);
  EXPECT_THAT(fits(rooms[0]), ElementsAre(2));
  EXPECT_TRUE(rooms[1].unit == GpuUnit::kReplica && rooms[1].resource == profile);
  EXPECT_THAT(fits(rooms[1]), ElementsAre(8));
  EXPECT_TRUE(rooms[2].unit == GpuUnit::kReplica && rooms[2].resource == profile + ".shared");
  EXPECT_THAT(fits(rooms[2]), ElementsAre(4));
  expect_adds_up(driver.state());
}

TEST(Fragmentation, InstancesUnderTheNameOfADeviceStandApart) {
  Driver driver(room_policies());
  model::Node single = make_node("single", {{"nvidia.com/gpu", 14}});
  single.gpus = {model::GpuSharing::kInstances, "nvidia.com/gpu", 0, 1};
  driver.add(single);
  driver.add(make_node("whole", {{"nvidia.com/gpu", 2}}));
  driver.add(bound_to(make_pod("a", {{"nvidia.com/gpu", 3}}), "single"));
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 2u);
  EXPECT_THAT(fits(rooms[0]), ElementsAre(2, 1, 0, 0)) << "devices of whole nodes alone";
  EXPECT_TRUE(rooms[1].unit == GpuUnit::kInstance && rooms[1].resource == "nvidia.com/gpu");
  EXPECT_THAT(fits(rooms[1]), ElementsAre(11));
  const GpuTotals totals = sum_gpus(driver.state());
  EXPECT_THAT((std::array{totals.allocatable, totals.used, totals.mig_allocatable, totals.mig_used}),
              ElementsAre(2, 0, 14, 3));
  expect_adds_up(driver.state());
}

TEST(Fragmentation, EveryProfileOfANodeThatIsAdvertisedByProfileHasItsRow) {
  Driver driver(room_policies());
  const auto add = [&](const std::string& name, model::Labels labels, const model::ResourceList& gpus) {
    model::Node node = make_node(name, gpus);
    node.labels = std::move(labels);
    driver.add(node);
  };
  add("uncut", {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"}}, {{"nvidia.com/gpu", 8}});
  EXPECT_EQ(measure_fragmentation(driver.state()).size(), 1u);
  add("cut", {{"nvidia.com/gpu.product", "NVIDIA-H100-NVL"}}, {{"nvidia.com/mig-1g.12gb", 7}});
  EXPECT_EQ(measure_fragmentation(driver.state()).size(), 1u + 7);  // of the H100 with 94 GB alone
  add("mixed", {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/mig.strategy", "mixed"}},
      {{"nvidia.com/gpu", 1}});
  add("unknown", {{"nvidia.com/gpu.product", "Future-900"}, {"nvidia.com/mig.strategy", "mixed"}},
      {{"nvidia.com/gpu", 1}});
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 1u + 7 + 7);
  EXPECT_EQ(rooms[1].resource, "nvidia.com/mig-1g.10gb");
  EXPECT_EQ(rooms[1].allocatable, 0);
  EXPECT_THAT(fits(rooms[1]), ElementsAre(0));
  EXPECT_EQ(rooms[1].shapes[0].fit_if_cut, std::nullopt);
  expect_adds_up(driver.state());
}

TEST(Fragmentation, GpusWithMigThatAreNotCutAreToldOf) {
  Driver driver(room_policies());
  model::Node node = make_node("uncut", {});
  node.labels = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/mig.strategy", "mixed"}};
  driver.add(node);
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_EQ(rooms.size(), 7u);
  for (const ResourceRoom& room : rooms) EXPECT_THAT(fits(room), ElementsAre(0)) << room.resource;
  node.labels = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}};
  driver.add(node);
  EXPECT_TRUE(measure_fragmentation(driver.state()).empty());
  node.devices.devices.emplace_back().mig_enabled = true;
  driver.add(node);
  EXPECT_EQ(measure_fragmentation(driver.state()).size(), 7u) << "its agent says that it is there";
}

TEST(Fragmentation, InstancesThatTakeNoNewWorkAreNotFree) {
  Driver driver(room_policies());
  model::Node node = make_node("odd", {{"nvidia.com/mig-1g.5gb", 9}});
  node.labels = {{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"}};
  driver.add(node);
  const auto fit = [&] {
    int64_t sum = 0;
    for (const ResourceRoom& room : measure_fragmentation(driver.state())) sum += room.shapes[0].fit + room.free;
    return sum;
  };
  EXPECT_EQ(fit(), 9 + 9);
  node.mig_problem = "more than one GPU has";
  driver.add(node);
  EXPECT_EQ(fit(), 0);
}

TEST(Fragmentation, WhatCuttingWouldGainObeysTheRestOfTheNode) {
  Driver driver(room_policies());
  const auto add = [&](const std::string& name, int64_t cpu_millis, std::vector<model::Taint> taints) {
    model::Node node = make_node(name, {{"nvidia.com/gpu", 2}, {"cpu", cpu_millis}});
    node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, 2, model::MigHand::kLayouts};
    node.taints = std::move(taints);
    driver.add(node);
  };
  add("roomy", 64'000, {});
  add("short", 10'000, {});
  add("tainted", 64'000, {{"team", "red", model::TaintEffect::kNoSchedule}});
  driver.add(make_pod("waits", {{"nvidia.com/mig-1g.5gb", 1}, {"cpu", 4'000}}));
  const auto of = [&](const std::string& resource) {
    static const IdleGpus both{2, {{"nvidia.com/gpu", 2}}};
    for (const ResourceRoom& room : measure_fragmentation(driver.state(), [](NodeSlot) { return &both; }))
      if (room.resource == resource) return room.shapes.front();
    throw std::logic_error("no row for " + resource);
  };
  EXPECT_EQ(of("nvidia.com/mig-1g.5gb").fit, 0);
  EXPECT_EQ(of("nvidia.com/mig-1g.5gb").fit_if_cut, 14 + 2);
  EXPECT_EQ(of("nvidia.com/mig-7g.40gb").fit_if_cut, 2 * 2);  // no pod asks for it, so that cpu is no matter
  EXPECT_EQ(of("nvidia.com/gpu").fit_if_cut, of("nvidia.com/gpu").fit);
  const auto none_idle = [](NodeSlot) -> const IdleGpus* { return nullptr; };
  for (const ResourceRoom& room : measure_fragmentation(driver.state(), none_idle))
    EXPECT_EQ(room.shapes.front().fit_if_cut, room.shapes.front().fit)
        << room.resource << ": in use, it may be cut later";
}

TEST(Fragmentation, WholeGpusHaveARowWhereAllAreCutAndInUse) {
  Driver driver(room_policies());
  model::Node node = make_node("cut", {{"nvidia.com/mig-7g.40gb", 2}, {"nvidia.com/gpu", 0}});
  node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, 2, model::MigHand::kLayouts};
  driver.add(node);
  std::vector<std::string> rows;
  for (const ResourceRoom& room :
       measure_fragmentation(driver.state(), [](NodeSlot) -> const IdleGpus* { return nullptr; }))
    rows.push_back(room.resource);
  EXPECT_THAT(rows, ::testing::Contains("nvidia.com/gpu"));
}

TEST(Fragmentation, NothingFitsWhereGpusAreBeingCut) {
  Driver driver(room_policies());
  model::Node node = make_node("a", {{"nvidia.com/gpu", 2}});
  node.cut_by_others = true;
  driver.add(node);
  const std::vector<ResourceRoom> rooms = measure_fragmentation(driver.state());
  ASSERT_FALSE(rooms.empty());
  EXPECT_EQ(rooms[0].shapes[0].fit, 0);
  EXPECT_EQ(rooms[0].shapes[0].stranded[static_cast<size_t>(Stranding::kByTaint)], 2);
}

}  // namespace
}  // namespace berth::engine
