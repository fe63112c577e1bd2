#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;

struct DeskChecks : World, ::testing::Test {
  DeskChecks() {
    for (const char* name : {"budget", "nodes"}) admission.upsert(model::AdmissionCheck{name, "example.com/c", true});
    model::ClusterQueue queue = admission.cluster_queues().at("red");
    queue.checks = {{"budget"}, {"nodes"}};
    admission.upsert(queue);
  }
  // As a controller of the check does.
  void says(const std::string& job, const std::string& check, const std::string& state,
            const Json& more = Json::object()) {
    Json all = workload(job)["status"]["admissionChecks"];
    for (Json& one : all) {
      if (one["name"] != check) continue;
      one["state"] = state;
      one.merge_patch(more);
    }
    change_status(job, {{"admissionChecks", all}});
  }
  std::string states(const std::string& job) {
    std::string out;
    for (const Json& one : workload(job)["status"]["admissionChecks"])
      out += one["name"].get<std::string>() + "=" + one["state"].get<std::string>() + " ";
    return out;
  }
};

TEST_F(DeskChecks, AJobWithQuotaStartsWhenAllAreReadyWithWhatTheyAdd) {
  submit("train", "red", 4);
  settle();
  EXPECT_EQ(condition("train", "QuotaReserved"), "True QuotaReserved");
  EXPECT_EQ(condition("train", "Admitted"), "False UnsatisfiedChecks");
  EXPECT_EQ(states("train"), "budget=Pending nodes=Pending ");
  EXPECT_TRUE(workload("train")["status"].contains("admission"));
  says("train", "budget", "Ready");
  settle();
  EXPECT_TRUE(suspended("train"));
  says("train", "nodes", "Ready",
       Json::parse(R"({"podSetUpdates": [{"name": "main", "labels": {"made": "yes"}, "annotations": {"by": "nodes"},
         "nodeSelector": {"fresh": "yes"}, "tolerations": [{"key": "fresh", "operator": "Exists"}]},
         {"name": "other", "labels": {"not": "ours"}}]})"));
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_FALSE(suspended("train"));
  const Json& made = jobs["train"]["spec"]["template"];
  EXPECT_EQ(made["spec"]["nodeSelector"].dump(), R"({"fresh":"yes","gpu":"h100","zone":"x"})");
  EXPECT_EQ(made["spec"]["tolerations"].dump(),
            R"([{"key":"fresh","operator":"Exists"},{"key":"gpu","operator":"Exists"}])");
  EXPECT_EQ(made["metadata"]["labels"].dump(), R"({"a":"b","kueue.x-k8s.io/podset":"main","made":"yes"})");
  EXPECT_EQ(made["metadata"]["annotations"]["by"], "nodes");
}

TEST_F(DeskChecks, RetryGivesTheQuotaBackAndTheStatesBeginAnew) {
  submit("train", "red", 4);
  settle();
  says("train", "budget", "Ready");
  says("train", "nodes", "Retry", {{"requeueAfterSeconds", 600}, {"message", "none to be had"}});
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True AdmissionCheck");
  EXPECT_EQ(states("train"), "budget=Pending nodes=Pending ");
  EXPECT_EQ(workload("train")["status"]["admissionChecks"][1]["message"],
            "Reset to Pending after eviction. Previously: Retry");
  EXPECT_FALSE(workload("train")["status"].contains("admission"));
  EXPECT_EQ(condition("train", "Requeued"), "False AdmissionCheck");
  World fresh;  // a restart does not have it come back earlier
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "QuotaReserved"), "False AdmissionCheck");
  for (int minute = 0; minute < 10; ++minute) fresh.settle();
  EXPECT_EQ(fresh.condition("train", "QuotaReserved"), "True QuotaReserved");
  EXPECT_EQ(fresh.condition("train", "Evicted"), "False QuotaReserved");
  EXPECT_FALSE(fresh.workload("train")["status"].contains("requeueState"));
  EXPECT_EQ(fresh.condition("train", "Requeued"), "True BackoffFinished");
}

TEST_F(DeskChecks, AnEvictionIsToldEvenWhereAnotherWriteComesBetween) {
  submit("train", "red", 4);
  settle();
  says("train", "budget", "Pending", {{"message", "soon"}});
  EXPECT_TRUE(look().empty()) << "the engine hears of it first";
  const std::vector<Write> slow = look();
  ASSERT_EQ(slow.size(), 1U);
  says("train", "nodes", "Retry", {{"requeueAfterSeconds", 6000}});
  for (int turns = 0; turns < 5; ++turns)
    for (const Write& write : look()) store(write);
  EXPECT_EQ(condition("train", "Evicted"), "");
  desk.answered({.write = slow.front(), .http_status = 409}, now);
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True AdmissionCheck");
  EXPECT_EQ(states("train"), "budget=Pending nodes=Pending ");
  EXPECT_EQ(condition("train", "QuotaReserved"), "False AdmissionCheck");
}

