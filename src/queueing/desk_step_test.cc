#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct DeskStepTest : World, ::testing::Test {
  // Its spec becomes that, as the server counts it; its controller sees whenever it is suspended.
  void respec(const std::string& job, const Json& spec) {
    const Json rests = {{"conditions", Json::array({{{"type", "Suspended"}, {"status", "True"}}})}};
    change(job, {{"metadata", {{"generation", version + 1}}}, {"spec", spec}, {"status", rests}});
  }
  void submit_pods(const std::string& job, int at_a_time, int completions, int least = 0) {
    submit(job, "red", 1);
    if (least > 0) {
      const Json annotations = {{"kueue.x-k8s.io/job-min-parallelism", std::to_string(least)}};
      change(job, {{"metadata", {{"annotations", annotations}}}});
    }
    respec(job, {{"parallelism", at_a_time}, {"completions", completions}});
  }
  Json admitted(const std::string& job) {
    return workload(job)["status"]["admission"]["podSetAssignments"][0]["count"];
  }
  std::string message(const std::string& job, const std::string& type) {
    for (const Json& one : workload(job)["status"]["conditions"])
      if (one["type"] == type) return one["message"];
    return "";
  }
  // The server refuses the Job's start, as long as anybody tries.
  void refuse_starts(int turns, int http_status = 422) {
    for (int i = 0; i < turns; ++i) {
      for (const Write& write : look()) {
        if (write.kind != Write::Kind::kPatchJob || Json::parse(write.body)["spec"]["suspend"] != false) {
          store(write);
          continue;
        }
        ++refused;
        desk.answered({.write = write, .http_status = http_status, .error = "Job is invalid: no"}, now);
      }
      for (const Note& note : desk.take_notes()) notes.push_back(note.name + " " + note.reason + ": " + note.text);
    }
  }
  int refused = 0;
};

