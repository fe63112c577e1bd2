#include "queueing/desk.h"

#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct DeskTest : World, ::testing::Test {};

TEST_F(DeskTest, AJobIsAdmittedFirstAndStartedThen) {
  submit("train", "red", 2);
  std::vector<Write> writes = look();
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Write::Kind::kCreateWorkload);
  EXPECT_THAT(look(), IsEmpty()) << "one write of an object at a time";
  store(writes[0]);
  writes = look();
  ASSERT_THAT(writes, SizeIs(1));
  EXPECT_EQ(writes[0].kind, Write::Kind::kPatchStatus);
  EXPECT_TRUE(suspended("train"));
  store(writes[0]);
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_EQ(workload("train")["status"]["admission"].dump(),
            R"({"clusterQueue":"red","podSetAssignments":[{"count":1,"flavors":{"nvidia.com/gpu":"h100"},)"
            R"("name":"main","resourceUsage":{"nvidia.com/gpu":"2"}}]})");
  settle();
  const Json& spec = jobs["train"]["spec"];
  EXPECT_EQ(spec["suspend"], false);
  EXPECT_EQ(spec["template"]["spec"]["nodeSelector"].dump(), R"({"gpu":"h100","zone":"x"})");
  EXPECT_EQ(spec["template"]["spec"]["tolerations"].dump(), R"([{"key":"gpu","operator":"Exists"}])");
  EXPECT_EQ(spec["template"]["metadata"]["labels"].dump(), R"({"a":"b","kueue.x-k8s.io/podset":"main"})");
  EXPECT_EQ(notes,
            (std::vector<std::string>{
                "train CreatedWorkload", workload("train")["metadata"]["name"].get<std::string>() + " QuotaReserved",
                workload("train")["metadata"]["name"].get<std::string>() + " Admitted", "train Started"}));
}

TEST_F(DeskTest, WhatAShareHoldsIsTheSameForWhoTakesOver) {
  for (const auto& [name, part] : {std::pair("quarter", "0.25"), {"third", "0.333333"}, {"whole", "1"}}) {
    submit(name, "red", 0);
    change(name, {{"spec", {{"template", {{"metadata", {{"annotations", {{"berth.dev/gpu-fraction", part}}}}}}}}}});
  }
  settle();
  const auto usage = [](World& world, const char* job) {
    return world.workload(job)["status"]["admission"]["podSetAssignments"][0]["resourceUsage"][kGpu];
  };
  EXPECT_EQ(usage(*this, "quarter"), "250m");
  EXPECT_EQ(usage(*this, "third"), "333333u");
  EXPECT_EQ(usage(*this, "whole"), "1");
  World fresh;
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_EQ(fresh.admission.queue_status("red").held.front().total, 1'583'333);
  EXPECT_EQ(usage(fresh, "third"), "333333u");
}

TEST_F(DeskTest, OthersJobsAreLeftAloneAndSaySo) {
  submit("other", "red", 2, "default-scheduler");
  settle();
  EXPECT_THAT(workloads, IsEmpty());
  ASSERT_THAT(jobs["other"]["status"]["conditions"], SizeIs(1));
  EXPECT_EQ(jobs["other"]["status"]["conditions"][0]["reason"], "OtherScheduler");
  EXPECT_EQ(notes, std::vector<std::string>{"other NotQueued"});
}

TEST_F(DeskTest, AJobThatAnotherHasQueuedGoesOnAsItIs) {
  submit("old", "red", 4);
  settle();
  jobs["old"]["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler";
  workload("old")["spec"]["podSets"][0]["template"]["spec"]["schedulerName"] = "default-scheduler";
  World fresh;
  fresh.take_over(*this);
  fresh.settle();
  EXPECT_EQ(fresh.condition("old", "Admitted"), "True Admitted");
  EXPECT_FALSE(fresh.suspended("old"));
  fresh.change("old", {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}}}});
  fresh.change_status("old", Json::object());
  fresh.admission.upsert([&] {
    model::ClusterQueue queue = fresh.admission.cluster_queues().at("red");
    queue.stop = model::StopPolicy::kHoldAndDrain;
    return queue;
  }());
  fresh.settle();
  EXPECT_TRUE(fresh.suspended("old")) << "it is stopped like any other";
}

