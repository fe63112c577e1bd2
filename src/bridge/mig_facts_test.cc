#include "bridge/mig_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bridge {
namespace {

using ::testing::HasSubstr;

// Of `count` A100-40GB by the labels, with these instances.
api::Node node_of(int count, const model::ResourceList& instances) {
  api::Node node;
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB");
  node.metadata.labels.set("nvidia.com/gpu.count", std::to_string(count));
  node.metadata.labels.set("nvidia.com/gpu.memory", "40960");
  node.capacity = instances;
  node.allocatable = instances;
  return node;
}

model::NodeDevices cut_device() {
  model::NodeDevices out;
  out.devices.resize(1);
  out.devices[0].uuid = "GPU-a";
  out.devices[0].mig_enabled = true;
  return out;
}

TEST(MigFacts, InstancesMustFitOnTheDevices) {
  EXPECT_EQ(mig_facts_problem(node_of(1, {{"nvidia.com/mig-3g.20gb", 2}}), {}), "");
  EXPECT_EQ(mig_facts_problem(node_of(2, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}}), {}), "");
  EXPECT_EQ(mig_facts_problem(node_of(4, {{"nvidia.com/gpu", 4}}), {}), "");
  EXPECT_EQ(mig_facts_problem(node_of(1, {{"nvidia.com/mig-1g.5gb", 0}}), {}), "");
  EXPECT_THAT(
      mig_facts_problem(node_of(1, {{"nvidia.com/mig-4g.20gb", 2}}), {}),
      HasSubstr("it advertises MIG instances (2 4g.20gb) that its 1 A100-40GB in MIG mode cannot have; restart"));
  EXPECT_THAT(mig_facts_problem(node_of(1, {{"nvidia.com/mig-1g.5gb", 8}}), {}), HasSubstr("(8 1g.5gb)"));
  EXPECT_THAT(mig_facts_problem(node_of(1, {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 1}}), {}),
              HasSubstr("(1 1g.5gb) that no GPU is left for, as all of them are nvidia.com/gpu;"));
}

TEST(MigFacts, InstancesMayBeAdvertisedSeveralTimes) {
  api::Node node = node_of(1, {{"nvidia.com/mig-1g.5gb", 14}});
  EXPECT_NE(mig_facts_problem(node, {}), "");
  node.metadata.labels.set("nvidia.com/mig-1g.5gb.replicas", "2");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
}

TEST(MigFacts, ProfilesMustBeOfTheModel) {
  EXPECT_THAT(mig_facts_problem(node_of(1, {{"nvidia.com/mig-3g.40gb", 1}}), {}),
              HasSubstr("what its GPUs cannot be cut into: A100-40GB has no MIG profile for 'nvidia.com/mig-3g.40gb'"));
}

TEST(MigFacts, AllMustSpeakOfOneModel) {
  api::Node node = node_of(1, {{"nvidia.com/mig-3g.20gb", 1}});
  node.metadata.labels.set("nvidia.com/gpu.memory", "81920");
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("says 81920 MiB, and nvidia.com/gpu.product a A100-40GB"));
  node.metadata.labels.set("nvidia.com/gpu.memory", "40536");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
  model::NodeDevices told = cut_device();
  EXPECT_EQ(mig_facts_problem(node, told), "");
  told.devices[0].model = "NVIDIA-A100-SXM4-80GB";
  EXPECT_THAT(mig_facts_problem(node, told),
              HasSubstr("GPU-a is a A100-80GB by berth.dev/devices, and a A100-40GB by"));
}

TEST(MigFacts, WithTheStrategySingleOnlyAnAgentTellsHowManyDevicesThereAre) {
  api::Node node = node_of(8, {{"nvidia.com/gpu", 8}});
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb");
  node.metadata.labels.set("nvidia.com/gpu.memory", "4864");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
  EXPECT_THAT(mig_facts_problem(node, cut_device()), HasSubstr("(8 1g.5gb)"));
}

TEST(MigFacts, WithTheStrategySingleTheProfileIsOneOfTheModel) {
  api::Node node = node_of(7, {{"nvidia.com/gpu", 7}});
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-9g.5gb");
  node.metadata.labels.set("nvidia.com/gpu.memory", "4864");
  EXPECT_THAT(mig_facts_problem(node, {}),
              HasSubstr("A100-40GB has no MIG profile as the label nvidia.com/gpu.product names it "
                        "('NVIDIA-A100-SXM4-40GB-MIG-9g.5gb')"));
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.10gb-SHARED");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
}

TEST(MigFacts, WithTheStrategySingleInstancesMayBeCalledShared) {
  api::Node node = node_of(2, {{"nvidia.com/gpu.shared", 8}});
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-9g.20gb-SHARED");
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("has no MIG profile as the label"));
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-3g.20gb-SHARED");
  EXPECT_EQ(mig_facts_problem(node, {}), "") << "nobody says how often each is advertised";
  node.metadata.labels.set("nvidia.com/gpu.replicas", "2");
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("advertises 4 nvidia.com/gpu"));
}

TEST(MigFacts, WithTheStrategySingleThereAreAsManyInstancesAsTheLabelSays) {
  api::Node node = node_of(2, {{"nvidia.com/gpu", 9}});
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-7g.40gb");
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("advertises 9 nvidia.com/gpu, each a MIG instance, and the label "
                                                     "nvidia.com/gpu.count says 2"));
  node.metadata.labels.set("nvidia.com/gpu.replicas", "5");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
}

TEST(MigFacts, InstancesCalledSharedAreOfTheModelToo) {
  api::Node node = node_of(1, {{"nvidia.com/mig-3g.40gb.shared", 2}});
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("no MIG profile for 'nvidia.com/mig-3g.40gb'"));
  node = node_of(1, {{"nvidia.com/mig-4g.20gb.shared", 8}});
  EXPECT_EQ(mig_facts_problem(node, {}), "") << "nobody says how often each is advertised";
  node.metadata.labels.set("nvidia.com/mig-4g.20gb.replicas", "4");
  EXPECT_THAT(mig_facts_problem(node, {}), HasSubstr("(2 4g.20gb)"));
  node.metadata.labels.set("nvidia.com/mig-4g.20gb.replicas", "8");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
}

TEST(MigFacts, NothingIsSaidOfWhatIsNotKnown) {
  api::Node node = node_of(1, {{"nvidia.com/mig-4g.24gb", 9}});
  node.metadata.labels.set("nvidia.com/gpu.product", "NVIDIA-A30");
  EXPECT_EQ(mig_facts_problem(node, {}), "");
  node = node_of(1, {{"nvidia.com/mig-4g.20gb", 2}});
  node.metadata.labels.set("nvidia.com/mig.config.state", "pending");
  EXPECT_EQ(mig_facts_problem(node, {}), "") << "it is being cut";
  node = node_of(0, {{"nvidia.com/mig-4g.20gb", 2}});
  EXPECT_EQ(mig_facts_problem(node, {}), "") << "nobody says how many devices";
}

}  // namespace
}  // namespace berth::bridge
