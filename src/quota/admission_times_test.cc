#include <gmock/gmock.h>

#include "quota/testing.h"

namespace berth::quota {
namespace {

using namespace berth::quota::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdmissionTimes : public OneQueue {};

constexpr const char* kTooLong = "long: DeactivatedDueToMaximumExecutionTimeExceeded, deactivated";

TEST_F(AdmissionTimes, WithoutALimitNothingIsDue) {
  admission.upsert(workload("any"));
  at(1);
  EXPECT_EQ(due(), -1);
}

TEST_F(AdmissionTimes, MaximumExecutionTimeCountsFromAdmission) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  admission.upsert(limited);
  EXPECT_THAT(at(7), IsEmpty());
  EXPECT_EQ(due(), 107);
  EXPECT_THAT(at(106), IsEmpty());
  EXPECT_THAT(at(107), ElementsAre(kTooLong));
  EXPECT_EQ(due(), -1);
}

TEST_F(AdmissionTimes, TermsBeforeThisProcessCount) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  limited.past_execution = Duration::seconds(60);
  PodSetAssignment given{"main", 1};
  given.flavors[kGpu] = {"default", FlavorMode::kFit};
  given.usage.set(kGpu, gpus(4));
  at(1);
  admission.restore(limited,
                    {.cluster_queue = "team", .assignment = {given}, .admitted = Time{} + Duration::seconds(5)});
  at(20);
  EXPECT_EQ(due(), 45);
  EXPECT_THAT(at(45), ElementsAre(kTooLong));
}

TEST_F(AdmissionTimes, TermsAddUpUntilTheLastHasLetGo) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  const WorkloadId id = admission.upsert(limited);
  at(0);
  model::Workload stopped = limited;
  stopped.active = false;
  admission.upsert(stopped);
  EXPECT_THAT(at(30), ElementsAre("long: Deactivated"));
  admission.released(id);
  at(40);  // its pods took ten seconds to end
  admission.upsert(limited);
  at(50);
  EXPECT_EQ(due(), 110);
}

