// A world for tests of the desk: the API server, the engine's admission without nodes, and the desk between them.
#pragma once

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "queueing/desk.h"
#include "queueing/testing_queues.h"

namespace berth::queueing {

struct World {
  using Json = nlohmann::json;
  quota::Admission admission;
  Desk desk;
  std::map<std::string, Json> jobs, workloads, pods;  // as they are stored
  std::vector<std::string> notes;
  int version = 10;
  Time now{}, wall{Duration::seconds(1'800'000'000).nanos};
  Duration step = Duration::seconds(60);  // from one look to the next

  explicit World(const quota::AdmissionOptions& options = {}, quota::Places* places = nullptr)
      : admission(options, places), desk({"berth"}, bridge::default_topology_levels(), options.pods_ready.enabled) {
    add_red_and_blue(admission);
  }
  Json& touched(Json& object) {
    object["metadata"]["resourceVersion"] = std::to_string(++version);
    return object;
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
  // Its controller sees that it is suspended, where the patch does not say what else it says.
  void change(const std::string& job, const Json& patch) {
    jobs[job].merge_patch(patch);
    if (suspended(job) && patch.contains("status") && !patch["status"].contains("conditions"))
      jobs[job]["status"]["conditions"] = Json::array({{{"type", "Suspended"}, {"status", "True"}}});
    desk.see(*decode_job(touched(jobs[job]).dump()));
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
    desk.see(*decode_pod(touched(pods[name]).dump()));
  }
  bool gated(const std::string& pod) { return pods[pod]["spec"]["schedulingGates"].size() == 2; }

  void store_pod(const Write& write, Answer& answer) {
    const Json body = Json::parse(write.body);
    if (write.kind == Write::Kind::kDeletePod) {
      EXPECT_EQ(body["preconditions"]["uid"], pods[write.name]["metadata"]["uid"]);
      pods.erase(write.name);
      desk.pod_gone("default", write.name);
      return desk.answered(answer, now);
    }
    EXPECT_EQ(body["metadata"]["resourceVersion"], pods[write.name]["metadata"]["resourceVersion"]);
    pods[write.name].merge_patch(body);
    answer.pod = *decode_pod(touched(pods[write.name]).dump());
    desk.answered(answer, now);
  }
  // What the server makes of a write.
  void store(const Write& write) {
    Answer answer{.write = write, .stored = true};
    for (const Note& note : write.notes) notes.push_back(note.name + " " + note.reason);
    if (write.party == Write::Party::kPod) return store_pod(write, answer);
    Json body = Json::parse(write.body);
    if (write.kind == Write::Kind::kCreateWorkload) {
      const std::string name = body["metadata"]["name"];
      body["metadata"]["uid"] = "uid-" + name;
      body["metadata"]["generation"] = 1;
      body["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z";
      workloads[name] = std::move(body);
      answer.workload = *decode_any_workload(touched(workloads[name]).dump());
    } else {
      const bool of_job = write.party == Write::Party::kJob;
      if (write.kind == Write::Kind::kPatchWorkload) body["metadata"]["generation"] = version;
      Json& object = of_job ? jobs[write.name] : workloads[write.name];
      EXPECT_EQ(body["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
      if (write.kind == Write::Kind::kPatchStatus || write.kind == Write::Kind::kPatchJobStatus) body.erase("metadata");
      object.merge_patch(body);
      touched(object);
      if (of_job) answer.job = *decode_job(object.dump());
      else answer.workload = *decode_any_workload(object.dump());
    }
    desk.answered(answer, now);
    if (!answer.workload || !answer.workload->workload.metadata.deleted || answer.workload->finalizer) return;
    workloads.erase(write.name);
    desk.workload_gone("default", write.name);
  }
  void apply(std::vector<engine::Event> events) {
    for (engine::Event& event : events) {
      if (auto* upserted = std::get_if<engine::WorkloadUpserted>(&event)) admission.upsert(upserted->workload);
      if (auto* kept = std::get_if<engine::WorkloadAdmitted>(&event)) admission.restore(kept->workload, kept->held);
      if (auto* ended = std::get_if<engine::WorkloadEnded>(&event))
        ended->deleted ? admission.remove(admission.find(ended->uid)) : admission.finish(admission.find(ended->uid));
      if (auto* ready = std::get_if<engine::WorkloadPodsReady>(&event))
        admission.pods_ready(admission.find(ready->uid), ready->ready, ready->at);
      if (auto* check = std::get_if<engine::WorkloadCheckReported>(&event))
        admission.check_state(admission.find(check->uid), check->report, check->at);
      if (auto* released = std::get_if<engine::WorkloadReleased>(&event))
        admission.released(admission.find(released->uid));
    }
  }
  std::vector<Write> look(size_t tell_room = SIZE_MAX) {
    now = now + step;
    wall = wall + step;
    apply(desk.take_events(now, wall));
    for (bool more = true; more;) {
      std::vector<quota::AdmissionDecision> decisions;
      more = admission.run_cycle(now, decisions);
      desk.decided(decisions, admission);
    }
    return desk.look(admission, now, wall, Duration::seconds(30), SIZE_MAX, tell_room);
  }
  // Until nothing is left to be written.
  void settle() {
    for (int turns = 0; turns < 50; ++turns) {
      const std::vector<Write> writes = look();
      for (const Write& write : writes) store(write);
      for (const Note& note : desk.take_notes()) notes.push_back(note.name + " " + note.reason + ": " + note.text);
      std::vector<engine::Event> events = desk.take_events(now, wall);
      if (writes.empty() && events.empty()) return;
      apply(std::move(events));
    }
    FAIL() << "the desk does not come to rest";
  }
  Json& workload(const std::string& job) {
    for (auto& [name, object] : workloads)
      for (const Json& owner : object["metadata"].value("ownerReferences", Json::array()))
        if (owner["name"] == job) return object;
    throw std::runtime_error("no workload of " + job);
  }
  // "True Preempted", "" without it.
  std::string condition(const std::string& job, const std::string& type) { return condition_in(workload(job), type); }
  static std::string condition_in(const Json& workload, const std::string& type) {
    if (!workload.contains("status")) return "";
    for (const Json& one : workload["status"].value("conditions", Json::array()))
      if (one["type"] == type) return one["status"].get<std::string>() + " " + one["reason"].get<std::string>();
    return "";
  }
  // Somebody else writes to the status of the job's Workload.
  void change_status(const std::string& job, const Json& patch) {
    Json& object = workload(job);
    object["status"].merge_patch(patch);
    desk.see(*decode_any_workload(touched(object).dump()));
  }
  // Another process takes over, so much later.
  void take_over(World& from, Duration later = {}) {
    std::swap(jobs, from.jobs);
    std::swap(workloads, from.workloads);
    version = from.version + 100;
    wall = from.wall + later;
    for (const auto& [name, object] : workloads) desk.see(*decode_any_workload(object.dump()));
    for (const auto& [name, object] : jobs) desk.see(*decode_job(object.dump()));
  }
  bool suspended(const std::string& job) { return jobs[job]["spec"]["suspend"]; }
};

}  // namespace berth::queueing
