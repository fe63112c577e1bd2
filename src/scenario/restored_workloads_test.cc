// Workloads that had been admitted before the engine was there: they go on as they were.
#include <gtest/gtest.h>

#include "scenario/workload_world.h"

namespace berth::scenario {
namespace {

struct RestoredWorkloads : WorkloadWorld, ::testing::Test {
  // Of a Job, and without a word about its Workload.
  static model::Pod pod_of_job(const std::string& name) {
    model::Pod pod = make_pod(name, {{kGpu, 2}});
    pod.owner_uid = "uid-of-job";
    pod.of_job = true;
    return pod;
  }
};

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
  driver.add(with_spec(pod, [](auto& spec) { spec.gpu_share.problem = "it is not to have that."; }));
  driver.cycle();
  EXPECT_EQ(driver.explain("uid-old-0").message, "it is not to have that.");
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

TEST_F(RestoredWorkloads, WhoWasLentRoomIsTheFirstToLeaveWhenHeIsLate) {
  for (const bool lent : {false, true}) {
    WorkloadWorld world;
    world.queues(4);
    model::Workload small = workload_of("small", 1);
    small.runtime = Duration::seconds(900);
    world.driver.add(bound_to(pod_of("small", "small-0"), "a"));
    world.driver.apply(WorkloadAdmitted{
        small, {.cluster_queue = "team", .assignment = given(1), .admitted = world.driver.now(), .lent_room = lent}});
    world.driver.apply(WorkloadUpserted{workload_of("large", 2)});
    int evicted = 0;
    for (int minute = 0; minute < 25; ++minute)
      for (const auto& decision : world.driver.cycle(Duration::seconds(60)).admissions)
        evicted += decision.kind == quota::AdmissionDecision::Kind::kEvict ? 1 : 0;
    EXPECT_EQ(evicted, lent ? 1 : 0);
    EXPECT_EQ(world.status("small").evicted, lent ? "Preempted" : "");
  }
}

// A Job that names a queue was started before anyone could suspend it.
TEST_F(RestoredWorkloads, APodOfAQueuedJobWaitsForItsWorkload) {
  queues(4);
  model::Pod pod = pod_of_job("job-0");
  pod.priority = 1000;
  model::Pod other = make_pod("other", {{kGpu, 8}});
  driver.add(bound_to(std::move(other), "a"));
  driver.add(pod);  // before the Job is known
  driver.apply(OwnerQueued{"uid-of-job", true, ""});
  const CycleResult result = driver.cycle();
  EXPECT_TRUE(result.decisions.empty()) << "nor has anyone to leave for it";
  EXPECT_EQ(driver.explain("uid-job-0").reason, "WorkloadNotAdmitted");
  EXPECT_EQ(driver.explain("uid-job-0").message, "its Job names a queue, and waits for a Workload to be admitted by");
  driver.apply(PodDeleted{"uid-other"});
  pod.uid = "uid-job-1", pod.name = "job-1";
  driver.add(pod);
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0") + driver.node_of("job-1"), "");
  driver.apply(WorkloadUpserted{workload_of("job", 2)});
  driver.apply(OwnerQueued{"uid-of-job", true, "default/job", true});
  EXPECT_EQ(driver.cycle().admissions.size(), 1U);
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0") + driver.node_of("job-1"), "") << "it is suspended, so that they are about to go";
  driver.apply(OwnerQueued{"uid-of-job", false});  // it names none any more
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0"), "a");
  EXPECT_EQ(driver.node_of("job-1"), "a");
}

// Pods and Jobs come by two watches.
TEST_F(RestoredWorkloads, APodThatComesBeforeItsJobWaitsForIt) {
  queues(4);
  for (const char* name : {"queued", "plain"}) {
    model::Pod pod = pod_of_job(std::string(name) + "-0");
    pod.owner_uid = name;
    pod.awaits_owner = true;
    driver.add(pod);
  }
  EXPECT_TRUE(driver.cycle().decisions.empty());
  EXPECT_EQ(driver.explain("uid-plain-0").message, "its Job, which may name a queue, has not been seen yet");
  driver.apply(OwnerQueued{"plain", false});
  driver.apply(OwnerQueued{"queued", true});
  driver.cycle();
  EXPECT_EQ(driver.node_of("plain-0"), "a");
  EXPECT_EQ(driver.node_of("queued-0"), "");
  EXPECT_EQ(driver.explain("uid-queued-0").message,
            "its Job names a queue, and waits for a Workload to be admitted by");
}

TEST_F(RestoredWorkloads, APodOfAQueuedJobThatRunsIsItsWorkloads) {
  queues(4);
  driver.add(pod_of_job("job-0"));
  driver.apply(WorkloadUpserted{workload_of("job", 1)});
  driver.apply(OwnerQueued{"uid-of-job", true, "default/job", false});
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0"), "a");
  EXPECT_EQ(driver.state().pod(driver.state().find_pod("uid-job-0")).pod.workload, "default/job");
}

TEST_F(RestoredWorkloads, APodOfAJobThatNamesNoQueueAnyMoreIsPlaced) {
  queues(0);
  driver.add(pod_of_job("job-0"));
  driver.apply(WorkloadUpserted{workload_of("job", 1)});
  driver.apply(OwnerQueued{"uid-of-job", true, "default/job", false});
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0"), "");
  driver.apply(OwnerQueued{"uid-of-job"});
  driver.cycle();
  EXPECT_EQ(driver.node_of("job-0"), "a");
}

TEST_F(RestoredWorkloads, APodThatIsLeavingHasItsPlaceUntilItIsGone) {
  queues(4);
  driver.add(make_node("b", {{kGpu, 8}}));
  model::Pod leaves = bound_to(pod_of("old", "old-0"), "a");
  leaves.terminating = true;
  driver.add(leaves);
  driver.add(bound_to(pod_of("old", "old-1"), "a"));
  driver.add(pod_of("old", "old-2"));
  driver.apply(WorkloadAdmitted{workload_of("old", 2), {"team", given(2)}});
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-2"), "") << "three would run with quota for two";
  driver.apply(PodDeleted{"uid-old-0"});
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-2"), "a");
}

TEST_F(RestoredWorkloads, APodThatOnlySaysThatItIsOfAGroupTakesNoPlaceOfIt) {
  queues(4);
  model::Workload group = workload_of("old", 2);
  group.of_group = true;
  model::Pod thief = pod_of("old", "thief");
  thief.priority = 1000;
  driver.add(thief);
  driver.apply(WorkloadAdmitted{group, {"team", given(2)}});
  driver.cycle();
  for (const char* name : {"old-0", "old-1"}) {
    model::Pod pod = pod_of("old", name);
    pod.in_group = true;
    driver.add(pod);
  }
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-0") + driver.node_of("old-1"), "aa");
  EXPECT_EQ(driver.node_of("thief"), "");
  EXPECT_EQ(driver.explain("uid-thief").message, "says that it belongs to Workload default/old, which is not its own");
}

TEST_F(RestoredWorkloads, PodsAreTheirJobsWorkloadsThoughTheyDoNotSaySo) {
  queues(4);
  driver.add(bound_to(pod_of_job("old-0"), "a"));
  driver.add(make_node("b", {{kGpu, 8}}));
  driver.add(bound_to(make_pod("full", {{kGpu, 6}}), "a"));
  driver.apply(WorkloadAdmitted{workload_of("old", 1), {"team", given(1)}});
  driver.apply(OwnerQueued{"uid-of-job", true, "default/old"});
  EXPECT_EQ(driver.cycle().admissions.size(), 0U);
  const quota::Admission& admission = driver.engine().admission();
  EXPECT_EQ(admission.pods(admission.find("uid-old")).size(), 1U);
  driver.add(make_pod("whole", {{kGpu, 8}}));
  driver.cycle();
  EXPECT_EQ(driver.node_of("whole"), "b") << "no place is kept there beside the one where it runs";
  driver.add(pod_of_job("old-1"));
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-1"), "") << "beyond what it was admitted with";
  driver.apply(PodDeleted{"uid-old-0"});
  driver.cycle();
  driver.cycle();
  EXPECT_EQ(driver.node_of("old-1"), "a") << "in the other's stead";
}

}  // namespace
}  // namespace berth::scenario
