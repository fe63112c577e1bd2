#include "mig/node_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace berth::mig {
namespace {

using ::testing::HasSubstr;

model::Node node_of(const model::ResourceList& gpus, int64_t devices) {
  model::Node node;
  node.name = "dgx";
  node.mig = {model::read_gpu_product("NVIDIA-A100-SXM4-40GB").model, devices, model::MigHand::kLayouts};
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
}

model::Node told_node(const model::ResourceList& gpus) {
  model::Node node = node_of(gpus, 3);
  model::GpuDevice busy, cut, ill;
  busy.uuid = "busy";
  busy.pods = {"default/x"};
  cut.uuid = "cut";
  cut.mig_enabled = true;
  cut.mig_instances = {{"i", "3g.20gb", 0}, {"j", "1g.5gb", 6}};
  ill.uuid = "ill";
  ill.unhealthy = "XID 79";
  node.devices.devices = {busy, cut, ill};
  return node;
}

TEST(NodeDevices, AreAsTheAgentTells) {
  const model::ResourceList gpus = {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 1}, {"nvidia.com/mig-3g.20gb", 1}};
  const auto got = devices_of(told_node(gpus)).value();
  ASSERT_EQ(got.size(), 3U);
  EXPECT_FALSE(got[0].idle());
  EXPECT_TRUE(got[1].idle());
  EXPECT_EQ(got[1].mig.layout.instances().back().start, 6);
  EXPECT_FALSE(got[2].idle());
  EXPECT_EQ(advertised(got), gpus);
  packing::MigDemand demand;
  EXPECT_EQ(advertised(cut_for(got, {{"nvidia.com/mig-7g.40gb", 1}}, demand).value()),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-7g.40gb", 1}}));
  EXPECT_FALSE(cut_for(got, {{"nvidia.com/mig-7g.40gb", 2}}, demand).has_value());
}

TEST(NodeDevices, AreNotKnownWhereTheAgentAndKubeletDiffer) {
  EXPECT_THAT(devices_of(told_node({{"nvidia.com/gpu", 1}})).error().message, HasSubstr("out of date"));
}

TEST(NamedFor, FindsTheConfigurationOfTheMigManager) {
  const auto eight = devices({{"nvidia.com/gpu", 8}}, 8);
  const auto named = [&](const model::ResourceList& needs) {
    const auto got = named_for(eight, needs);
    return got ? got->name : "none";
  };
  EXPECT_EQ(named({{"nvidia.com/gpu", 3}}), "all-disabled");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.5gb", 56}}), "all-1g.5gb");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.5gb", 57}}), "none");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.5gb.me", 8}}), "all-1g.5gb.me");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.10gb", 32}}), "all-1g.10gb");
  EXPECT_EQ(named({{"nvidia.com/mig-2g.10gb", 24}}), "all-2g.10gb");
  EXPECT_EQ(named({{"nvidia.com/mig-4g.20gb", 8}}), "all-4g.20gb");
  EXPECT_EQ(named({{"nvidia.com/mig-7g.40gb", 8}}), "all-7g.40gb");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.5gb", 16}, {"nvidia.com/mig-2g.10gb", 8}, {"nvidia.com/mig-3g.20gb", 8}}),
            "all-balanced");
  EXPECT_EQ(named({{"nvidia.com/mig-1g.5gb", 1}, {"nvidia.com/gpu", 1}}), "none");
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

TEST(WhyItCannotArrive, IsInUseOrHealthOfDevices) {
  model::Node node = told_node({{"nvidia.com/gpu", 3}});
  node.devices.devices.clear();
  for (const char* uuid : {"GPU-a", "GPU-b", "GPU-c"}) node.devices.devices.emplace_back().uuid = uuid;
  std::vector<model::GpuDevice> wanted = node.devices.devices;
  wanted[1].mig_enabled = true;
  wanted[1].mig_instances = {{"", "3g.20gb", 0}, {"", "3g.20gb", 4}};
  const model::ResourceList resources = {{"nvidia.com/gpu", 2}, {"nvidia.com/mig-3g.20gb", 2}};
  const auto why = [&](const std::function<void(model::Node&)>& change) {
    model::Node now = node;
    change(now);
    return why_it_cannot_arrive(now, wanted, resources);
  };
  EXPECT_EQ(why([](model::Node&) {}), "");
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices[0].pods = {"ml/train"}; }), "") << "it is not to be cut";
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices[1].pods = {"ml/train"}; }),
            "GPU GPU-b has come into use, by ml/train");
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices[0].unhealthy = "Xid 79"; }),
            "other GPUs are healthy than before; ill: GPU-a (Xid 79)");
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices.pop_back(); }), "GPU GPU-c is no more there");
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices.emplace_back().uuid = "GPU-d"; }),
            "the node has other GPUs than before");
  EXPECT_EQ(why([](model::Node& now) { now.devices.devices.clear(); }), "no agent tells its GPUs any more");
  EXPECT_EQ(why([](model::Node& now) { now.mig = {}; }), "its GPUs are not to be cut any more");
  EXPECT_EQ(why([&](model::Node& now) {
              now.devices.devices[1] = wanted[1];
              std::ranges::reverse(now.devices.devices[1].mig_instances);
              now.devices.devices[1].pods = {"ml/slice"};
            }),
            "")
      << "it is cut as wanted, in whatever order that is told";
  node.devices.devices[0].unhealthy = "Xid 79";
  EXPECT_EQ(why_it_cannot_arrive(node, wanted, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}}), "");
  node.devices.devices[0].mig_enabled = true;  // as it was reset
  EXPECT_EQ(why_it_cannot_arrive(node, wanted, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}}),
            "GPU GPU-a is ill, and has other instances than before");
  node.devices.devices[0].mig_enabled = false;
  node.devices.devices[0].unhealthy = "";
  EXPECT_EQ(why_it_cannot_arrive(node, wanted, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-3g.20gb", 2}}),
            "other GPUs are healthy than before; ill: none");
}

TEST(FillUp, GivesWhatIsFreeToWhatIsAskedForMost) {
  packing::MigDemand demand;
  demand.observe("1g.5gb", 1);
  const auto before = devices({{"nvidia.com/gpu", 2}}, 2);
  auto after = cut_for(before, {{"nvidia.com/mig-1g.5gb", 1}}, demand).value();
  fill_up(before, after, demand);
  EXPECT_EQ(advertised(after), (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}));
  auto rest = cut_for(before, {{"nvidia.com/mig-4g.20gb", 1}}, demand).value();
  packing::MigDemand halves;
  halves.observe("4g.20gb", 1);
  fill_up(before, rest, halves);
  EXPECT_EQ(advertised(rest),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-4g.20gb", 1}, {"nvidia.com/mig-3g.20gb", 1}}))
      << "where nothing that was asked for fits, the largest that does";
  demand.observe("3g.20gb", 5);
  after = cut_for(before, {{"nvidia.com/mig-1g.5gb", 1}}, demand).value();
  fill_up(before, after, demand);
  EXPECT_EQ(advertised(after),
            (model::ResourceList{{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 3}, {"nvidia.com/mig-3g.20gb", 1}}));
}

}  // namespace
}  // namespace berth::mig
