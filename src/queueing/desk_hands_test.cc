// What others do to Jobs and Workloads by hand, or Kubernetes for them: nothing is given away, and nothing kept for
// nobody.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

// There is a place for everyone, until some are lost.
struct Places : quota::Places {
  using Ids = std::vector<quota::WorkloadId>;
  quota::Leave may_leave(quota::WorkloadId /*id*/) override { return quota::Leave::kFreely; }
  bool fit(const quota::PlaceRequest& /*request*/, const Ids& /*gone*/, std::string* /*why*/) override { return true; }
  Ids in_the_way(const quota::PlaceRequest& /*request*/, const Ids& /*gone*/) override { return {}; }
  bool hold(const quota::PlaceRequest& /*request*/, const Ids& /*gone*/) override { return true; }
  bool gives_way(const quota::PlaceRequest& /*request*/, const std::set<quota::WorkloadId>& /*placeless*/) override {
    return false;
  }
  quota::CouldFit could_fit(const quota::PlaceRequest& /*request*/) override { return quota::CouldFit::kYes; }
  std::optional<Time> keep(const quota::PlaceRequest& /*request*/, Time /*from*/) override { return std::nullopt; }
  std::vector<std::string> kept_nodes(quota::WorkloadId /*id*/) const override { return {}; }
  const std::set<quota::WorkloadId>& lacking() const override { return fewer; }
  bool has_begun(quota::WorkloadId /*id*/) const override { return false; }
  std::vector<quota::PodOf> pods(quota::WorkloadId /*id*/) const override { return its_pods; }
  void release(quota::WorkloadId /*id*/) override {}

  std::set<quota::WorkloadId> fewer;
  std::vector<quota::PodOf> its_pods;
};

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

TEST_F(DeskHands, WhatSomebodyWritesOfReclaimablePodsOfAGroupIsSetRight) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 4, "pair", 2);
  settle();
  submit("next", "red", 8);
  settle();
  const auto forge = [&](int count) {
    workloads["pair"]["status"]["reclaimablePods"] = {{{"name", "main"}, {"count", count}}};
    desk.see(*decode_any_workload(touched(workloads["pair"]).dump()));
    settle();
  };
  forge(2);
  EXPECT_EQ(workloads["pair"]["status"]["reclaimablePods"].dump(), "[]");
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota");
  change_pod("a", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  const std::string one = workloads["pair"]["status"]["reclaimablePods"].dump();
  EXPECT_EQ(one, R"([{"count":1,"name":"main"}])");
  for (const int count : {0, 2}) {
    forge(count);
    EXPECT_EQ(workloads["pair"]["status"]["reclaimablePods"].dump(), one);
  }
  desk.pod_gone("default", "a");
  settle();
  EXPECT_EQ(workloads["pair"]["status"]["reclaimablePods"].dump(), one) << "it has succeeded all the same";
}

TEST_F(DeskHands, AJobWhoseWorkloadIsSaidToHaveFinishedHearsSo) {
  submit("train", "red", 8);
  settle();
  submit("next", "red", 8);
  settle();
  Json conditions = workload("next")["status"]["conditions"];
  conditions.push_back({{"type", "Finished"},
                        {"status", "True"},
                        {"reason", "Mine"},
                        {"message", ""},
                        {"lastTransitionTime", "2026-01-01T00:00:00Z"}});
  change_status("next", {{"conditions", conditions}});
  settle();
  EXPECT_TRUE(suspended("next"));
  EXPECT_THAT(notes, ::testing::Contains(::testing::HasSubstr("next ErrWorkloadCompose: its Workload")));
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

TEST_F(DeskHands, AWorkloadStaysWhileTheStartOfItsJobIsOnItsWay) {
  submit("train", "red", 2);
  Write start;
  for (int turn = 0; turn < 10 && start.body.empty(); ++turn)
    for (const Write& write : look())
      if (write.kind == Write::Kind::kPatchJob) start = write;
      else store(write);
  ASSERT_FALSE(start.body.empty());
  workload("train")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  change_status("train", Json::object());
  EXPECT_THAT(look(), ::testing::IsEmpty());
  store(start);
  settle();
  EXPECT_FALSE(jobs["train"]["spec"]["template"]["spec"]["nodeSelector"].contains("gpu") && suspended("train"));
}

TEST_F(DeskHands, AWorkloadGoesWithItsJob) {
  submit("train", "red", 2);
  settle();
  workload("train")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  jobs.erase("train");
  desk.job_gone("default", "train");
  change_status("train", Json::object());
  settle();
  EXPECT_THAT(workloads, ::testing::IsEmpty());
}

TEST_F(DeskHands, AWorkloadWaitsForThePodsOfItsJobThatIsGone) {
  Places places;
  World world({}, &places);
  world.submit("train", "red", 8);
  world.settle();
  world.submit("next", "red", 8);
  world.settle();
  places.its_pods = {{"train-0", "uid-train-0"}};
  world.workload("train")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  world.change_status("train", Json::object());
  world.jobs.erase("train");
  world.desk.job_gone("default", "train");
  world.settle();
  EXPECT_EQ(world.condition("next", "QuotaReserved"), "False WaitingForQuota");
  places.its_pods.clear();
  world.settle();
  EXPECT_EQ(world.condition("next", "Admitted"), "True Admitted");
}

TEST_F(DeskHands, WhatHasLostPlacesBeforeItsStartDoesNotStart) {
  for (const std::string name : {"train", "a"}) {
    Places places;
    World world({}, &places);
    if (name == "train") world.submit("train", "red", 2);
    else
      for (const char* pod : {"a", "b"}) world.submit_pod(pod, "red", 1, "pair", 2);
    const auto store_until = [&](const std::string& type, const std::string& wanted) {
      for (int turn = 0; turn < 10; ++turn) {
        if (!world.workloads.empty() && world.condition(name, type) == wanted) return;
        for (const Write& write : world.look()) world.store(write);
      }
    };
    store_until("Admitted", "True Admitted");
    places.fewer = {world.admission.find(world.workload(name)["metadata"]["uid"])};
    store_until("Evicted", "True NodeFailures");
    EXPECT_EQ(world.condition(name, "Evicted"), "True NodeFailures");
    EXPECT_TRUE(name == "train" ? world.suspended(name) : world.gated("a") && world.gated("b"));
    places.fewer.clear();
    world.settle();
    EXPECT_FALSE(name == "train" ? world.suspended(name) : world.gated("a") || world.gated("b"));
  }
}

TEST_F(DeskHands, PodsAreDeletedWithTheirWorkloadAndHoldItsQuotaUntilThen) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 4, "pair", 2);
  settle();
  submit("next", "red", 8);
  settle();
  const std::string name = workload("a")["metadata"]["name"];
  workload("a")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  change_status("a", Json::object());
  const std::vector<Write> deletions = look();
  ASSERT_THAT(deletions, ::testing::SizeIs(2));
  store(deletions[0]);
  for (int turn = 0; turn < 3; ++turn)
    for (const Write& write : look()) store(write);
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota") << "one pod is there still";
  EXPECT_TRUE(workloads.contains(name));
  store(deletions[1]);
  settle();
  EXPECT_FALSE(workloads.contains(name));
  EXPECT_EQ(condition("next", "Admitted"), "True Admitted");
}

