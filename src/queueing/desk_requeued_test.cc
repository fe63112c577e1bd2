// What the condition Requeued and status.requeueState of a Workload say of one that was evicted, as Kueue has it.
#include "queueing/desk.h"
#include "queueing/desk_world.h"
#include "queueing/held.h"

namespace berth::queueing {
namespace {

struct DeskRequeuedWorld : World {
  void stop_cluster_queue(model::StopPolicy policy) {
    model::ClusterQueue queue = admission.cluster_queues().at("red");
    queue.stop = policy;
    admission.upsert(queue);
    settle();
  }
  void stop_local_queue(model::StopPolicy policy) {
    model::LocalQueue queue = admission.local_queues().at({"default", "red"});
    queue.stop = policy;
    admission.upsert(queue);
    settle();
  }
  // `seen`: the desk hears of it.
  void set_active(bool active, bool seen = true) {
    workload("train")["spec"]["active"] = active;
    workload("train")["metadata"]["generation"] = workload("train")["metadata"].value("generation", 1) + 1;
    if (!seen) return;
    change_status("train", Json::object());
    settle();
  }
  std::string message() {
    for (const Json& one : workload("train")["status"]["conditions"])
      if (one["type"] == "Requeued") return one["message"];
    return "";
  }
};
struct DeskRequeued : DeskRequeuedWorld, ::testing::Test {};

TEST_F(DeskRequeued, WhoWasPreemptedIsSoAtOnce) {
  submit("train", "blue", 8);
  settle();
  submit("owner", "red", 4);
  settle();
  EXPECT_EQ(condition("train", "Requeued"), "True Preempted");
  EXPECT_EQ(message().find("Preempted to accommodate a workload (UID: "), 0u) << message();
  set_active(false);
  EXPECT_EQ(condition("train", "QuotaReserved"), "False Deactivated");
  EXPECT_EQ(condition("train", "Requeued"), "False Preempted");
  set_active(true);
  EXPECT_EQ(condition("train", "Requeued"), "True Preempted");
}

// By its time, in another term: whoever has it.
TEST_F(DeskRequeued, WhoIsMadeActiveAgainHasAllOfHisTimeWhoeverLooks) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  for (int minute = 0; minute < 65; ++minute) settle();
  EXPECT_EQ(condition("train", "Evicted"), "True DeactivatedDueToMaximumExecutionTimeExceeded");
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  for (const bool meanwhile : {false, true}) {
    DeskRequeuedWorld fresh;
    const auto jobs_before = jobs, workloads_before = workloads;
    if (meanwhile) set_active(true, false);
    fresh.take_over(*this);
    fresh.settle();
    if (!meanwhile) {
      EXPECT_EQ(fresh.condition("train", "QuotaReserved"), "False DeactivatedDueToMaximumExecutionTimeExceeded");
      EXPECT_EQ(fresh.condition("train", "Requeued"), "False DeactivatedDueToMaximumExecutionTimeExceeded");
      EXPECT_EQ(fresh.workload("train")["status"]["accumulatedPastExecutionTimeSeconds"], 3600);
      fresh.set_active(true);
    }
    EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
    EXPECT_EQ(fresh.condition("train", "Requeued"), "True Reactivated");
    for (int minute = 0; minute < 30; ++minute) fresh.settle();
    EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted") << "it has its hour once more";
    jobs = jobs_before, workloads = workloads_before;
  }
}

// The process ended before it had written that it waits no more.
TEST_F(DeskRequeued, WhoIsStoppedForGoodIsSoAfterARestart) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  for (int minute = 0; minute < 65; ++minute) settle();
  workload("train")["spec"]["active"] = true;
  for (const Json& one : workload("train")["status"]["conditions"])
    if (one["type"] == "Evicted") workload("train")["metadata"]["generation"] = one["observedGeneration"];
  DeskRequeuedWorld fresh;
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_EQ(fresh.workload("train")["spec"]["active"], false);
  EXPECT_EQ(fresh.condition("train", "QuotaReserved"), "False DeactivatedDueToMaximumExecutionTimeExceeded");
}

TEST_F(DeskRequeued, WhoseClusterQueueIsStoppedIsNotBeforeItGoesOn) {
  submit("train", "red", 4);
  settle();
  stop_cluster_queue(model::StopPolicy::kHoldAndDrain);
  EXPECT_EQ(condition("train", "QuotaReserved"), "False Suspended");
  EXPECT_EQ(condition("train", "Requeued"), "False ClusterQueueStopped");
  EXPECT_EQ(message(), "The ClusterQueue is stopped");
  stop_cluster_queue(model::StopPolicy::kNone);
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("train", "Requeued"), "True ClusterQueueRestarted");
  EXPECT_EQ(message(), "The ClusterQueue was restarted after being stopped");
}