TEST_F(DeskTest, AWorkloadFollowsAJobThatChangesWhileItWaits) {
  submit("first", "red", 8);
  settle();
  submit("second", "red", 8);
  settle();
  EXPECT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
  change("second", {{"metadata", {{"generation", 2}}}, {"spec", {{"parallelism", 2}, {"completions", 2}}}});
  settle();
  EXPECT_EQ(workload("second")["spec"]["podSets"][0]["count"], 2);
  EXPECT_THAT(notes, ::testing::Contains("second UpdatedWorkload"));
  change("second", {{"metadata", {{"generation", 3}}}, {"spec", {{"parallelism", 1}, {"completions", 1}}}});
  settle();
  EXPECT_EQ(workload("second")["spec"]["podSets"][0]["count"], 1);
  EXPECT_THAT(workload("second")["spec"]["podSets"], SizeIs(1));
}

TEST_F(DeskTest, AWorkloadThatIsEditedWhileItWaitsIsMadeAsItsJobIs) {
  submit("first", "red", 8);
  settle();
  submit("second", "red", 8);
  settle();
  EXPECT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
  const Json before = workload("second")["spec"]["podSets"];
  for (const char* edited : {"/0/template/spec/containers/0/resources/requests/nvidia.com~1gpu", "/0/count"}) {
    Json& stored = workload("second");
    stored["spec"]["podSets"][Json::json_pointer(edited)] = edited[3] == 'c' ? Json(0) : Json("0");
    stored["metadata"]["generation"] = version;
    desk.see(*decode_workload(touched(stored).dump()));
    settle();
    EXPECT_EQ(workload("second")["spec"]["podSets"], before);
    EXPECT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
    EXPECT_TRUE(suspended("second"));
  }
}

TEST_F(DeskTest, WhatTheServerDoesNotKeepOfAWorkloadIsWrittenOnce) {
  submit("first", "red", 8);
  settle();
  submit("second", "red", 8);
  settle();
  Json& stored = workload("second");
  stored["spec"]["podSets"][0]["template"]["spec"].erase("nodeSelector");
  stored["metadata"]["generation"] = version;
  desk.see(*decode_workload(touched(stored).dump()));
  int writes = 0;
  for (int i = 0; i < 5; ++i)
    for (const Write& write : look()) {
      Answer answer{.write = write, .stored = true};
      answer.workload = *decode_workload(touched(stored).dump());  // as it was
      writes += write.kind == Write::Kind::kPatchWorkload ? 1 : 0;
      desk.answered(answer, now);
    }
  EXPECT_EQ(writes, 1);
}

TEST_F(DeskTest, AWorkloadOfPodsThatIsEditedWhileItWaitsIsMadeAsTheyAre) {
  submit("first", "red", 8);
  settle();
  submit_pod("a", "red", 4, "g", 2);
  submit_pod("b", "red", 4, "g", 2);
  settle();
  ASSERT_TRUE(workloads.contains("g"));
  const Json before = workloads["g"]["spec"]["podSets"];
  workloads["g"]["spec"]["podSets"][0]["count"] = 0;
  workloads["g"]["metadata"]["generation"] = version;
  desk.see(*decode_workload(touched(workloads["g"]).dump()));
  settle();
  EXPECT_EQ(workloads["g"]["spec"]["podSets"], before);
  EXPECT_TRUE(gated("a") && gated("b"));
}