TEST_F(AdmissionTimes, WhatIsDeactivatedWaitsNoMoreAndBeginsAnewWhenItIsActive) {
  model::Workload limited = workload("long");
  limited.max_execution = Duration::seconds(100);
  const WorkloadId id = admission.upsert(limited);
  at(0);
  EXPECT_THAT(at(100), ElementsAre(kTooLong));
  admission.released(id);
  admission.upsert(limited);  // an update by someone who has not heard of it
  at(200);
  EXPECT_EQ(phase("long"), WorkloadPhase::kPending);
  EXPECT_EQ(admission.status(id).reason, "DeactivatedDueToMaximumExecutionTimeExceeded");
  limited.active = false;
  admission.upsert(limited);
  at(210);
  EXPECT_EQ(phase("long"), WorkloadPhase::kPending);
  limited.active = true;
  admission.upsert(limited);
  at(220);
  EXPECT_EQ(phase("long"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(due(), 320);
}

WaitForPodsReady ready_in(int64_t seconds) {
  WaitForPodsReady out;
  out.enabled = true;
  out.timeout = Duration::seconds(seconds);
  return out;
}

class PodsReady : public OneQueue {
 protected:
  explicit PodsReady(WaitForPodsReady options = ready_in(100)) : OneQueue({.pods_ready = options}) {}
  void ready(WorkloadId id, bool is, int64_t seconds) {
    admission.pods_ready(id, is, Time{} + Duration::seconds(seconds));
  }
};

TEST_F(PodsReady, TheTimeoutCountsFromAdmissionUntilTheyAre) {
  const WorkloadId id = submit(workload("slow"));
  at(5);
  EXPECT_EQ(due(), 105);
  ready(id, true, 50);
  at(50);
  EXPECT_EQ(due(), -1);
  EXPECT_THAT(at(500), IsEmpty());
}

TEST_F(PodsReady, WithoutATimeOfItsOwnRecoveryMayTakeAsLongAsTheStart) {
  const WorkloadId id = submit(workload("slow"));
  at(0);
  ready(id, true, 10);
  ready(id, false, 60);
  ready(id, false, 70);  // no news
  at(70);
  EXPECT_EQ(due(), 160);
  EXPECT_THAT(at(160), ElementsAre("slow: PodsReadyTimeout"));
}

TEST_F(PodsReady, WhatIsLateWaitsInNoQueueAndThenBehindTheOthers) {
  const WorkloadId id = submit(workload("slow"));
  at(0);
  model::Workload later = workload("later");
  later.created = Time{} + Duration::seconds(1);
  submit(later);
  EXPECT_THAT(at(100), ElementsAre("slow: PodsReadyTimeout"));
  EXPECT_EQ(phase("later"), WorkloadPhase::kPending);  // the quota is still held
  admission.released(id);
  at(110);
  EXPECT_EQ(phase("later"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("slow").reason, "PodsReadyTimeout");
  EXPECT_EQ(due(), 160);
  model::Workload last = workload("last");
  last.created = Time{} + Duration::seconds(120);  // after the eviction
  submit(last);
  at(160);
  EXPECT_EQ(status("slow").reason, "WaitingForQuota");
  admission.finish(admission.find("later"));
  at(170);
  EXPECT_EQ(phase("slow"), WorkloadPhase::kAdmitted);
}

TEST_F(PodsReady, OneThatIsNotAdmittedHasNoPodsToBeReady) {
  const WorkloadId id = submit(workload("slow"));
  ready(id, true, 0);
  at(0);
  EXPECT_EQ(due(), 100);
}

class PodsReadyForEver : public PodsReady {
 protected:
  PodsReadyForEver() : PodsReady(options()) {}
  static WaitForPodsReady options() {
    WaitForPodsReady out = ready_in(100);
    out.recovery_timeout = Duration{};
    return out;
  }
};

TEST_F(PodsReadyForEver, RecoveryMayTakeForEver) {
  const WorkloadId id = submit(workload("slow"));
  at(0);
  ready(id, true, 10);
  ready(id, false, 60);
  at(60);
  EXPECT_EQ(due(), -1);
}

TEST(WaitForPodsReady, BackOffDoublesUpToItsMost) {
  WaitForPodsReady options;
  options.backoff_base = Duration::seconds(60);
  options.backoff_max = Duration::seconds(200);
  EXPECT_EQ(options.backoff(1), Duration::seconds(60));
  EXPECT_EQ(options.backoff(2), Duration::seconds(120));
  EXPECT_EQ(options.backoff(3), Duration::seconds(200));
  EXPECT_EQ(options.backoff(1'000'000), Duration::seconds(200));
}

// Of the LocalQueues `team` and `other` of one ClusterQueue the one comes first that has used the least of late.
class UsageOfLate : public AdmissionTimes {
 protected:
  UsageOfLate() {
    model::ClusterQueue queue = team();
    queue.usage_based = true;
    admission.upsert(queue);
    admission.upsert(model::LocalQueue{"default", "other", "team"});
  }
  static model::LocalQueue local(double used, int64_t until_s) {
    model::LocalQueue out{"default", "team", "team"};
    out.used = {Time{} + Duration::seconds(until_s), {{kGpu, used}}};
    return out;
  }
};

TEST_F(UsageOfLate, WhatAQueueSaysOfItselfCountsWhenItIsFirstHeardOf) {
  admission.remove(model::LocalQueue{"default", "team", "team"});
  admission.upsert(local(2, 1'000'000));  // in the future
  at(10);
  EXPECT_NEAR(admission.usage().used({"default", "team"}, Time{} + Duration::seconds(10)).at(kGpu), 2, 1e-6);
  admission.upsert(local(3, 11));
  at(12);
  EXPECT_LT(admission.usage().used({"default", "team"}, Time{} + Duration::seconds(12)).at(kGpu), 2)
      << "what was written since then is no news";
}

TEST_F(UsageOfLate, WhoHasUsedLessBeforeThisProcessComesFirst) {
  admission.remove(model::LocalQueue{"default", "team", "team"});
  admission.upsert(local(2, 0));
  model::Workload newer = workload("newer");
  newer.queue = "other";
  newer.created = Time{} + Duration::seconds(5);
  admission.upsert(workload("older"));
  admission.upsert(newer);
  at(10);
  EXPECT_EQ(phase("newer"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(phase("older"), WorkloadPhase::kPending);
}

TEST_F(UsageOfLate, ARestoredWorkloadHasBeenInUseSinceItWasAdmitted) {
  PodSetAssignment given{"main", 1};
  given.flavors[kGpu] = {"default", FlavorMode::kFit};
  given.usage.set(kGpu, gpus(4));
  const auto used = [&](int64_t s) {
    return admission.usage().used({"default", "team"}, Time{} + Duration::seconds(s)).at(kGpu);
  };
  admission.restore(
      workload("long", 4),
      {.cluster_queue = "team", .assignment = {given}, .admitted = Time{} + Duration::seconds(7 * 24 * 3600)});
  at(14 * 24 * 3600);  // the first cycle; a half-life since it was admitted
  EXPECT_NEAR(used(14 * 24 * 3600), 2, 0.01);
}

}  // namespace
}  // namespace berth::quota
