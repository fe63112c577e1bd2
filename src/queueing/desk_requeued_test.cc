// What the condition Requeued and status.requeueState of a Workload say of one that was evicted, as Kueue has it.
#include "queueing/desk.h"
#include "queueing/desk_world.h"
#include "queueing/held.h"

namespace berth::queueing {
namespace {

struct DeskRequeued : World, ::testing::Test {
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
  void set_active(bool active) {
    workload("train")["spec"]["active"] = active;
    workload("train")["metadata"]["generation"] = workload("train")["metadata"].value("generation", 1) + 1;
    change_status("train", Json::object());
    settle();
  }
  std::string message() {
    for (const Json& one : workload("train")["status"]["conditions"])
      if (one["type"] == "Requeued") return one["message"];
    return "";
  }
};

TEST_F(DeskRequeued, WhoWasPreemptedIsSoAtOnce) {
  submit("train", "blue", 8);
  settle();
  submit("owner", "red", 4);
  settle();
  EXPECT_EQ(condition("train", "Requeued"), "True Preempted");
  EXPECT_EQ(message().find("Preempted to accommodate a workload (UID: "), 0u) << message();
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
