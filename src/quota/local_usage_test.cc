#include "quota/local_usage.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/gpu.h"

namespace berth::quota {
namespace {

constexpr const char* kGpu = "nvidia.com/gpu";
const LocalUsage::Queue kTeam{"default", "team"};

Time at(int64_t seconds) { return Time{} + Duration::seconds(seconds); }

model::ResourceList gpus(int64_t count) {
  model::ResourceList out;
  out.set(kGpu, count * model::kWholeGpu);
  return out;
}

AdmissionFairSharing hours(int64_t half_life) {
  AdmissionFairSharing out;
  out.half_life = Duration::seconds(half_life * 3600);
  out.sampling_interval = Duration{1};  // next to nothing counts at once
  return out;
}

TEST(LocalUsage, WhatIsInUseCountsMoreAndMoreAndIsForgottenByHalves) {
  LocalUsage usage(hours(1));
  EXPECT_EQ(usage.weighted(kTeam, 1000, at(0)), 0);
  usage.begin(kTeam, gpus(8), at(0));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(3600)), 4000, 1e-6);
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(7200)), 6000, 1e-6);
  usage.end(kTeam, gpus(8), at(7200));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(10800)), 3000, 1e-6);
}

TEST(LocalUsage, HowOftenItIsAskedForChangesNothing) {
  LocalUsage often(hours(3)), seldom(hours(3));
  for (LocalUsage* usage : {&often, &seldom}) usage->begin(kTeam, gpus(5), at(0));
  for (int64_t s = 0; s < 5000; s += 7) often.begin(kTeam, gpus(0), at(s));
  EXPECT_NEAR(often.weighted(kTeam, 1000, at(5000)), seldom.weighted(kTeam, 1000, at(5000)), 1e-6);
}

TEST(LocalUsage, WithItsAdmissionAWorkloadCountsAsIfItHadRunForASamplingInterval) {
  AdmissionFairSharing options = hours(1);
  options.sampling_interval = Duration::seconds(3600);
  LocalUsage usage(options);
  usage.begin(kTeam, gpus(8), at(0));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(0)), 4000, 1e-6);
}

TEST(LocalUsage, WeightsOfResourcesAndOfTheQueueCount) {
  AdmissionFairSharing options = hours(1);
  options.resource_weights = {{"cpu", 500}};
  LocalUsage usage(options);
  model::ResourceList both = gpus(2);
  both.set("cpu", 4000);  // four cores
  usage.begin(kTeam, both, at(0));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(3600)), 1000 + 4 * 500 / 2.0, 1e-6);
  EXPECT_NEAR(usage.weighted(kTeam, 4000, at(3600)), 500, 1e-6);
  EXPECT_TRUE(std::isinf(usage.weighted(kTeam, 0, at(3600))));
}

TEST(LocalUsage, WithoutAHalfLifeNothingIsRemembered) {
  LocalUsage usage(hours(0));
  usage.begin(kTeam, gpus(8), at(0));
  EXPECT_EQ(usage.weighted(kTeam, 1000, at(3600)), 0);
}

}  // namespace
}  // namespace berth::quota