TEST_F(DeskTest, WhoIsEvictedIsToldWhyAndForWhomInAnAnnotation) {
  submit("borrows", "red", 8);
  submit_pod("p", "red", 0);
  settle();
  submit("owner", "blue", 4);
  for (int i = 0; i < 10 && !suspended("borrows"); ++i)
    for (const Write& write : look()) store(write);
  EXPECT_THAT(jobs["borrows"]["metadata"]["annotations"]["berth.dev/evicted"].get<std::string>(),
              ::testing::AllOf(::testing::StartsWith("2027-01-15T08:"),
                               ::testing::HasSubstr(": Preempted to accommodate a workload (UID: "),
                               ::testing::EndsWith(", for Job default/owner")));
  model::ClusterQueue queue = admission.cluster_queues().at("red");
  queue.stop = model::StopPolicy::kHoldAndDrain;
  admission.upsert(queue);
  std::string told;
  for (int i = 0; i < 10 && pods.contains("p"); ++i) {
    if (pods["p"]["metadata"].contains("annotations"))
      told = pods["p"]["metadata"]["annotations"].value("berth.dev/evicted", told);
    for (const Write& write : look()) store(write);
  }
  EXPECT_FALSE(pods.contains("p"));
  EXPECT_THAT(told, ::testing::EndsWith(": The ClusterQueue is stopped"));
}

TEST_F(DeskTest, APodThatNamesAQueueAndDoesNotWaitIsToldOnce) {
  submit_pod("foreign", "red", 1);
  change_pod("foreign", {{"spec", {{"schedulerName", "default-scheduler"}}}});
  submit_pod("open", "red", 1);
  change_pod("open", {{"metadata", {{"labels", {{"kueue.x-k8s.io/managed", nullptr}}}}},
                      {"spec", {{"schedulingGates", Json::array()}}}});
  submit_pod("made", "red", 1);
  change_pod(
      "made",
      {{"metadata",
        {{"ownerReferences",
          Json::array(
              {{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"name", "j"}, {"uid", "u"}, {"controller", true}}})}}},
       {"spec", {{"schedulerName", "default-scheduler"}}}});
  settle();
  settle();
  EXPECT_EQ(pods["foreign"]["status"]["conditions"][0]["reason"], "OtherScheduler");
  EXPECT_EQ(pods["open"]["status"]["conditions"][0]["reason"], "NoGate");
  EXPECT_FALSE(pods["made"]["status"].contains("conditions")) << "its Job is told";
  EXPECT_EQ(notes, (std::vector<std::string>{"foreign NotQueued", "open NotQueued"}));
}

TEST_F(DeskTest, AMissingPriorityClassIsToldOnce) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/priority-class", "gone"}}}}}});
  settle();
  settle();
  EXPECT_THAT(workloads, IsEmpty());
  EXPECT_EQ(notes,
            std::vector<std::string>{"train ErrWorkloadCompose: WorkloadPriorityClass gone is not there, so that "
                                     "the Job waits for it"});
  desk.see_priority("gone", 7);
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
}

TEST_F(DeskTest, AJobThatRunsWithoutBeingAdmittedIsStopped) {
  submit("sly", "red", 8);
  change("sly", {{"spec", {{"suspend", false}}}});
  for (const Write& write : look()) store(write);
  EXPECT_TRUE(suspended("sly"));
  settle();
  EXPECT_EQ(condition("sly", "QuotaReserved"), "True QuotaReserved") << "it borrows";
  EXPECT_FALSE(suspended("sly"));
  submit("more", "red", 8);
  settle();
  EXPECT_EQ(condition("more", "QuotaReserved"), "False WaitingForQuota");
  change("more", {{"spec", {{"suspend", false}}}});
  settle();
  EXPECT_TRUE(suspended("more"));
}