TEST_F(DeskHands, PodsThatWaitOutliveTheirWorkload) {
  submit("blocks", "red", 8);
  settle();
  submit_pod("a", "red", 4);
  settle();
  const std::string name = workload("a")["metadata"]["name"];
  workload("a")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  change_status("a", Json::object());
  settle();
  ASSERT_TRUE(workloads.contains(name));
  EXPECT_FALSE(workloads[name]["metadata"].contains("deletionTimestamp")) << "it is a new one";
  EXPECT_TRUE(pods.contains("a"));
  pods.erase("a");
  desk.pod_gone("default", "a");
  workloads[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  desk.see(*decode_any_workload(touched(workloads[name]).dump()));
  settle();
  EXPECT_FALSE(workloads.contains(name));
}

TEST_F(DeskHands, TheControllerDoesNothingForAJobThatIsBeingDeletedSoThatItsPodsGo) {
  Places places;
  World world({}, &places);
  world.submit("train", "blue", 8);
  world.settle();
  world.change("train", {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}}},
                         {"metadata", {{"deletionTimestamp", "2026-01-01T00:00:00Z"}}}});
  places.its_pods = {{"train-0", "uid-train-0"}};
  world.submit("owner", "red", 4);
  Write deletion;
  for (int turn = 0; turn < 10 && deletion.body.empty(); ++turn)
    for (const Write& write : world.look())
      if (write.kind == Write::Kind::kDeletePod) deletion = write;
      else world.store(write);
  EXPECT_EQ(deletion.object, "train-0");
  EXPECT_EQ(Json::parse(deletion.body)["preconditions"]["uid"], "uid-train-0");
  places.its_pods.front().terminating = true;
  world.desk.answered({.write = deletion, .stored = true}, world.now);
  world.settle();
  EXPECT_EQ(world.condition("owner", "QuotaReserved"), "False WaitingForQuota");
  places.its_pods.clear();
  world.change("train", {{"status", {{"active", 0}}}});
  world.settle();
  EXPECT_EQ(world.condition("owner", "Admitted"), "True Admitted");
  EXPECT_EQ(world.condition("train", "QuotaReserved"), "False Misconfigured") << "it does not begin again";
}

TEST_F(DeskHands, AJobThatIsBeingDeletedHoldsNoQuotaBeforeItStarts) {
  submit("train", "red", 8);
  jobs["train"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
  Write start;
  for (int turn = 0; turn < 10 && start.body.empty(); ++turn)
    for (const Write& write : look())
      if (write.kind == Write::Kind::kPatchJob) start = write;
      else store(write);
  desk.answered({.write = start, .http_status = 409}, now);
  desk.see(*decode_job(touched(jobs["train"]).dump()));
  submit("next", "red", 8);
  settle();
  EXPECT_EQ(condition("next", "Admitted"), "True Admitted");
  EXPECT_TRUE(suspended("train"));
}

TEST_F(DeskHands, AWorkloadThatTheServerWouldNotHaveIsToldOf) {
  submit("large", "red", 2);
  for (int turn = 0; turn < 5; ++turn) {
    for (const Write& write : look())
      desk.answered({.write = write, .http_status = 500, .error = "etcdserver: request is too large"}, now);
    for (const Note& note : desk.take_notes()) notes.push_back(note.name + " " + note.reason + ": " + note.text);
  }
  EXPECT_THAT(notes, ::testing::ElementsAre("large ErrWorkloadCompose: its Workload cannot be made, which is tried "
                                            "again: etcdserver: request is too large"));
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
