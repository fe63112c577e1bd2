// What others do to Jobs and Workloads by hand, or Kubernetes for them: nothing is given away, and nothing kept for
// nobody.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

struct DeskHands : World, ::testing::Test {
  // As --cascade=orphan leaves it.
  void orphan(const std::string& job) {
    workload(job)["metadata"].erase("ownerReferences");
    jobs.erase(job);
    desk.job_gone("default", job);
  }
};

TEST_F(DeskHands, AJobThatIsDeletedWithoutItsWorkloadHoldsNothing) {
  submit("train", "red", 8);
  settle();
  submit("next", "red", 8);
  settle();
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota");
  const std::string name = workload("train")["metadata"]["name"];
  orphan("train");
  desk.see(*decode_any_workload(touched(workloads[name]).dump()));
  settle();
  EXPECT_EQ(condition("next", "Admitted"), "True Admitted");
  std::string finished;
  for (const Json& one : workloads[name]["status"]["conditions"])
    if (one["type"] == "Finished") finished = one["reason"];
  EXPECT_EQ(finished, "OwnerNotFound");
}

TEST_F(DeskHands, PodsThatAreOnTheirWayOutHoldTheirQuota) {
  submit("borrower", "blue", 8);
  settle();
  change("borrower", {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}}}});
  submit("owner", "red", 4);
  settle();
  change("borrower", {{"status", {{"active", 0}, {"terminating", 1}}}});
  settle();
  EXPECT_EQ(condition("owner", "QuotaReserved"), "False WaitingForQuota");
  change("borrower", {{"status", {{"terminating", 0}}}});
  settle();
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
}

TEST_F(DeskHands, WhatSomebodyWritesOfReclaimablePodsIsSetRight) {
  submit("train", "red", 8);
  settle();
  submit("next", "red", 8);
  settle();
  change_status("train", {{"reclaimablePods", {{{"name", "main"}, {"count", 1}}}}});
  settle();
  EXPECT_EQ(workload("train")["status"]["reclaimablePods"].dump(), "[]");
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota");
  EXPECT_FALSE(suspended("train"));
}

TEST_F(DeskHands, WhoIsMadeActiveAgainHasAllOfItsTimeWhoeverLooks) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  for (int minute = 0; minute < 70; ++minute) settle();
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  EXPECT_GE(workload("train")["status"]["accumulatedPastExecutionTimeSeconds"], 3600);
  workload("train")["spec"]["active"] = true;
  workload("train")["metadata"]["generation"] = workload("train")["metadata"].value("generation", 1) + 1;
  change_status("train", Json::object());
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_FALSE(workload("train")["status"].contains("accumulatedPastExecutionTimeSeconds"));
  World fresh;
  fresh.take_over(*this);
  for (int minute = 0; minute < 30; ++minute) fresh.settle();
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
}

TEST_F(DeskHands, AWorkloadThatIsDeletedGoesOnceItsJobIsAsItWas) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"annotations", {{"kueue.x-k8s.io/job-min-parallelism", "1"}}}}},
                   {"spec", {{"parallelism", 6}, {"completions", 6}}}});
  const Json before = jobs["train"]["spec"];
  settle();
  EXPECT_EQ(jobs["train"]["spec"]["parallelism"], 4);
  change("train", {{"status", {{"active", 4}, {"startTime", "2026-01-01T00:00:00Z"}}}});
  submit("next", "red", 8);
  settle();
  workload("train")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  change_status("train", Json::object());
  settle();
  EXPECT_TRUE(suspended("train"));
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota") << "its pods are there still";
  const std::string name = workload("train")["metadata"]["name"];
  World fresh;
  fresh.take_over(*this);
  fresh.change("train", {{"status", {{"active", 0}}}});
  fresh.step = Duration::seconds(0);
  for (int turn = 0; turn < 20 && fresh.workloads.contains(name); ++turn)
    for (const Write& write : fresh.look()) fresh.store(write);
  fresh.jobs["train"]["spec"]["template"]["metadata"].erase("annotations");  // empty
  EXPECT_EQ(fresh.jobs["train"]["spec"], before);
  fresh.settle();
  EXPECT_EQ(fresh.condition("next", "Admitted") + fresh.condition("train", "Admitted"), "True Admitted");
}

TEST_F(DeskHands, AWorkloadGoesWithItsJob) {
  submit("train", "red", 2);
  settle();
  workload("train")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Json of_train = workload("train");
  jobs.erase("train");
  desk.job_gone("default", "train");
  change_status("train", Json::object());
  settle();
  EXPECT_THAT(workloads, ::testing::IsEmpty());
}

TEST_F(DeskHands, OfTwoWorkloadsOfOneJobOneCounts) {
  submit("blocks", "red", 8);
  settle();
  submit("train", "red", 4);
  settle();
  const std::string blocks = workload("blocks")["metadata"]["name"], own = workload("train")["metadata"]["name"];
  workloads["copy"] = workloads[own];
  workloads["copy"]["metadata"]["name"] = workloads["copy"]["metadata"]["uid"] = "copy";
  workloads["copy"]["status"] = Json::object();
  desk.see(*decode_any_workload(touched(workloads["copy"]).dump()));
  settle();
  jobs.erase("blocks");
  desk.job_gone("default", "blocks");
  workloads.erase(blocks);
  desk.workload_gone("default", blocks);
  settle();
  const auto told = [&](const std::string& name) {
    for (const Json& one : workloads[name]["status"]["conditions"])
      if (one["type"] == "QuotaReserved")
        return one["status"].get<std::string>() + " " + one["message"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(told(own), "True Quota reserved in ClusterQueue red");
  EXPECT_EQ(told("copy"), "False Job train has Workload " + own + " already; delete one of the two");
  World fresh;  // to whom the copy is shown first
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_FALSE(fresh.suspended("train"));
  EXPECT_EQ(fresh.workloads["copy"]["status"]["conditions"][0]["status"], "False");
}

}  // namespace
}  // namespace berth::queueing