// Kueue leaves out of a Workload what the server gave the Job; and a copy of a running Job is made with the mark of
// that.
TEST_F(DeskTest, AnEvictedJobKeepsTheServersLabelsAndLosesTheMarkThatItWasMadeWith) {
  submit("borrower", "blue", 8);
  const Json annotations = {{"kueue.x-k8s.io/workload", "another"}, {"mine", "x"}};
  change("borrower", {{"spec", {{"template", {{"metadata", {{"annotations", annotations}}}}}}}});
  settle();
  change("borrower", {{"spec", {{"template", {{"metadata", {{"labels", {{"job-name", "borrower"}}}}}}}}}});
  change("borrower", {{"status", {{"active", 1}}}});
  submit("owner", "red", 4);
  settle();
  change("borrower", {{"status", {{"active", 0}}}});
  settle();
  const Json& metadata = jobs["borrower"]["spec"]["template"]["metadata"];
  EXPECT_EQ(metadata["labels"].dump(), R"({"a":"b","job-name":"borrower"})");
  EXPECT_EQ(metadata["annotations"].dump(), R"({"mine":"x"})");
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
}

TEST_F(DeskTest, AnEvictedJobGivesBackWhenItsPodsAreGoneAndItsTemplateIsAsItWas) {
  submit("borrower", "blue", 8);
  settle();
  const Json before = jobs["borrower"];
  change("borrower", {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}}}});
  submit("owner", "red", 4);
  settle();
  EXPECT_EQ(condition("borrower", "Evicted"), "True Preempted");
  EXPECT_EQ(condition("borrower", "Preempted"), "True InCohortReclamation");
  EXPECT_TRUE(suspended("borrower"));
  EXPECT_EQ(condition("owner", "QuotaReserved"), "False WaitingForQuota") << "its pods are still there";
  change("borrower", {{"status", {{"active", 0}}}});
  settle();
  EXPECT_FALSE(jobs["borrower"]["status"].contains("startTime"));
  EXPECT_EQ(jobs["borrower"]["spec"]["template"]["spec"]["nodeSelector"].dump(), R"({"zone":"x"})");
  EXPECT_FALSE(jobs["borrower"]["spec"]["template"]["spec"].contains("tolerations"));
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("borrower", "QuotaReserved"), "False WaitingForQuota");
  EXPECT_FALSE(workload("borrower")["status"].contains("admission"));
  change("owner", {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}, {"message", "done"}}}}}}});
  settle();
  EXPECT_EQ(condition("owner", "Finished"), "True Succeeded");
  EXPECT_EQ(condition("borrower", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("borrower", "Evicted"), "False QuotaReserved");
  EXPECT_FALSE(suspended("borrower"));
}

TEST_F(DeskTest, AnotherDeskGoesOnFromWhatIsStored) {
  submit("borrower", "blue", 8);
  settle();
  submit("owner", "red", 4);
  for (int i = 0; i < 3; ++i)  // as far as the condition that it is evicted
    for (const Write& write : look())
      if (write.kind != Write::Kind::kPatchJob) store(write);
  ASSERT_EQ(condition("borrower", "Evicted"), "True Preempted");
  World fresh;
  std::swap(fresh.jobs, jobs);
  std::swap(fresh.workloads, workloads);
  fresh.version = version + 100;
  for (const auto& [name, object] : fresh.workloads) fresh.desk.see(*decode_workload(object.dump()));
  for (const auto& [name, object] : fresh.jobs) fresh.desk.see(*decode_job(object.dump()));
  fresh.settle();
  EXPECT_TRUE(fresh.suspended("borrower"));
  EXPECT_EQ(fresh.condition("owner", "Admitted"), "True Admitted");
  EXPECT_EQ(fresh.condition("borrower", "QuotaReserved"), "False WaitingForQuota");
}

TEST_F(DeskTest, ADeletedJobGivesItsQuotaBack) {
  submit("first", "red", 8);
  submit("second", "red", 8);
  settle();
  EXPECT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
  const Json gone = workload("first")["metadata"];
  jobs.erase("first");
  desk.job_gone("default", "first");
  workloads.erase(gone["name"]);
  desk.workload_gone("default", gone["name"]);
  settle();
  EXPECT_EQ(condition("second", "Admitted"), "True Admitted");
}

