#include "bridge/mig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bridge/devices.h"
#include "bridge/to_model.h"
#include "model/mig.h"

namespace berth::bridge {
namespace {

using ::testing::HasSubstr;

api::Node dynamic_node() {
  api::Node node;
  node.metadata.name = "dgx";
  node.metadata.labels = {{"berth.dev/mig-policy", "dynamic"},
                          {"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"},
                          {"nvidia.com/gpu.count", "8"},
                          {"nvidia.com/gpu.replicas", "1"},
                          {"nvidia.com/mig.strategy", "mixed"}};
  return node;
}

std::string problem_with(const std::string& label, const std::string& value) {
  api::Node node = dynamic_node();
  node.metadata.labels.set(label, value);
  const auto read = mig_of(node, DeviceKnowledge::kExact);
  return read ? "" : read.error().message;
}

TEST(DynamicMig, IsWhatTheNodeAllowsWithItsModelAndTheNumberOfItsGpus) {
  const auto read = mig_of(dynamic_node(), DeviceKnowledge::kExact);
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE(*read);
  EXPECT_EQ(read->model->name, "H100-80GB");
  EXPECT_EQ(read->devices, 8);
}

TEST(DynamicMig, MayBeAskedForByAnnotation) {
  api::Node node = dynamic_node();
  node.metadata.labels.set("berth.dev/mig-policy", "static");
  node.metadata.annotations.set("berth.dev/mig-policy", "dynamic");
  EXPECT_FALSE(*mig_of(node, DeviceKnowledge::kExact)) << "the label comes first";
  node = dynamic_node();
  node.metadata.labels = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu.count", "8"}};
  EXPECT_FALSE(*mig_of(node, DeviceKnowledge::kExact)) << "not asked for";
  node.metadata.annotations.set("berth.dev/mig-policy", "dynamic");
  EXPECT_TRUE(*mig_of(node, DeviceKnowledge::kExact));
}

TEST(DynamicMig, IsRefusedWhereTheGpusAreNotKnownOrShared) {
  EXPECT_THAT(problem_with("berth.dev/mig-policy", "yes"), HasSubstr("'yes' is neither dynamic nor static"));
  EXPECT_THAT(problem_with("nvidia.com/gpu.product", "Tesla-T4"), HasSubstr("names no model"));
  EXPECT_THAT(problem_with("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"), HasSubstr("strategy mixed"));
  EXPECT_THAT(problem_with("nvidia.com/mig.strategy", "single"), HasSubstr("strategy mixed"));
  EXPECT_THAT(problem_with("nvidia.com/gpu.replicas", "4"), HasSubstr("several times"));
  EXPECT_THAT(problem_with("nvidia.com/gpu.count", "0"), HasSubstr("from 1 to 64"));
  EXPECT_THAT(problem_with("nvidia.com/gpu.count", "many"), HasSubstr("from 1 to 64"));
}

TEST(DynamicMig, IsRefusedWhereNotAllAreAllocatableAndNobodySaysWhich) {
  api::Node node = dynamic_node();
  node.allocatable = {{"nvidia.com/gpu", 8}};
  EXPECT_TRUE(mig_of(node, DeviceKnowledge::kExact)) << "no capacity is told";
  node.capacity = {{"cpu", 8}, {"nvidia.com/gpu", 8}};
  EXPECT_TRUE(mig_of(node, DeviceKnowledge::kExact));
  node.allocatable.set("nvidia.com/gpu", 7);
  EXPECT_THAT(mig_of(node, DeviceKnowledge::kExact).error().message,
              HasSubstr("of 8 nvidia.com/gpu 7 are allocatable"));
}

TEST(DynamicMig, NeedsSomebodyWhoCutsInACluster) {
  api::Node node = dynamic_node();
  EXPECT_THAT(mig_of(node, DeviceKnowledge::kCounts).error().message, HasSubstr("nobody is there"));
  for (const std::string_view label : {kMigConfig, kMigConfigState}) {
    node = dynamic_node();
    node.metadata.labels.set(std::string(label), "x");
    EXPECT_EQ(mig_of(node, DeviceKnowledge::kCounts).value().hand, model::MigHand::kNamed);
  }
  node.metadata.labels.set("nvidia.com/gpu.deploy.mig-manager", "false");
  EXPECT_FALSE(mig_of(node, DeviceKnowledge::kCounts)) << "it is switched off";
}

TEST(DynamicMig, TakesTheDevicesFromTheAgentWhereThereIsOne) {
  api::Node node = dynamic_node();
  node.metadata.annotations.set(
      std::string(kDevicesAnnotation),
      R"({"version": "v1", "devices": [{"uuid": "a", "pods": ["default/x"]}, {"uuid": "b"}]})");
  node.capacity = {{"nvidia.com/gpu", 2}};
  node.allocatable = {{"nvidia.com/gpu", 1}};
  const model::DynamicMig mig = mig_of(node, DeviceKnowledge::kCounts).value();
  EXPECT_EQ(mig.hand, model::MigHand::kLayouts);
  EXPECT_EQ(mig.devices, 2);
  const model::Node told = to_model(node, DeviceKnowledge::kCounts);
  ASSERT_EQ(told.cut_by_agent().size(), 2U);
  EXPECT_EQ(told.cut_by_agent()[0].pods.front(), "default/x");
  node.metadata.labels.set(std::string(kMigConfig), "all-disabled");
  node.metadata.labels.set("nvidia.com/gpu.count", "2");
  node.allocatable = node.capacity;
  EXPECT_EQ(mig_of(node, DeviceKnowledge::kCounts).value().hand, model::MigHand::kNamed) << "it clears the whole node";
  node.metadata.labels.set("nvidia.com/gpu.deploy.mig-manager", "false");
  node.metadata.annotations.set(std::string(kDevicesAnnotation),
                                R"({"version": "v1", "devices": [{"uuid": "a", "model": "NVIDIA-H200"}]})");
  node.allocatable = {};
  EXPECT_THAT(mig_of(node, DeviceKnowledge::kCounts).error().message, HasSubstr("says otherwise"));
}

}  // namespace
}  // namespace berth::bridge