// It waits for pods in the place of those that were stopped, too.
TEST_F(DeskRequeued, AGroupWhoseQueueIsStoppedIsNotBeforeItGoesOn) {
  const auto is = [&](const char* type) { return condition_in(workloads["pair"], type); };
  for (const bool local : {false, true}) {
    const auto stop = [&](model::StopPolicy policy) { local ? stop_local_queue(policy) : stop_cluster_queue(policy); };
    const std::string queue = local ? "LocalQueue" : "ClusterQueue";
    for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 2, "pair", 2);
    settle();
    stop(model::StopPolicy::kHoldAndDrain);
    EXPECT_EQ(is("Requeued"), "False " + queue + "Stopped");
    EXPECT_EQ(is("QuotaReserved"), "False Suspended");
    EXPECT_EQ(is("WaitingForReplacementPods"), "True " + queue + "Stopped");
    stop(model::StopPolicy::kNone);
    EXPECT_EQ(is("Requeued"), "True " + queue + "Restarted");
    EXPECT_EQ(is("QuotaReserved"), "False WaitingForReplacementPods");
    for (const char* pod : {"c", "d"}) submit_pod(pod, "red", 2, "pair", 2);
    settle();
    EXPECT_EQ(is("Admitted"), "True Admitted");
    for (const char* pod : {"c", "d"}) change_pod(pod, {{"status", {{"phase", "Succeeded"}}}});
    settle();
    for (const char* pod : {"c", "d"}) pods.erase(pod), desk.pod_gone("default", pod);
    workloads.erase("pair"), desk.workload_gone("default", "pair");
    settle();
  }
}

TEST_F(DeskRequeued, WhoseLocalQueueIsStoppedIsNotBeforeItGoesOn) {
  submit("train", "red", 4);
  settle();
  stop_local_queue(model::StopPolicy::kHoldAndDrain);
  EXPECT_EQ(condition("train", "Requeued"), "False LocalQueueStopped");
  submit("rival", "blue", 8);
  settle();
  stop_local_queue(model::StopPolicy::kNone);
  EXPECT_EQ(condition("train", "Requeued"), "True LocalQueueRestarted");
}

// What it was made inactive for is said once: whoever makes it active again has said something since.
TEST_F(DeskRequeued, WhoIsMadeActiveAgainWhileItLeavesStaysSo) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  settle();
  change("train",
         {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}, {"conditions", nlohmann::json::array()}}}});
  for (int minute = 0; minute < 65; ++minute) settle();
  EXPECT_EQ(condition("train", "QuotaReserved"), "True QuotaReserved") << "it is on its way out";
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  set_active(true);
  EXPECT_EQ(workload("train")["spec"]["active"], true);
  change("train", {{"status", {{"active", 0}}}});
  settle();
  EXPECT_EQ(workload("train")["spec"]["active"], true);
  EXPECT_EQ(condition("train", "Requeued"), "True Reactivated");
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
}

TEST_F(DeskRequeued, WhoIsMadeInactiveIsNotBeforeItIsActiveAgain) {
  submit("train", "red", 4);
  settle();
  set_active(false);
  EXPECT_EQ(condition("train", "Evicted"), "True Deactivated");
  EXPECT_EQ(condition("train", "Requeued"), "False Deactivated");
  set_active(true);
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("train", "Requeued"), "True Reactivated");
  EXPECT_EQ(message(), "The workload was reactivated");
}

TEST_F(DeskRequeued, WaitingCountsFromThenAndNotFromItsCreation) {
  const auto waits_since = [&] { return queued_since(*decode_any_workload(workload("train").dump()), wall); };
  submit("train", "red", 4);
  settle();
  const Time created = waits_since();
  wall = wall + Duration::seconds(7200);
  stop_cluster_queue(model::StopPolicy::kHoldAndDrain);
  EXPECT_EQ(waits_since(), wall) << "it is about to wait";
  wall = wall + Duration::seconds(600);
  stop_cluster_queue(model::StopPolicy::kNone);
  EXPECT_EQ(condition("train", "Requeued"), "True ClusterQueueRestarted");
  EXPECT_GE(waits_since(), created + Duration::seconds(7800));
  EXPECT_EQ(reserved_since(*decode_any_workload(workload("train").dump()), wall + Duration::seconds(9)), waits_since());
}

}  // namespace
}  // namespace berth::queueing