// The watch may be ahead of the answer to the write that ended the object: what is gone does not come back with it.
TEST_F(DeskTest, AnAnswerAboutWhoHasGoneBringsNobodyBack) {
  submit("first", "red", 8);
  settle();
  const SeenWorkload before = *decode_workload(workload("first").dump());
  const std::string name = before.workload.metadata.name;
  workload("first")["metadata"].merge_patch(
      {{"finalizers", {"kueue.x-k8s.io/resource-in-use"}}, {"deletionTimestamp", "2026-01-01T00:00:00Z"}});
  desk.see(*decode_workload(touched(workload("first")).dump()));
  const std::vector<Write> writes = look();
  ASSERT_THAT(writes, SizeIs(1)) << "the finalizer is taken off";
  Answer answer{.write = writes[0], .stored = true};
  answer.workload = *decode_workload(touched(workload("first")).dump());
  const SeenJob job = *decode_job(jobs["first"].dump());
  jobs.clear();
  workloads.clear();
  desk.job_gone("default", "first");
  desk.workload_gone("default", name);
  desk.answered(answer, now);
  answer.write.kind = Write::Kind::kCreateWorkload;  // nor does that to the one that began it
  answer.workload = before;
  answer.job = job;
  desk.answered(answer, now);
  EXPECT_EQ(desk.workloads(), 0U);
  submit("second", "red", 8);
  settle();
  EXPECT_EQ(condition("second", "Admitted"), "True Admitted");
}

TEST_F(DeskTest, AnAnswerAboutAPodThatHasGoneBringsNobodyBack) {
  submit_pod("one", "red", 8);
  settle();
  Answer answer;
  answer.stored = true;
  answer.write.kind = Write::Kind::kPatchPod;
  answer.write.party = Write::Party::kPod;
  answer.write.namespace_name = "default";
  answer.write.name = "one";
  answer.pod = *decode_pod(touched(pods["one"]).dump());
  pods.clear();
  desk.pod_gone("default", "one");
  desk.answered(answer, now);
  submit_pod("two", "red", 8);
  settle();
  EXPECT_FALSE(gated("two"));
}

TEST_F(DeskTest, WhereThereIsNoRoomToTellWhoWaitsDecisionsAreWrittenAndTheOthersHaveTheirTurnLater) {
  for (const char* name : {"large", "larger", "largest"}) submit(name, "red", 9);
  for (const Write& write : look()) store(write);
  submit("small", "red", 2);
  for (const Write& write : look(0)) store(write);
  for (const Write& write : look(0)) store(write);
  EXPECT_EQ(condition("small", "Admitted"), "True Admitted");
  for (int turn = 1; turn <= 3; ++turn) {
    for (const Write& write : look(0)) store(write);
    const std::vector<Write> told = look(1);
    ASSERT_THAT(told, SizeIs(1));
    EXPECT_TRUE(told[0].only_tells);
    store(told[0]);
  }
  for (const char* name : {"large", "larger", "largest"})
    EXPECT_EQ(condition(name, "QuotaReserved"), "False ExceedsMaxQuota");
}

TEST_F(DeskTest, AWriteThatFailsIsTriedAgainLater) {
  submit("train", "red", 2);
  std::vector<Write> writes = look();
  ASSERT_THAT(writes, SizeIs(1));
  desk.answered({.write = writes[0], .http_status = 500, .error = "no"}, now);
  apply(desk.take_events(now, wall));
  EXPECT_THAT(desk.look(admission, now, wall, {}), IsEmpty());
  ASSERT_TRUE(desk.wakeup().has_value());
  EXPECT_EQ(*desk.wakeup(), now + Duration::seconds(1));
  settle();
  EXPECT_FALSE(suspended("train"));
}

TEST_F(DeskTest, APriorityClassThatIsNotKnownIsWaitedFor) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/priority-class", "urgent"}}}}}});
  settle();
  EXPECT_THAT(workloads, IsEmpty());
  desk.see_priority("urgent", 7);
  settle();
  EXPECT_EQ(workload("train")["spec"]["priority"], 7);
  EXPECT_EQ(workload("train")["spec"]["priorityClassRef"]["name"], "urgent");
}

