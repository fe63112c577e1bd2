#include <gmock/gmock.h>

#include "quota/testing.h"

namespace berth::quota {
namespace {

using namespace berth::quota::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class AdmissionChecks : public OneQueue {
 protected:
  AdmissionChecks() {
    for (const char* name : {"budget", "license"}) admission.upsert(model::AdmissionCheck{name, "example.com/c"});
    model::ClusterQueue queue = team();
    queue.checks = {{"budget"}};
    admission.upsert(queue);
  }

  void report(const char* workload, const char* check, CheckState state, int64_t seconds, int64_t after = 0) {
    admission.check_state(admission.find(workload), {check, state, "", Duration::seconds(after)},
                          Time{} + Duration::seconds(seconds));
  }
};

TEST_F(AdmissionChecks, AWorkloadIsAdmittedWhenAllOfThemAreReady) {
  submit(workload("train"));
  at(1);
  EXPECT_EQ(phase("train"), WorkloadPhase::kQuotaReserved);
  EXPECT_EQ(status("train").reason, "UnsatisfiedChecks");
  EXPECT_EQ(admission.queue_status("team").reserving, 1);
  EXPECT_EQ(admission.queue_status("team").admitted, 0);
  report("train", "license", CheckState::kReady, 2);  // none of its queue's
  at(2);
  EXPECT_EQ(phase("train"), WorkloadPhase::kQuotaReserved);
  report("train", "budget", CheckState::kReady, 3);
  at(3);
  EXPECT_EQ(phase("train"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("train").reason, "");
}

TEST_F(AdmissionChecks, MaximumExecutionTimeCountsFromAdmissionNotFromQuota) {
  model::Workload limited = workload("train");
  limited.max_execution = Duration::seconds(100);
  submit(limited);
  at(0);
  EXPECT_EQ(due(), -1);
  report("train", "budget", CheckState::kReady, 50);
  at(50);
  EXPECT_EQ(due(), 150);
}

TEST_F(AdmissionChecks, OneThatIsAddedCountsForWhoHasQuotaAlone) {
  submit(workload("train", 2));
  submit(workload("other", 2));
  at(1);
  report("train", "budget", CheckState::kReady, 2);
  at(2);
  at(2);
  report("other", "budget", CheckState::kReady, 3);
  model::ClusterQueue queue = team();
  queue.checks = {{"budget"}, {"license"}};
  admission.upsert(queue);
  EXPECT_THAT(at(3), IsEmpty());
  EXPECT_EQ(phase("train"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(phase("other"), WorkloadPhase::kQuotaReserved);
  queue.checks = {};
  admission.upsert(queue);
  at(4);
  EXPECT_EQ(phase("other"), WorkloadPhase::kAdmitted);
}

TEST_F(AdmissionChecks, RetryWaitsForTheLatestTimeThatAnyOfThemNames) {
  model::ClusterQueue queue = team();
  queue.checks = {{"budget"}, {"license"}};
  admission.upsert(queue);
  const WorkloadId id = submit(workload("train"));
  at(0);
  report("train", "budget", CheckState::kRetry, 10, 50);
  report("train", "license", CheckState::kRetry, 10, 90);
  EXPECT_THAT(at(10), ElementsAre("train: AdmissionCheck"));
  admission.released(id);
  at(10);
  EXPECT_EQ(due(), 100);
  report("train", "budget", CheckState::kReady, 20);  // it has no quota that this could be said of
  at(100);
  EXPECT_EQ(phase("train"), WorkloadPhase::kQuotaReserved);
  ASSERT_EQ(status("train").checks.size(), 2);
  EXPECT_EQ(status("train").checks.front().state, CheckState::kPending);
}

TEST_F(AdmissionChecks, AQueueThatHoldsTakesQuotaBackFromWhoIsNotAdmitted) {
  submit(workload("train"));
  at(0);
  model::ClusterQueue queue = team();
  queue.checks = {{"budget"}};
  queue.stop = model::StopPolicy::kHold;
  admission.upsert(queue);
  EXPECT_THAT(at(1), ElementsAre("train: ClusterQueueStopped"));
}

TEST_F(AdmissionChecks, ARestoredWorkloadThatHasQuotaAloneIsAdmittedByWhatItsChecksSay) {
  PodSetAssignment given{"main", 1};
  given.flavors[kGpu] = {"default", FlavorMode::kFit};
  given.usage.set(kGpu, gpus(4));
  admission.restore(workload("train"), {.cluster_queue = "team", .assignment = {given}, .quota_only = true});
  report("train", "budget", CheckState::kReady, 1);
  at(1);
  EXPECT_EQ(phase("train"), WorkloadPhase::kAdmitted);
}

TEST_F(AdmissionChecks, AQueueWithoutAllOfThemIsNotActive) {
  model::AdmissionCheck down{"budget", "example.com/c", false};
  admission.upsert(down);
  submit(workload("train"));
  at(0);
  EXPECT_EQ(admission.queue_status("team").reason, "AdmissionCheckInactive");
  EXPECT_EQ(status("train").reason, "Suspended");
  admission.remove(down);
  at(1);
  EXPECT_EQ(admission.queue_status("team").reason, "AdmissionCheckNotFound");
  down.active = true;
  admission.upsert(down);
  at(2);
  EXPECT_EQ(phase("train"), WorkloadPhase::kQuotaReserved);
}

}  // namespace
}  // namespace berth::quota
