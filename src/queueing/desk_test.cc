#include "queueing/desk.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGpu = "nvidia.com/gpu";

// The API server, the engine's admission without nodes, and the desk between them.
struct World {
  quota::Admission admission{{}};
  Desk desk{{"berth"}, bridge::default_topology_levels()};
  std::map<std::string, Json> jobs, workloads, pods;  // as they are stored
  std::vector<std::string> notes;
  int version = 10;
  Time now{}, wall{Duration::seconds(1'800'000'000).nanos};

  World() {
    model::ResourceFlavor flavor;
    flavor.name = "h100";
    flavor.node_labels = {{"gpu", "h100"}};
    model::Toleration& toleration = flavor.tolerations.emplace_back();
    toleration.key = "gpu";
    toleration.op = model::TolerationOperator::kExists;
    admission.upsert(flavor);
    admission.set_namespace_labels("default", {});
    for (const char* name : {"red", "blue"}) {
      model::ClusterQueue queue;
      queue.name = name;
      queue.cohort = "all";
      queue.namespaces.selects_nothing = false;
      queue.preemption.reclaim_within_cohort = model::PreemptionPolicy::kAny;
      model::ResourceQuota quota;
      quota.nominal = 4;
      queue.groups = {{{kGpu}, {{"h100", {{kGpu, quota}}}}}};
      admission.upsert(queue);
      admission.upsert(model::LocalQueue{"default", name, name});
    }
  }

  void submit(const std::string& name, const std::string& queue, int gpus, const std::string& scheduler = "berth") {
    jobs[name] = Json::parse(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "default", "uid": "job-{0}", "resourceVersion": "{1}",
             "labels": {{"kueue.x-k8s.io/queue-name": "{2}"}}}},
            "spec": {{"suspend": true, "parallelism": 1, "completions": 1, "template": {{"metadata": {{"labels": {{"a": "b"}}}},
              "spec": {{"schedulerName": "{4}", "restartPolicy": "Never", "nodeSelector": {{"zone": "x"}},
                "containers": [{{"name": "main", "image": "app", "resources": {{"requests": {{"nvidia.com/gpu": "{3}"}}}}}}]}}}}}}}})",
        name, ++version, queue, gpus, scheduler));
    desk.see(*decode_job(jobs[name].dump()));
  }
  void change(const std::string& job, const Json& patch) {
    jobs[job].merge_patch(patch);
    jobs[job]["metadata"]["resourceVersion"] = std::to_string(++version);
    desk.see(*decode_job(jobs[job].dump()));
  }

  // A pod with the webhook's gate; of a group of so many where one is given.
  void submit_pod(const std::string& name, const std::string& queue, int gpus, const std::string& group = "",
                  int total = 0) {
    Json pod = Json::parse(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "default", "uid": "pod-{0}", "resourceVersion": "{1}",
             "labels": {{"kueue.x-k8s.io/queue-name": "{2}", "kueue.x-k8s.io/managed": "true"}}}},
            "spec": {{"schedulerName": "berth", "schedulingGates": [{{"name": "else"}}, {{"name": "kueue.x-k8s.io/admission"}}],
              "tolerations": [{{"key": "own", "operator": "Exists"}}],
              "containers": [{{"name": "main", "image": "app", "resources": {{"requests": {{"nvidia.com/gpu": "{3}"}}}}}}]}},
            "status": {{"phase": "Pending"}}}})",
        name, ++version, queue, gpus));
    if (!group.empty()) pod["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = group;
    if (total > 0) pod["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = std::to_string(total);
    pods[name] = std::move(pod);
    desk.see(*decode_pod(pods[name].dump()));
  }
  void change_pod(const std::string& name, const Json& patch) {
    pods[name].merge_patch(patch);
    pods[name]["metadata"]["resourceVersion"] = std::to_string(++version);
    desk.see(*decode_pod(pods[name].dump()));
  }
  bool gated(const std::string& pod) { return pods[pod]["spec"]["schedulingGates"].size() == 2; }

  void store_pod(const Write& write, Answer& answer) {
    const Json body = Json::parse(write.body);
    if (write.kind == Write::Kind::kDeletePod) {
      EXPECT_EQ(body["preconditions"]["uid"], pods[write.name]["metadata"]["uid"]);
      pods.erase(write.name);
      return desk.pod_gone("default", write.name);
    }
    EXPECT_EQ(body["metadata"]["resourceVersion"], pods[write.name]["metadata"]["resourceVersion"]);
    pods[write.name].merge_patch(body);
    pods[write.name]["metadata"]["resourceVersion"] = std::to_string(++version);
    answer.pod = *decode_pod(pods[write.name].dump());
  }

  // What the server makes of a write.
  void store(const Write& write) {
    Answer answer{.write = write, .stored = true};
    for (const Note& note : write.notes) notes.push_back(note.name + " " + note.reason);
    if (write.party == Write::Party::kPod) {
      store_pod(write, answer);
      return desk.answered(answer, now);
    }
    Json body = Json::parse(write.body);
    if (write.kind == Write::Kind::kCreateWorkload) {
      const std::string name = body["metadata"]["name"];
      body["metadata"]["uid"] = "uid-" + name;
      body["metadata"]["generation"] = 1;
      body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
      workloads[name] = std::move(body);
      workloads[name]["metadata"]["resourceVersion"] = std::to_string(++version);
      answer.workload = *decode_workload(workloads[name].dump());
    } else {
      const bool of_job = write.party == Write::Party::kJob;
      if (write.kind == Write::Kind::kPatchWorkload) body["metadata"]["generation"] = version;
      Json& object = of_job ? jobs[write.name] : workloads[write.name];
      EXPECT_EQ(body["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
      if (write.kind != Write::Kind::kPatchWorkload) body.erase("metadata");
      object.merge_patch(body);
      object["metadata"]["resourceVersion"] = std::to_string(++version);
      if (of_job) answer.job = *decode_job(object.dump());
      else answer.workload = *decode_workload(object.dump());
    }
    desk.answered(answer, now);
  }
  void apply(std::vector<engine::Event> events) {
    for (engine::Event& event : events) {
      if (auto* upserted = std::get_if<engine::WorkloadUpserted>(&event)) admission.upsert(upserted->workload);
      if (auto* kept = std::get_if<engine::WorkloadAdmitted>(&event))
        admission.restore(kept->workload, kept->cluster_queue, kept->assignment, kept->evicted);
      if (auto* ended = std::get_if<engine::WorkloadEnded>(&event)) {
        const quota::WorkloadId id = admission.find(ended->uid);
        if (ended->deleted) admission.remove(id);
        else admission.finish(id);
      }
      if (auto* released = std::get_if<engine::WorkloadReleased>(&event))
        admission.released(admission.find(released->uid));
    }
  }
  std::vector<Write> look() {
    now = now + Duration::seconds(60);
    wall = wall + Duration::seconds(60);
    apply(desk.take_events(wall));
    for (bool more = true; more;) {
      std::vector<quota::AdmissionDecision> decisions;
      more = admission.run_cycle(now, decisions);
      desk.decided(decisions, admission);
    }
    return desk.look(admission, now, wall, Duration::seconds(30));
  }
  // Until nothing is left to be written.
  void settle() {
    for (int turns = 0; turns < 50; ++turns) {
      const std::vector<Write> writes = look();
      for (const Write& write : writes) store(write);
      for (const Note& note : desk.take_notes()) notes.push_back(note.name + " " + note.reason + ": " + note.text);
      std::vector<engine::Event> events = desk.take_events(wall);
      if (writes.empty() && events.empty()) return;
      apply(std::move(events));
    }
    FAIL() << "the desk does not come to rest";
  }

  Json& workload(const std::string& job) {
    for (auto& [name, object] : workloads)
      if (object["metadata"]["ownerReferences"][0]["name"] == job) return object;
    throw std::runtime_error("no workload of " + job);
  }
  // "True Preempted", "" without it.
  std::string condition(const std::string& job, const std::string& type) {
    for (const Json& one : workload(job)["status"]["conditions"])
      if (one["type"] == type) return one["status"].get<std::string>() + " " + one["reason"].get<std::string>();
    return "";
  }
  bool suspended(const std::string& job) { return jobs[job]["spec"]["suspend"]; }
};

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

TEST_F(DeskTest, OthersJobsAreLeftAlone) {
  submit("other", "red", 2, "default-scheduler");
  settle();
  EXPECT_THAT(workloads, IsEmpty());
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

TEST_F(DeskTest, AWriteThatFailsIsTriedAgainLater) {
  submit("train", "red", 2);
  std::vector<Write> writes = look();
  ASSERT_THAT(writes, SizeIs(1));
  desk.answered({.write = writes[0], .http_status = 500, .error = "no"}, now);
  apply(desk.take_events(wall));
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
  EXPECT_THAT(workloads["pair"]["metadata"]["ownerReferences"], SizeIs(4));
  for (const char* pod : {"b", "c"})
    change_pod(pod, {{"metadata", {{"annotations", {{"kueue.x-k8s.io/retriable-in-group", "false"}}}}},
                     {"status", {{"phase", "Failed"}}}});
  pods.erase("d");
  desk.pod_gone("default", "d");
  settle();
  EXPECT_EQ(condition("a", "Finished"), "True Failed");
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
  std::swap(fresh.jobs, jobs);
  std::swap(fresh.workloads, workloads);
  fresh.version = version + 100;
  fresh.wall = wall + Duration::seconds(3000);
  for (const auto& [name, object] : fresh.workloads) fresh.desk.see(*decode_workload(object.dump()));
  for (const auto& [name, object] : fresh.jobs) fresh.desk.see(*decode_job(object.dump()));
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