TEST_F(DeskStepTest, AJobWhoseParallelismChangesIsStoppedAndWaitsAnew) {
  for (const int count : {4, 1, 8}) {
    const std::string name = "job-" + std::to_string(count);
    submit_pods(name, 2, 20);
    settle();
    ASSERT_EQ(admitted(name), 2);
    change(name, {{"status", {{"active", 2}, {"startTime", "2026-01-01T00:00:00Z"}}}});
    respec(name, {{"parallelism", count}});
    settle();
    EXPECT_TRUE(suspended(name));
    EXPECT_EQ(condition(name, "Admitted"), "True Admitted") << "its pods are still there";
    change(name, {{"status", {{"active", 0}}}});
    settle();
    EXPECT_FALSE(suspended(name));
    EXPECT_EQ(workload(name)["spec"]["podSets"][0]["count"], count);
    EXPECT_EQ(admitted(name), count);
    EXPECT_EQ(jobs[name]["spec"]["parallelism"], count);
    EXPECT_EQ(condition(name, "Evicted"), "False QuotaReserved");
    EXPECT_THAT(message(name, "Evicted"), HasSubstr("wants " + std::to_string(count) +
                                                    " pods at a time, and was "
                                                    "admitted with 2"));
    EXPECT_THAT(notes, Contains(name + " Stopped"));
    EXPECT_THAT(notes, Contains(HasSubstr("EvictedDueToNoMatchingWorkload")));
    change(name, {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
    settle();
  }
}

TEST_F(DeskStepTest, WhoGrowsBeyondTheQuotaWaits) {
  submit_pods("grows", 2, 20);
  settle();
  respec("grows", {{"parallelism", 10}});
  settle();
  EXPECT_TRUE(suspended("grows"));
  EXPECT_EQ(condition("grows", "QuotaReserved").substr(0, 5), "False");
  EXPECT_EQ(condition("grows", "Requeued"), "True NoMatchingWorkload");
  submit("other", "red", 8);
  settle();
  EXPECT_EQ(condition("other", "Admitted"), "True Admitted") << "nothing is held any more";
}

TEST_F(DeskStepTest, WhatBerthAndTheJobControllerDoIsInStep) {
  submit_pods("partial", 10, 10, 3);
  settle();
  ASSERT_EQ(jobs["partial"]["spec"]["parallelism"], 8);
  change("partial", {{"status", {{"active", 8}, {"succeeded", 1}}}});
  settle();
  change("partial", {{"status", {{"active", 3}, {"succeeded", 7}}}});
  settle();
  EXPECT_FALSE(suspended("partial"));
  EXPECT_EQ(admitted("partial"), 8);
  EXPECT_EQ(workload("partial")["status"]["reclaimablePods"][0]["count"], 7);  // three completions are to come
  EXPECT_THAT(notes, Not(Contains("partial Stopped")));
  change("partial", {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
  settle();
  submit_pods("few", 8, 3);
  settle();
  EXPECT_EQ(admitted("few"), 3);
  EXPECT_FALSE(suspended("few"));
  respec("few", {{"parallelism", 6}});
  settle();
  EXPECT_FALSE(suspended("few")) << "it runs no more pods than before";
}

TEST_F(DeskStepTest, CompletionsFollowParallelismWhereAnIndexedJobSaysSo) {
  for (const bool follows : {true, false}) {
    const std::string job = follows ? "follows" : "stays";
    submit_pods(job, 10, 10, 2);
    const char* says = follows ? "true" : "false";
    change(job, {{"metadata", {{"annotations", {{"kueue.x-k8s.io/job-completions-equal-parallelism", says}}}}}});
    respec(job, {{"completionMode", "Indexed"}});
    settle();
    ASSERT_FALSE(suspended(job));
    EXPECT_EQ(jobs[job]["spec"]["parallelism"], 8);
    EXPECT_EQ(jobs[job]["spec"]["completions"], follows ? 8 : 10);
    change(job, {{"status", {{"active", 8}, {"startTime", "2026-01-01T00:00:00Z"}}}});
    model::ClusterQueue queue = admission.cluster_queues().at("red");
    queue.stop = model::StopPolicy::kHoldAndDrain;
    admission.upsert(queue);
    settle();
    change(job, {{"status", {{"active", 0}}}});
    settle();
    EXPECT_EQ(jobs[job]["spec"]["parallelism"], 10);
    EXPECT_EQ(jobs[job]["spec"]["completions"], 10);
    queue.stop = model::StopPolicy::kNone;
    admission.upsert(queue);
    settle();
    EXPECT_EQ(admitted(job), 8);
    change(job, {{"status", {{"active", 8}, {"succeeded", 3}}}});
    settle();
    EXPECT_EQ(admission.queue_status("red").held.front().total, follows ? 5 * model::kWholeGpu : 7 * model::kWholeGpu);
    change(job, {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
    settle();
  }
}

TEST_F(DeskStepTest, AJobThatChangesWhileItIsAdmittedIsAdmittedAsItIs) {
  for (int before = 0; before < 4; ++before) {
    const std::string name = "job-" + std::to_string(before);
    submit_pods(name, 2, 20);
    for (int i = 0; i < before; ++i)
      for (const Write& write : look()) store(write);
    const std::vector<Write> under_way = look();
    respec(name, {{"parallelism", 4}});
    for (const Write& write : under_way) {
      if (write.party != Write::Party::kJob || write.kind == Write::Kind::kCreateWorkload) store(write);
      else desk.answered({.write = write, .http_status = 409}, now);
    }
    settle();
    EXPECT_EQ(workload(name)["spec"]["podSets"][0]["count"], 4);
    EXPECT_EQ(admitted(name), 4) << before;
    EXPECT_EQ(jobs[name]["spec"]["parallelism"], 4);
    EXPECT_FALSE(suspended(name));
    change(name, {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
    settle();
  }
}

TEST_F(DeskStepTest, AnotherDeskSeesThatAJobHasGrown) {
  submit_pods("grows", 2, 20);
  settle();
  World fresh;
  fresh.take_over(*this);
  fresh.change("grows", {{"metadata", {{"generation", 99}}}, {"spec", {{"parallelism", 3}}}});
  fresh.settle();
  EXPECT_FALSE(fresh.suspended("grows"));
  EXPECT_EQ(fresh.workload("grows")["status"]["admission"]["podSetAssignments"][0]["count"], 3);
}

TEST_F(DeskStepTest, AJobThatTheServerRefusesToStartGivesItsQuotaBack) {
  step = Duration::seconds(1);
  submit("bad", "red", 8);
  refuse_starts(20);
  EXPECT_EQ(refused, 3);
  EXPECT_THAT(notes, Contains("bad FailedToStart: Error starting the Job: Job is invalid: no"));
  EXPECT_EQ(condition("bad", "Evicted"), "True FailedToStart");
  EXPECT_EQ(condition("bad", "QuotaReserved"), "False Misconfigured");
  EXPECT_EQ(condition("bad", "Requeued"), "False FailedToStart") << "it is out of its queue";
  EXPECT_THAT(message("bad", "QuotaReserved"), HasSubstr("Job is invalid: no; it is tried again at 2027-01-15T"));
  submit("next", "red", 8);
  settle();
  EXPECT_FALSE(suspended("next"));
  EXPECT_TRUE(suspended("bad"));
  change("next", {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
  refuse_starts(80);
  EXPECT_EQ(refused, 6) << "it had its time again";
  change("bad", {{"metadata", {{"annotations", {{"mended", "yes"}}}}}});
  step = Duration::seconds(10);  // its lane pauses after a failure
  settle();
  EXPECT_FALSE(suspended("bad")) << "it has changed";
}

// A contradiction is not tried at all.
TEST_F(DeskStepTest, ACheckThatContradictsTheFlavorStartsNothing) {
  step = Duration::seconds(1);
  model::AdmissionCheck check;
  check.name = "check";
  admission.upsert(check);
  model::ClusterQueue queue = admission.cluster_queues().at("red");
  queue.checks = {{"check"}};
  admission.upsert(queue);
  submit("train", "red", 1);
  for (int i = 0; i < 4; ++i)
    for (const Write& write : look()) store(write);
  const Json update = {{"name", "main"}, {"nodeSelector", {{"gpu", "other"}}}};
  change_status("train", {{"admissionChecks", Json::array({{{"name", "check"},
                                                            {"state", "Ready"},
                                                            {"message", ""},
                                                            {"lastTransitionTime", "2026-01-01T00:00:00Z"},
                                                            {"podSetUpdates", Json::array({update})}}})}});
  refuse_starts(10);
  EXPECT_EQ(refused, 0);
  EXPECT_TRUE(suspended("train"));
  EXPECT_THAT(message("train", "Evicted"),
              HasSubstr("conflict for nodeSelector: conflict for key=gpu, value1=h100, value2=other"));
  EXPECT_EQ(condition("train", "QuotaReserved"), "False Misconfigured");
  EXPECT_EQ(workload("train")["status"]["admissionChecks"][0]["state"], "Pending");
}

TEST_F(DeskStepTest, AFailureOfTheServerIsNoRefusal) {
  submit("train", "red", 8);
  refuse_starts(20, 500);
  EXPECT_GT(refused, 3);
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
}

}  // namespace
}  // namespace berth::queueing
