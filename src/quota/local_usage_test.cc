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

TEST(LocalUsage, WhoeverTakesOverGoesOnFromWhatWasWritten) {
  LocalUsage before(hours(1)), after(hours(1));
  before.begin(kTeam, gpus(8), at(0));
  before.end(kTeam, gpus(8), at(3600));
  after.know(kTeam, before.used(kTeam, at(3600)), at(3600));
  EXPECT_NEAR(after.used(kTeam, at(3600)).at(kGpu), 4, 1e-6);
  EXPECT_NEAR(after.weighted(kTeam, 1000, at(7200)), 2000, 1e-6) << "it was away for a half-life";
  after.know(kTeam, {{kGpu, 100}}, at(7200));
  EXPECT_NEAR(after.weighted(kTeam, 1000, at(7200)), 2000, 1e-6) << "it knows better by now";
}

TEST(LocalUsage, WhatRanThroughATakeoverCountsAsIfItHadBeenCountedAllTheTime) {
  AdmissionFairSharing options = hours(1);
  options.sampling_interval = Duration::seconds(60);
  LocalUsage straight(options), after(options);
  straight.begin(kTeam, gpus(3), at(0));
  after.know(kTeam, straight.used(kTeam, at(1000)), at(1000));
  straight.begin(kTeam, gpus(1), at(1500));  // and was not written any more
  after.resume(kTeam, gpus(3), at(0), at(2000));
  after.resume(kTeam, gpus(1), at(1500), at(2000));
  for (const int64_t time : {2000, 5000})
    EXPECT_NEAR(after.weighted(kTeam, 1000, at(time)), straight.weighted(kTeam, 1000, at(time)), 1e-6);
  LocalUsage unwritten(options);
  unwritten.resume(kTeam, gpus(3), at(0), at(2000));
  unwritten.resume(kTeam, gpus(1), at(1500), at(2000));
  EXPECT_NEAR(unwritten.weighted(kTeam, 1000, at(2000)), straight.weighted(kTeam, 1000, at(2000)), 1e-6);
}

TEST(LocalUsage, WhatWasWrittenOfTheFutureIsOfNow) {
  LocalUsage usage(hours(1));
  usage.know(kTeam, {{kGpu, 4}}, at(1'000'000));
  usage.no_later_than(at(0));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(3600)), 2000, 1e-6);
  usage.resume(kTeam, gpus(8), at(5'000'000), at(3600));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(3600)), 2000, 0.1);
  usage.end(kTeam, gpus(8), at(7200));
  EXPECT_NEAR(usage.weighted(kTeam, 1000, at(7200)), 5000, 0.1);
}

TEST(LocalUsage, AveragesThatAreTakenOverHoldForWhatIsRestoredWithThem) {
  LocalUsage from(hours(1)), second(hours(1));
  from.begin(kTeam, gpus(8), at(0));
  second.take_averages(from, at(3600));
  second.resume(kTeam, gpus(8), at(0), at(3600));
  EXPECT_NEAR(second.weighted(kTeam, 1000, at(3600)), 4000, 1e-6);
  EXPECT_NEAR(second.weighted(kTeam, 1000, at(7200)), 6000, 1e-6);
}

TEST(LocalUsage, WithoutAHalfLifeNothingIsRemembered) {
  LocalUsage usage(hours(0));
  usage.begin(kTeam, gpus(8), at(0));
  EXPECT_EQ(usage.weighted(kTeam, 1000, at(3600)), 0);
}

}  // namespace
}  // namespace berth::quota
