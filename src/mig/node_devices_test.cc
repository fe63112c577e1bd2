#include "mig/node_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::mig {
namespace {

using ::testing::HasSubstr;

model::Node node_of(const model::ResourceList& gpus, int64_t devices) {
  model::Node node;
  node.name = "dgx";
  node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, devices};
  node.capacity = node.allocatable = gpus;
  return node;
}

std::vector<GpuDevice> devices(const model::ResourceList& gpus, int64_t count) {
  return devices_of(node_of(gpus, count)).value();
}

model::ResourceList cut(const model::ResourceList& gpus, int64_t count, const model::ResourceList& needs) {
  packing::MigDemand demand;
  const auto got = cut_for(devices(gpus, count), needs, demand);
  return got ? advertised(*got) : model::ResourceList{{"impossible", 1}};
}

const model::ResourceList kImpossible = {{"impossible", 1}};

TEST(NodeDevices, AreWhatTheNodeAdvertises) {
  for (const model::ResourceList& gpus :
       {model::ResourceList{{"nvidia.com/gpu", 2}},
        model::ResourceList{{"nvidia.com/mig-1g.5gb", 4}, {"nvidia.com/mig-2g.10gb", 2}, {"nvidia.com/mig-3g.20gb", 2}},
        model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 6}, {"nvidia.com/mig-1g.5gb.me", 1}},
        model::ResourceList{}})
    EXPECT_EQ(advertised(devices(gpus, 2)), gpus);
}

TEST(NodeDevices, ThatAreCutAlikeAreTakenToBeSo) {
  const auto got =
      devices({{"nvidia.com/mig-1g.5gb", 4}, {"nvidia.com/mig-2g.10gb", 2}, {"nvidia.com/mig-3g.20gb", 2}}, 2);
  EXPECT_EQ(got[0].mig.layout, got[1].mig.layout);
}

TEST(NodeDevices, AreNotMadeUpWhereTheCountsCannotBe) {
  const auto why = [](const model::ResourceList& gpus, int64_t count) {
    const auto got = devices_of(node_of(gpus, count));
    return got ? "" : got.error().message;
  };
  EXPECT_THAT(why({{"nvidia.com/mig-1g.5gb", 15}}, 2), HasSubstr("cannot have the instances"));
  EXPECT_THAT(why({{"nvidia.com/mig-1g.10gb", 15}, {"nvidia.com/mig-1g.99gb", 1}}, 2), HasSubstr("not all profiles"));
  EXPECT_THAT(why({{"nvidia.com/gpu", 3}}, 2), HasSubstr("3 GPUs are advertised, and there are 2"));
  model::Node ill = node_of({{"nvidia.com/gpu", 2}}, 2);
  ill.allocatable.set("nvidia.com/gpu", 1);
  EXPECT_THAT(devices_of(ill).error().message, HasSubstr("not all are allocatable"));
}

TEST(CutFor, LeavesAloneWhatSufficesAlready) {
  const model::ResourceList gpus = {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}};
  EXPECT_EQ(cut(gpus, 2, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}}), gpus);
  EXPECT_EQ(cut(gpus, 2, {}), gpus);
}

TEST(CutFor, CutsOnlyAsManyWholeGpusAsItTakes) {
  EXPECT_EQ(cut({{"nvidia.com/gpu", 4}}, 4, {{"nvidia.com/mig-4g.20gb", 2}}),
            (model::ResourceList{{"nvidia.com/gpu", 2}, {"nvidia.com/mig-4g.20gb", 2}}));
}

TEST(CutFor, CutsDevicesThatAreCutAlreadyBeforeWholeOnes) {
  EXPECT_EQ(cut({{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}, 2, {{"nvidia.com/mig-7g.40gb", 1}}),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-7g.40gb", 1}}));
}

TEST(CutFor, MakesDevicesWholeWhereThoseAreNeeded) {
  EXPECT_EQ(cut({{"nvidia.com/mig-1g.5gb", 14}}, 2, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}));
}

TEST(CutFor, RefusesWhatDoesNotFitOrDoesNotExist) {
  EXPECT_EQ(cut({{"nvidia.com/gpu", 2}}, 2, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-4g.20gb", 2}}), kImpossible);
  EXPECT_EQ(cut({{"nvidia.com/gpu", 2}}, 2, {{"nvidia.com/gpu", 3}}), kImpossible);
  EXPECT_EQ(cut({{"nvidia.com/gpu", 2}}, 2, {{"nvidia.com/mig-1g.20gb", 1}}), kImpossible);
}

TEST(CutFor, DoesNotTouchWhatIsInUse) {
  std::vector<GpuDevice> two = devices({{"nvidia.com/mig-3g.20gb", 4}}, 2);
  two[0].mig.used.place(two[0].mig.layout.instances().front());
  packing::MigDemand demand;
  const auto got = cut_for(two, {{"nvidia.com/mig-3g.20gb", 1}, {"nvidia.com/mig-7g.40gb", 1}}, demand);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ((*got)[0].mig.layout, two[0].mig.layout);
  EXPECT_EQ(advertised(*got), (model::ResourceList{{"nvidia.com/mig-3g.20gb", 2}, {"nvidia.com/mig-7g.40gb", 1}}));
  EXPECT_FALSE(cut_for(two, {{"nvidia.com/mig-7g.40gb", 2}}, demand).has_value());
}

TEST(FillUp, GivesWhatIsFreeToWhatIsAskedForMost) {
  packing::MigDemand demand;
  demand.observe("1g.5gb", 1);
  const auto before = devices({{"nvidia.com/gpu", 2}}, 2);
  auto after = cut_for(before, {{"nvidia.com/mig-1g.5gb", 1}}, demand).value();
  fill_up(before, after, demand);
  EXPECT_EQ(advertised(after), (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}));
  demand.observe("3g.20gb", 5);
  after = cut_for(before, {{"nvidia.com/mig-1g.5gb", 1}}, demand).value();
  fill_up(before, after, demand);
  EXPECT_EQ(advertised(after),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 3}, {"nvidia.com/mig-3g.20gb", 1}}));
}

}  // namespace
}  // namespace berth::mig
