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
constexpr Time kWall{Duration::seconds(1'800'000'000).nanos};

// The API server, the engine's admission without nodes, and the desk between them.
struct World {
  quota::Admission admission{{}};
  Desk desk{{"berth"}, bridge::default_topology_levels()};
  std::map<std::string, Json> jobs, workloads;  // as they are stored
  std::vector<std::string> notes;
  int version = 10;
  Time now{};

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

  // What the server makes of a write.
  void store(const Write& write) {
    Answer answer{.write = write, .stored = true};
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
      const bool of_job = write.kind != Write::Kind::kPatchStatus;
      Json& object = of_job ? jobs[write.name] : workloads[write.name];
      EXPECT_EQ(body["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
      body.erase("metadata");
      object.merge_patch(body);
      object["metadata"]["resourceVersion"] = std::to_string(++version);
      if (of_job) answer.job = *decode_job(object.dump());
      else answer.workload = *decode_workload(object.dump());
    }
    for (const Note& note : write.notes) notes.push_back(note.name + " " + note.reason);
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
    apply(desk.take_events());
    for (bool more = true; more;) {
      std::vector<quota::AdmissionDecision> decisions;
      more = admission.run_cycle(now, decisions);
      desk.decided(decisions, admission);
    }
    return desk.look(admission, now, kWall, Duration::seconds(30));
  }
  // Until nothing is left to be written.
  void settle() {
    for (int turns = 0; turns < 50; ++turns) {
      const std::vector<Write> writes = look();
      for (const Write& write : writes) store(write);
      std::vector<engine::Event> events = desk.take_events();
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
  std::vector<SeenWorkload> seen;
  for (const auto& [name, object] : fresh.workloads) seen.push_back(*decode_workload(object.dump()));
  fresh.desk.list_workloads(std::move(seen));
  std::vector<SeenJob> known;
  for (const auto& [name, object] : fresh.jobs) known.push_back(*decode_job(object.dump()));
  fresh.desk.list_jobs(std::move(known));
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
  apply(desk.take_events());
  EXPECT_THAT(desk.look(admission, now, kWall, {}), IsEmpty());
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

}  // namespace
}  // namespace berth::queueing
