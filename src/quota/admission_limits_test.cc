#include <gmock/gmock.h>

#include "quota/testing.h"

namespace berth::quota {
namespace {

using namespace berth::quota::testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kHour = 3600, kDay = 24 * kHour;

class AdmissionLimits : public OneQueue {
 protected:
  static model::ClusterQueue with_budget(int64_t gpu_hours, bool drains = false) {
    model::ClusterQueue queue = team();
    queue.budget = {gpu_hours * 1'000'000, std::nullopt, Period::kDay, drains};
    return queue;
  }
  static model::Workload of(const char* user, const char* name, int64_t count) {
    model::Workload out = workload(name, count);
    out.user = user;
    return out;
  }
};

TEST_F(AdmissionLimits, ASpentBudgetLetsNobodyInUntilTheNextWindow) {
  admission.upsert(with_budget(8));
  const WorkloadId first = admission.upsert(workload("first", 2));
  at(0);
  EXPECT_EQ(due(), 4 * kHour);
  EXPECT_THAT(at(4 * kHour), IsEmpty());
  admission.upsert(workload("second", 1));
  at(4 * kHour + 1);
  EXPECT_EQ(phase("first"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("second").reason, "BudgetSpent");
  EXPECT_EQ(status("second").message,
            "ClusterQueue team has spent its 8 GPU-hours of this day; the next begins at 24h");
  EXPECT_EQ(admission.queue_status("team").reason, "BudgetSpent");
  admission.finish(first);
  at(5 * kHour);
  EXPECT_EQ(phase("second"), WorkloadPhase::kPending);
  EXPECT_EQ(due(), kDay);
  at(kDay);
  EXPECT_EQ(phase("second"), WorkloadPhase::kAdmitted);
  EXPECT_TRUE(admission.queue_status("team").active);
}

TEST_F(AdmissionLimits, WhoRunsLeavesWhereTheBudgetSaysSo) {
  admission.upsert(with_budget(8, true));
  const WorkloadId id = admission.upsert(workload("first", 4));
  at(0);
  EXPECT_THAT(at(2 * kHour), ElementsAre("first: BudgetSpent"));
  admission.released(id);
  at(2 * kHour + 1);
  EXPECT_EQ(status("first").reason, "BudgetSpent");
  at(kDay);
  EXPECT_EQ(phase("first"), WorkloadPhase::kAdmitted);
}

TEST_F(AdmissionLimits, ALocalQueueHasABudgetOfItsOwn) {
  model::LocalQueue other{"default", "other", "team"};
  admission.upsert(other);
  model::LocalQueue local{"default", "team", "team"};
  local.budget = {2'000'000, std::nullopt, Period::kDay};
  admission.upsert(local);
  admission.upsert(workload("first", 2));
  at(0);
  at(kHour);
  model::Workload elsewhere = workload("elsewhere", 1);
  elsewhere.queue = "other";
  admission.upsert(elsewhere);
  admission.upsert(workload("second", 1));
  at(kHour + 1);
  EXPECT_EQ(phase("elsewhere"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("second").message, "LocalQueue team has spent its 2 GPU-hours of this day; the next begins at 24h");
}

TEST_F(AdmissionLimits, ABudgetThatIsGivenLaterCountsFromThen) {
  admission.upsert(workload("first", 4));
  at(0);
  at(kHour);
  admission.upsert(with_budget(8));
  at(2 * kHour);
  EXPECT_EQ(due(), 4 * kHour);
  admission.upsert(with_budget(16));
  at(3 * kHour);
  EXPECT_EQ(due(), 6 * kHour);
  admission.upsert(team());
  at(4 * kHour);
  EXPECT_EQ(due(), -1);
}

TEST_F(AdmissionLimits, ARestoredWorkloadIsChargedForWhatNobodyHasCounted) {
  model::ClusterQueue queue = with_budget(8);
  queue.spent = model::Spent{Time{}, Time{} + Duration::seconds(kHour), 2'000'000, 0};
  admission.upsert(queue);
  PodSetAssignment given{"main", 1};
  given.flavors[kGpu] = {"default", FlavorMode::kFit};
  given.usage.set(kGpu, gpus(2));
  at(2 * kHour);
  admission.restore(workload("first", 2), {.cluster_queue = "team", .assignment = {given}, .admitted = Time{}});
  at(2 * kHour);  // 2 GPU-hours are known, and 2 more since then
  EXPECT_EQ(due(), 4 * kHour);
}

TEST_F(AdmissionLimits, OneUserHasNoMoreThanHisPartWhileOthersGoOn) {
  model::ClusterQueue queue = team();
  queue.strategy = model::QueueingStrategy::kStrictFifo;
  queue.user_limits.set(kGpu, gpus(2));
  admission.upsert(queue);
  const WorkloadId first = admission.upsert(of("ann", "a1", 1));
  admission.upsert(of("ann", "a2", 1));
  admission.upsert(of("ann", "a3", 1));
  admission.upsert(of("bob", "b1", 2));
  at(0);
  EXPECT_EQ(phase("a2"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(phase("b1"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("a3").reason, "UserLimit");
  EXPECT_EQ(status("a3").message,
            "user ann has 2 of the 2 nvidia.com/gpu that each user may have of ClusterQueue team, and asks for 1 more");
  admission.finish(first);
  at(1);
  EXPECT_EQ(phase("a3"), WorkloadPhase::kAdmitted);
}

TEST_F(AdmissionLimits, FewerPodsMayBeWithinAUsersPart) {
  model::ClusterQueue queue = team();
  queue.user_limits.set(kGpu, gpus(3));
  admission.upsert(queue);
  model::Workload some = of("ann", "some", 1);
  some.pod_sets.front().count = 4;
  some.pod_sets.front().min_count = 1;
  admission.upsert(some);
  at(0);
  ASSERT_EQ(phase("some"), WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("some").assignment.front().count, 3);
}

TEST_F(AdmissionLimits, WhoMayHaveFewerPodsIsToldHowFewAreTooMany) {
  model::ClusterQueue queue = team();
  queue.user_limits.set(kGpu, gpus(3));
  admission.upsert(queue);
  admission.upsert(of("ann", "first", 2));
  at(0);
  model::Workload some = of("ann", "some", 1);
  some.pod_sets.front().count = 4;
  some.pod_sets.front().min_count = 2;
  const WorkloadId id = admission.upsert(some);
  at(1);
  EXPECT_EQ(phase("some"), WorkloadPhase::kPending);
  EXPECT_EQ(admission.explain(id).message,
            "user ann has 2 of the 3 nvidia.com/gpu that each user may have of ClusterQueue team, and asks for 2 more");
}

// A workload of one pod that asks for so many millionths of a GPU, and for so many replicas of one.
TEST_F(AdmissionLimits, AShareSpendsItsPartAndReplicasBesideItAreAllThatIsCounted) {
  const auto share = [](const char* name, int64_t micros, int64_t replicas) {
    model::Workload out = workload(name);
    auto spec = std::make_shared<model::SchedulingSpec>();
    spec->gpu_share.micros = micros;
    out.pod_sets.front().spec = spec;
    out.pod_sets.front().requests = {{kGpu, micros}};
    if (replicas > 0) out.pod_sets.front().requests.set("nvidia.com/gpu.shared", replicas);
    return out;
  };
  model::ClusterQueue queue = with_budget(8);
  queue.groups.push_back({{"nvidia.com/gpu.shared"}, {{"default", {{"nvidia.com/gpu.shared", {4, {}, {}}}}}}});
  admission.upsert(queue);
  const WorkloadId half = admission.upsert(share("half", gpus(1) / 2, 0));
  at(0);
  EXPECT_EQ(due(), 16 * kHour);
  admission.finish(half);
  at(4 * kHour);
  admission.upsert(share("replicas", gpus(1) / 4, 2));
  at(4 * kHour);
  EXPECT_EQ(due(), 7 * kHour) << "of 8 GPU-hours 6 are left, for two GPUs";
}

TEST_F(AdmissionLimits, WhoNamesNoUserCountsAsOne) {
  model::ClusterQueue queue = team();
  queue.user_limits.set(kGpu, gpus(2));
  admission.upsert(queue);
  admission.upsert(workload("one", 2));
  admission.upsert(workload("two", 1));
  at(0);
  EXPECT_EQ(status("two").message,
            "work that names no user has 2 of the 2 nvidia.com/gpu that each user may have of ClusterQueue team, and "
            "asks for 1 more");
}

}  // namespace
}  // namespace berth::quota
