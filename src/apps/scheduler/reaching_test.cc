#include "apps/scheduler/reaching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace berth::apps {
namespace {

using ::testing::HasSubstr;
using webhook::UnrequestedGpus;

SeenPod judged(const std::string& container, UnrequestedGpus policy, bool ours = true, const char* node = "") {
  SeenPod seen;
  seen.pod.ours = ours;
  seen.pod.node_name = node;
  seen.pod.spec = std::make_shared<model::SchedulingSpec>();
  judge_reach(R"({"metadata":{"name":"p"},"spec":{"containers":[{"name":"c",)" + container + "}]}}", policy, seen);
  return seen;
}
constexpr const char* kReaching = R"("env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"all"}])";

TEST(JudgeReach, WarnsOfAPodThatReachesForGpus) {
  const SeenPod seen = judged(kReaching, UnrequestedGpus::kWarn);
  EXPECT_THAT(seen.reaches, HasSubstr("spec.containers[0]: NVIDIA_VISIBLE_DEVICES=all reaches for GPUs"));
  EXPECT_EQ(seen.pod.spec->gpu_share.problem, "");
}

TEST(JudgeReach, DeniesItEveryNode) {
  const SeenPod seen = judged(kReaching, UnrequestedGpus::kDeny);
  EXPECT_THAT(seen.pod.spec->gpu_share.problem, HasSubstr("set none."));
  EXPECT_EQ(seen.reaches, "");
}

TEST(JudgeReach, WhatCannotBeSeenIsNoCertainty) {
  const SeenPod seen = judged(R"("env":[{"name":"NVIDIA_VISIBLE_DEVICES","valueFrom":{}}])", UnrequestedGpus::kDeny);
  EXPECT_THAT(seen.reaches, HasSubstr("from elsewhere"));
  EXPECT_EQ(seen.pod.spec->gpu_share.problem, "");
}

TEST(JudgeReach, LeavesOthersAlone) {
  const std::string asks = std::string(kReaching) + R"(,"resources":{"limits":{"nvidia.com/gpu":"1"}})";
  for (const SeenPod& seen :
       {judged(asks, UnrequestedGpus::kDeny), judged(kReaching, UnrequestedGpus::kIgnore),
        judged(kReaching, UnrequestedGpus::kDeny, false), judged(kReaching, UnrequestedGpus::kDeny, true, "node"),
        judged(R"("env":[{"name":"NVIDIA_VISIBLE_DEVICES","value":"none"}])", UnrequestedGpus::kDeny)}) {
    EXPECT_EQ(seen.reaches, "");
    EXPECT_EQ(seen.pod.spec->gpu_share.problem, "");
  }
}

}  // namespace
}  // namespace berth::apps