TEST_F(DeskTest, OlderNewsIsNone) {
  submit("train", "red", 2);
  const auto old = *decode_job(jobs["train"].dump());
  settle();
  EXPECT_FALSE(suspended("train"));
  desk.see(old);
  EXPECT_THAT(look(), IsEmpty()) << "a watch that lags behind an answer";
}

TEST_F(DeskTest, APodWaitsForItsAdmissionAndIsToldWhatItsFlavorsAdd) {
  submit_pod("first", "red", 6);
  submit_pod("second", "red", 4);
  settle();
  EXPECT_FALSE(gated("first"));
  EXPECT_TRUE(gated("second"));
  const Json& spec = pods["first"]["spec"];
  EXPECT_EQ(spec["schedulingGates"], Json::parse(R"([{"name": "else"}])"));
  EXPECT_EQ(spec["nodeSelector"], (Json{{"gpu", "h100"}}));
  EXPECT_EQ(spec["tolerations"],
            Json::parse(R"([{"key": "own", "operator": "Exists"}, {"key": "gpu", "operator": "Exists"}])"));
  EXPECT_EQ(pods["first"]["metadata"]["annotations"]["kueue.x-k8s.io/workload"], workload("first")["metadata"]["name"]);
  EXPECT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
  change_pod("first", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  EXPECT_EQ(condition("first", "Finished"), "True Succeeded");
  EXPECT_FALSE(gated("second"));
}

TEST_F(DeskTest, AGroupStartsWhole) {
  submit_pod("leader", "red", 2, "train", 3);
  submit_pod("worker-0", "red", 1, "train", 3);
  settle();
  EXPECT_THAT(workloads, IsEmpty());
  EXPECT_THAT(notes, ::testing::Contains("leader ErrWorkloadCompose: the group train has 2 of 3 pods"));
  submit_pod("worker-1", "red", 1, "train", 3);
  settle();
  const Json& spec = workloads["train"]["spec"];
  ASSERT_THAT(spec["podSets"], SizeIs(2));
  EXPECT_EQ(spec["podSets"][1]["count"], 2);
  EXPECT_THAT(workloads["train"]["metadata"]["ownerReferences"], SizeIs(3));
  for (const char* pod : {"leader", "worker-0", "worker-1"}) EXPECT_FALSE(gated(pod)) << pod;
}

TEST_F(DeskTest, WhatIsOverInAGroupGivesItsQuotaBackAndTheLastEndsIt) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 2, "pair", 2);
  settle();
  change_pod("a", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  EXPECT_EQ(workloads["pair"]["status"]["reclaimablePods"], Json::parse(R"([{"name": "main", "count": 1}])"));
  change_pod("b", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  EXPECT_EQ(condition("a", "Finished"), "True Succeeded");
}

TEST_F(DeskTest, AFailedPodOfAGroupIsReplacedUnlessItSaysThatItIsTheLast) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 2, "pair", 2);
  settle();
  change_pod("a", {{"status", {{"phase", "Failed"}}}});
  submit_pod("c", "red", 2, "pair", 2);
  submit_pod("d", "red", 2, "pair", 2);  // one too many
  settle();
  EXPECT_FALSE(gated("c"));
  EXPECT_TRUE(gated("d"));
  settle();
  EXPECT_EQ(std::ranges::count(notes,
                               "d ErrWorkloadCompose: the Workload pair has no further pod like this one: all that it "
                               "counts are there"),
            1);
  EXPECT_THAT(workloads["pair"]["metadata"]["ownerReferences"], SizeIs(4));
  for (const char* pod : {"b", "c"})
    change_pod(pod, {{"metadata", {{"annotations", {{"kueue.x-k8s.io/retriable-in-group", "false"}}}}},
                     {"status", {{"phase", "Failed"}}}});
  pods.erase("d");
  desk.pod_gone("default", "d");
  settle();
  EXPECT_EQ(condition("a", "Finished"), "True Failed");
}