TEST_F(DeskChecks, WhatARejectedCheckStopsWaitsForSomebodyToMakeItActive) {
  submit("train", "red", 4);
  settle();
  says("train", "budget", "Rejected", {{"message", "spent"}});
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True DeactivatedDueToAdmissionCheck");
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  EXPECT_EQ(states("train"), "budget=Pending nodes=Pending ");
  settle();
  EXPECT_TRUE(suspended("train"));
}

TEST_F(DeskChecks, WhatIsRejectedWhileItLeavesIsStoppedOnceItHasQuotaAgain) {
  submit("train", "red", 8);
  settle();
  says("train", "budget", "Ready");
  says("train", "nodes", "Ready");
  settle();
  change("train", {{"status", {{"active", 1}}}});
  submit("owner", "blue", 4);
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True Preempted");
  says("train", "budget", "Rejected", {{"message", "spent"}});
  change("train",
         {{"status", {{"active", 0}, {"conditions", Json::array({{{"type", "Suspended"}, {"status", "True"}}})}}}});
  settle();
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("train", "Admitted"), "False NoReservation");
  change("owner", {{"status", {{"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}}}});
  std::vector<Write> slow;  // that it has quota again, which is not stored before it has to go
  for (int turns = 0; turns < 6; ++turns)
    for (const Write& write : look()) {
      const bool of_train = workloads[write.name] == workload("train");
      if (of_train) slow.push_back(write);
      else store(write);
    }
  ASSERT_EQ(slow.size(), 1U);
  store(slow.front());
  settle();
  EXPECT_EQ(condition("train", "Evicted"), "True DeactivatedDueToAdmissionCheck");
  EXPECT_EQ(condition("train", "QuotaReserved"), "False DeactivatedDueToAdmissionCheck");
  EXPECT_EQ(condition("train", "Requeued"), "False DeactivatedDueToAdmissionCheck");
  EXPECT_EQ(workload("train")["spec"]["active"], false);
  EXPECT_EQ(states("train"), "budget=Pending nodes=Pending ");
}

TEST_F(DeskChecks, OfQuotaThatIsGoneNothingIsSaidAnyMore) {
  submit("train", "red", 8);
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "False UnsatisfiedChecks");
  submit("owner", "blue", 4);
  settle();
  EXPECT_EQ(condition("train", "QuotaReserved"), "False WaitingForQuota");
  EXPECT_EQ(condition("train", "Admitted"), "False NoReservation");
}

TEST_F(DeskChecks, ARestartReadsWhatChecksHaveSaid) {
  submit("train", "red", 4);
  settle();
  says("train", "budget", "Ready");
  settle();
  DeskChecks* before = this;
  struct Fresh : DeskChecks {
    void TestBody() override {}
  } fresh;
  fresh.take_over(*before);
  fresh.says("train", "nodes", "Ready");
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
  EXPECT_FALSE(fresh.suspended("train"));
}

quota::AdmissionOptions waiting_for_pods() {
  quota::AdmissionOptions out;
  out.pods_ready.enabled = true;
  out.pods_ready.timeout = Duration::seconds(3600);
  out.pods_ready.recovery_timeout = Duration::seconds(7200);
  out.pods_ready.backoff_base = Duration::seconds(10'800);
  out.pods_ready.backoff_limit = 1;
  return out;
}

struct DeskReadiness : World, ::testing::Test {
  DeskReadiness() : World(waiting_for_pods()) {}
};

// To come to rest takes some minutes more.
void pass(World& world, int hours) {
  world.now = world.now + Duration::seconds(hours * 3600);
  world.wall = world.wall + Duration::seconds(hours * 3600);
  world.settle();
}

TEST_F(DeskReadiness, AJobWhosePodsAreReadyGoesOn) {
  submit("train", "red", 4);
  settle();
  EXPECT_EQ(condition("train", "PodsReady"), "False WaitForStart");
  change("train", {{"status", {{"active", 1}, {"ready", 1}}}});
  settle();
  EXPECT_EQ(condition("train", "PodsReady"), "True Started");
  pass(*this, 5);
  change("train", {{"status", {{"ready", 0}}}});
  settle();
  EXPECT_EQ(condition("train", "PodsReady"), "False WaitForRecovery");
  World fresh(waiting_for_pods());  // it has two hours to recover, whoever looks
  fresh.take_over(*this, Duration::seconds(60));
  pass(fresh, 1);
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
  fresh.change("train", {{"status", {{"ready", 1}}}});
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "PodsReady"), "True Recovered");
}

TEST_F(DeskReadiness, TimeToRecoverIsNotGivenAnewByWhoTakesOver) {
  submit("train", "red", 4);
  settle();
  change("train", {{"status", {{"active", 1}, {"ready", 1}}}});
  settle();
  change("train", {{"status", {{"ready", 0}}}});
  settle();
  EXPECT_EQ(condition("train", "PodsReady"), "False WaitForRecovery");
  World fresh(waiting_for_pods());
  fresh.take_over(*this, Duration::seconds(3600));
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
  pass(fresh, 1);
  EXPECT_EQ(fresh.condition("train", "Evicted"), "True PodsReadyTimeout");
}

TEST_F(DeskReadiness, WhenItWaitsAgainIsTheSameInAllThatIsToldOfIt) {
  for (const int64_t ms : {0, 1, 300, 995}) {
    quota::AdmissionOptions options = waiting_for_pods();
    options.created_ahead = Duration{wall.nanos} + Duration::millis(ms);
    World before(options), after(options);
    before.wall = before.now + options.created_ahead;
    before.submit("train", "red", 4);
    before.settle();
    before.change("train", {{"status", {{"active", 1}}}});
    pass(before, 1);
    before.change("train", {{"status", {{"active", 0}}}});
    before.settle();
    const std::string at = before.workload("train")["status"]["requeueState"]["requeueAt"];
    const std::string uid = before.workload("train")["metadata"]["uid"];
    after.take_over(before, Duration{3'000});  // a clock is read a little later
    after.now = before.now;
    after.settle();
    for (World* world : {&before, &after}) {
      const quota::WorkloadId id = world->admission.find(uid);
      EXPECT_THAT(world->admission.status(id).message, ::testing::HasSubstr("in its queue again from " + at + " on"));
    }
  }
}

TEST_F(DeskReadiness, WhoDoesNotComeUpInTimeWaitsLongerEachTimeAndAtLastForGood) {
  submit("train", "red", 4);
  settle();
  change("train", {{"status", {{"active", 1}}}});
  pass(*this, 1);
  EXPECT_EQ(condition("train", "Evicted"), "True PodsReadyTimeout");
  EXPECT_EQ(condition("train", "PodsReady"), "False WaitForStart");
  EXPECT_EQ(workload("train")["status"]["requeueState"]["count"], 1);
  EXPECT_TRUE(suspended("train"));
  change("train", {{"status", {{"active", 0}}}});
  settle();
  EXPECT_EQ(condition("train", "Requeued"), "False PodsReadyTimeout");
  World fresh(waiting_for_pods());
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "QuotaReserved"), "False PodsReadyTimeout");
  pass(fresh, 3);
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
  EXPECT_EQ(fresh.condition("train", "Requeued"), "True BackoffFinished");
  EXPECT_EQ(fresh.workload("train")["status"]["requeueState"].dump(), R"({"count":1})");
  EXPECT_FALSE(fresh.suspended("train"));
  fresh.change("train", {{"status", {{"active", 1}}}});
  pass(fresh, 1);
  EXPECT_EQ(fresh.condition("train", "Evicted"), "True DeactivatedDueToRequeuingLimitExceeded");
  EXPECT_EQ(fresh.workload("train")["spec"]["active"], false);
}

TEST_F(DeskReadiness, OfAGroupAllPodsHaveToBeReady) {
  for (const char* name : {"one", "two"}) submit_pod(name, "red", 2, "group", 2);
  settle();
  const Json ready = {{"status", {{"phase", "Running"}, {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}};
  change_pod("one", ready);
  settle();
  const auto told = [&] {
    for (const Json& one : workloads["group"]["status"]["conditions"])
      if (one["type"] == "PodsReady") return one["status"].get<std::string>();
    return std::string();
  };
  EXPECT_EQ(told(), "False");
  change_pod("two", ready);
  settle();
  pass(*this, 5);
  EXPECT_EQ(told(), "True");
}

TEST(DeskCheckpoints, WhatAJobSaysOfItsCheckpointsReachesTheEngineWhenItChanges) {
  World world;
  world.submit("train", "red", 2);
  world.settle();
  const auto known = [&] {
    const std::string uid = world.workload("train")["metadata"]["uid"];
    return world.admission.status(world.admission.find(uid)).workload.checkpoints;
  };
  EXPECT_EQ(known(), model::Checkpoints{});
  world.change("train", {{"metadata", {{"annotations", {{"berth.dev/checkpoint-interval", "30m"}}}}}});
  world.settle();
  EXPECT_EQ(known().interval, Duration::seconds(1800));
  const Time saved = world.wall;
  world.change("train", {{"metadata", {{"annotations", {{"berth.dev/last-checkpoint", format_rfc3339(saved)}}}}}});
  const Time here = world.now;
  world.settle();
  ASSERT_TRUE(known().last);
  EXPECT_EQ(known().last->nanos / 1'000'000'000, here.nanos / 1'000'000'000) << "in the time of cycles";
}

}  // namespace
}  // namespace berth::queueing
