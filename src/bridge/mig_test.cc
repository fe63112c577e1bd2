#include "bridge/mig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const auto read = mig_of(node);
  return read ? "" : read.error().message;
}

TEST(DynamicMig, IsWhatTheNodeAllowsWithItsModelAndTheNumberOfItsGpus) {
  const auto read = mig_of(dynamic_node());
  ASSERT_TRUE(read.has_value());
  ASSERT_TRUE(*read);
  EXPECT_EQ(read->model->name, "H100-80GB");
  EXPECT_EQ(read->devices, 8);
}

TEST(DynamicMig, MayBeAskedForByAnnotation) {
  api::Node node = dynamic_node();
  node.metadata.labels.set("berth.dev/mig-policy", "static");
  node.metadata.annotations.set("berth.dev/mig-policy", "dynamic");
  EXPECT_FALSE(*mig_of(node)) << "the label comes first";
  node = dynamic_node();
  node.metadata.labels = {{"nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu.count", "8"}};
  EXPECT_FALSE(*mig_of(node)) << "not asked for";
  node.metadata.annotations.set("berth.dev/mig-policy", "dynamic");
  EXPECT_TRUE(*mig_of(node));
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

}  // namespace
}  // namespace berth::bridge
