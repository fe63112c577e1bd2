#include "api/topology_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace berth::api {
namespace {

using ::testing::HasSubstr;

constexpr const char *kSlice = "kueue.x-k8s.io/podset-slice-required-topology",
                     *kSize = "kueue.x-k8s.io/podset-slice-size",
                     *kLayers = "kueue.x-k8s.io/podset-slice-required-topology-constraints";

ObjectMeta with(const std::map<std::string, std::string>& annotations,
                const std::map<std::string, std::string>& labels = {}) {
  ObjectMeta out;
  for (const auto& [key, value] : annotations) out.annotations.set(key, value);
  for (const auto& [key, value] : labels) out.labels.set(key, value);
  return out;
}

TEST(TopologyRequest, SlicesAreReadFromEitherAnnotation) {
  using Layers = std::vector<model::SliceLayer>;
  EXPECT_EQ(*slice_layers(with({}), 4), Layers());
  EXPECT_EQ(*slice_layers(with({{kSlice, "rack"}, {kSize, "2"}}), 4), (Layers{{"rack", 2}}));
  const std::string several = R"([{"topology": "block", "size": "4"}, {"topology": "rack", "size": 2}])";
  EXPECT_EQ(*slice_layers(with({{kLayers, several}}), 8), (Layers{{"block", 4}, {"rack", 2}}));
  EXPECT_EQ(*slice_layers(with({{kLayers, to_annotation({{"block", 4}, {"rack", 2}})}}), 8),
            (Layers{{"block", 4}, {"rack", 2}}));
}

TEST(TopologyRequest, WhatMakesNoSenseIsSaid) {
  const auto wrong = [](const std::map<std::string, std::string>& annotations, int32_t count) {
    const auto layers = slice_layers(with(annotations), count);
    return layers ? std::string() : layers.error().message;
  };
  EXPECT_THAT(wrong({{kSlice, "rack"}}, 4), HasSubstr("needs kueue.x-k8s.io/podset-slice-size"));
  EXPECT_THAT(wrong({{kSlice, "rack"}, {kSize, "3"}}, 4), HasSubstr("4 pods cannot be cut into slices of 3"));
  EXPECT_THAT(wrong({{kSlice, "rack"}, {kSize, "-2"}}, 4), HasSubstr("need a size"));
  EXPECT_THAT(wrong({{kSlice, "rack"}, {kSize, "99999999999"}}, 4), HasSubstr("is no number"));
  EXPECT_THAT(wrong({{kLayers, "[{\"topology\": \"a\", \"size\": 2}, {\"topology\": \"a\", \"size\": 1}]"}}, 4),
              HasSubstr("a stands there twice"));
  EXPECT_THAT(wrong({{kLayers, "[{\"topology\": \"a\"}]"}}, 4), HasSubstr("need a size"));
  EXPECT_THAT(wrong({{kLayers, "7"}}, 4), HasSubstr("write for example"));
  EXPECT_THAT(wrong({{kLayers, "[1]"}}, 4), HasSubstr("write for example"));
}

TEST(TopologyRequest, APodsNumberIsThatOfItsController) {
  const std::string completion = "batch.kubernetes.io/job-completion-index",
                    replica = "training.kubeflow.org/replica-index", named = "kueue.x-k8s.io/pod-group-pod-index-label";
  EXPECT_EQ(pod_index(with({})), std::nullopt);
  EXPECT_EQ(pod_index(with({}, {{completion, "3"}})), 3);
  EXPECT_EQ(pod_index(with({{completion, "4"}})), 4);
  EXPECT_EQ(pod_index(with({}, {{replica, "2"}})), 2);
  EXPECT_EQ(pod_index(with({{named, "mine"}}, {{"mine", "5"}})), 5);
  EXPECT_EQ(pod_index(with({{"kueue.x-k8s.io/pod-index-offset", "1"}}, {{replica, "2"}})), 1);
  EXPECT_EQ(pod_index(with({}, {{completion, "-1"}})), std::nullopt);
  EXPECT_EQ(pod_index(with({}, {{completion, "x"}})), std::nullopt);
}

}  // namespace
}  // namespace berth::api
