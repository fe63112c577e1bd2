// Workloads that had been admitted before the engine was there: they go on as they were.
#include <gtest/gtest.h>

#include "scenario/workload_world.h"

namespace berth::scenario {
namespace {

struct RestoredWorkloads : WorkloadWorld, ::testing::Test {};

TEST_F(RestoredWorkloads, TheyHoldTheirQuotaAndTheirPlaces) {
  queues(6);
  driver.add(bound_to(pod_of("old", "old-0"), "a"));  // pods and workloads are listed in any order
  driver.apply(WorkloadAdmitted{workload_of("old", 2), {"team", given(2)}});
  driver.apply(WorkloadUpserted{workload_of("new", 2)});
  const CycleResult result = driver.cycle();
  EXPECT_TRUE(result.admissions.empty());
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(status("new").reason, "WaitingForQuota");
  driver.add(pod_of("old", "old-1"));
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-1"), "a") << "a place was kept for the pod that had not come";
  driver.add(pod_of("old", "old-2"));
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-2"), "") << "beyond what it was admitted with";
  driver.apply(WorkloadEnded{"uid-old"});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U);
  EXPECT_EQ(status("new").phase, quota::WorkloadPhase::kAdmitted);
}

TEST_F(RestoredWorkloads, LessQuotaThanTheyHoldEvictsNobody) {
  queues(2);
  driver.apply(WorkloadAdmitted{workload_of("old", 3), {"team", given(3)}});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 6);
}

TEST_F(RestoredWorkloads, AQueueThatHasGoneLetsThemEnd) {
  driver.apply(WorkloadAdmitted{workload_of("old", 1), {"team", given(1)}});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  queues(2);  // it is there after all
  driver.cycle();
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 2);
  driver.apply(WorkloadEnded{"uid-old", true});
  driver.cycle();
  EXPECT_EQ(driver.engine().admission().queue_status("team").held.front().total, 0);
}

// Whoever may write a pod may write its annotations after it was let in.
TEST_F(RestoredWorkloads, APodThatAsksForAnotherShareThanItsWorkloadHasQuotaForWaits) {
  const auto share = [](model::Pod pod, int64_t micros) {
    return with_spec(std::move(pod), [&](auto& spec) { spec.gpu_share.micros = micros; });
  };
  model::Node shares = make_node("s", {{kGpu, 1}});
  shares.gpus = {model::GpuSharing::kDevices, kGpu, 0, 1};
  driver.add(shares);
  queues(8);
  model::Workload work = workload_of("old", 1);
  work.pod_sets.front().spec = share(make_pod("one"), 250'000).spec;
  driver.apply(WorkloadAdmitted{work, {"team", given(1)}});
  model::Pod pod = share(make_pod("old-0"), model::kWholeGpu);
  pod.workload = "default/old";
  driver.add(pod);
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-0"), "");
  EXPECT_EQ(driver.explain("uid-old-0").message,
            "asks for another share of a GPU than Workload default/old was admitted with");
  driver.add(share(pod, 250'000));
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-0"), "s");
}

TEST_F(RestoredWorkloads, OneThatIsLeavingGoesOnLeaving) {
  queues(4);
  driver.apply(WorkloadAdmitted{workload_of("old", 2), {"team", given(2), "Preempted"}});
  driver.apply(WorkloadUpserted{workload_of("new", 2)});
  EXPECT_TRUE(driver.cycle().admissions.empty());
  EXPECT_EQ(status("old").evicted, "Preempted");
  driver.apply(WorkloadReleased{"uid-old"});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U) << "what it held is there for one of both";
}

TEST_F(RestoredWorkloads, OneThatHasQuotaAloneKeepsItsPlaceAndWaitsForItsChecks) {
  driver.apply(QueueObjectUpserted{model::AdmissionCheck{"budget", "example.com/budget"}});
  model::ClusterQueue queue = queue_of("team", 8);
  queue.checks = {{"budget"}};
  driver.apply(QueueObjectUpserted{queue});
  driver.apply(QueueObjectUpserted{model::LocalQueue{"default", "team", "team"}});
  driver.apply(
      WorkloadAdmitted{workload_of("old", 4), {.cluster_queue = "team", .assignment = given(4), .quota_only = true}});
  driver.add(pod_of("old", "old-0"));
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kQuotaReserved);
  EXPECT_EQ(driver.node_of("old-0"), "") << "it is not admitted";
  driver.apply(WorkloadCheckReported{"uid-old", {"budget", quota::CheckState::kReady}, driver.now()});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U);
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(status("old").phase, quota::WorkloadPhase::kAdmitted);
  EXPECT_EQ(driver.node_of("old-0"), "a");
}

}  // namespace
}  // namespace berth::scenario