// Neither a role nor a label that a pod was given by its maker makes it one of those that were counted.
TEST_F(DeskTest, WhatAPodOfAGroupAsksForIsCounted) {
  for (const char* pod : {"small", "large"}) {
    submit_pod(pod, "red", pod == std::string("small") ? 1 : 2, "forged", 2);
    change_pod(pod, {{"metadata", {{"annotations", {{"kueue.x-k8s.io/role-hash", "role-1"}}}}}});
  }
  settle();
  const Json& sets = workloads["forged"]["spec"]["podSets"];
  ASSERT_THAT(sets, SizeIs(2));
  EXPECT_NE(sets[0]["name"], sets[1]["name"]);
  change_pod("small", {{"status", {{"phase", "Failed"}}}});
  submit_pod("huge", "red", 6, "forged", 2);
  change_pod("huge", {{"metadata",
                       {{"annotations", {{"kueue.x-k8s.io/role-hash", "role-1"}}},
                        {"labels", {{"kueue.x-k8s.io/podset", sets[0]["name"]}}}}}});
  settle();
  EXPECT_TRUE(gated("huge"));
  EXPECT_THAT(notes,
              ::testing::Contains(::testing::HasSubstr(
                  "huge ErrWorkloadCompose: no pod of the Workload forged, which was made for the group before")));
}

TEST_F(DeskTest, PodsOfAnEvictedGroupAreDeletedAndTheirQuotaIsOthersThen) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "blue", 4, "pair", 2);
  settle();
  submit("owner", "red", 4);
  settle();
  EXPECT_THAT(pods, IsEmpty());
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
}

TEST_F(DeskTest, PodsThatDoNotAgreeAreToldOnce) {
  submit_pod("a", "red", 1, "pair", 2);
  submit_pod("b", "blue", 1, "pair", 2);
  settle();
  settle();
  EXPECT_THAT(notes, ::testing::ElementsAre("a ErrWorkloadCompose: pods a and b of one group name different queues"));
  EXPECT_THAT(workloads, IsEmpty());
}

TEST_F(DeskTest, AFinalizerIsTakenOffOnceNobodyCountsThePod) {
  submit_pod("one", "red", 1);
  change_pod("one", {{"metadata", {{"finalizers", {"kueue.x-k8s.io/managed", "other"}}}}});
  settle();
  EXPECT_THAT(pods["one"]["metadata"]["finalizers"], SizeIs(2));
  change_pod("one", {{"status", {{"phase", "Failed"}}}});
  settle();
  EXPECT_EQ(pods["one"]["metadata"]["finalizers"], Json::parse(R"(["other"])"));
  EXPECT_EQ(condition("one", "Finished"), "True Failed");
}

TEST_F(DeskTest, AWorkloadWhosePodsHaveGoneHoldsNothing) {
  submit_pod("one", "red", 8);
  settle();
  pods.erase("one");
  desk.pod_gone("default", "one");
  submit_pod("two", "red", 8);
  settle();
  EXPECT_FALSE(gated("two"));
}

TEST_F(DeskTest, PastItsTimeAJobIsStoppedForGoodAndARestartDoesNotGiveItMore) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  settle();
  EXPECT_EQ(workload("train")["spec"]["maximumExecutionTimeSeconds"], 3600);
  EXPECT_FALSE(suspended("train"));
  World fresh;
  fresh.take_over(*this, Duration::seconds(3000));
  fresh.settle();
  EXPECT_EQ(fresh.condition("train", "Admitted"), "True Admitted");
  for (int minute = 0; minute < 12; ++minute) fresh.settle();
  EXPECT_EQ(fresh.condition("train", "Evicted"), "True DeactivatedDueToMaximumExecutionTimeExceeded");
  EXPECT_EQ(fresh.workload("train")["spec"]["active"], false);
  EXPECT_GE(fresh.workload("train")["status"]["accumulatedPastExecutionTimeSeconds"], 3600);
  EXPECT_TRUE(fresh.suspended("train"));
}

}  // namespace
}  // namespace berth::queueing
