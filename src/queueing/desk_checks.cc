// The part of Desk that hears from AdmissionChecks and of the readiness of pods, and keeps what an eviction leaves
// behind.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "queueing/wanted.h"
#include "quota/told_second.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

constexpr const char *kNotReady = "Not all pods are ready or succeeded",
                     *kReady = "All pods reached readiness and the workload is running";

Json pending_check(const std::string& name, const std::string& message, Time wall) {
  return {{"name", name}, {"state", "Pending"}, {"lastTransitionTime", format_rfc3339(wall)}, {"message", message}};
}

// Puts the word in the place of what the check has said; what people are to hear of it, empty where it is the same.
std::string put(const CheckWord& word, Json& check, Time wall) {
  const Json before = check;
  const std::string state = check.value("state", "");
  for (const char* member : {"podSetUpdates", "requeueAfterSeconds"}) check.erase(member);
  check["state"] = word.state;
  check["message"] = word.message;
  if (!word.pod_set_updates.empty()) check["podSetUpdates"] = Json::parse(word.pod_set_updates);
  if (word.retry_after_s > 0) check["requeueAfterSeconds"] = word.retry_after_s;
  if (nlohmann::json(check) == nlohmann::json(before)) return "";
  if (state != word.state) check["lastTransitionTime"] = format_rfc3339(wall);
  return fmt::format("Admission check {} updated state from {} to {}{}", check.value("name", ""), state, word.state,
                     word.message.empty() ? "" : " with message " + word.message);
}

bool is_ready(const api::Pod& pod) {
  const api::Condition* ready = pod.status.condition("Ready");
  return pod.status.phase == "Succeeded" || (ready != nullptr && ready->status == "True");
}

}  // namespace

const SeenWorkload* Desk::find(const Name& name) const {
  const auto at = workloads_.find(name);
  return at == workloads_.end() ? nullptr : &at->second.seen;
}

void Desk::say(const Name& name, CheckWords words) {
  const auto at = workloads_.find(name);
  if (at == workloads_.end() || at->second.words == words) return;
  at->second.words = std::move(words);
  dirty_workloads_.insert(name);
}

// The engine hears what the controllers of checks say, Berth among them; checks that the queue asks for anew are listed
// as pending.
void Desk::follow_checks(const WorkloadRecord& record, const quota::WorkloadStatus& status, Wanted& wanted,
                         std::vector<Note>& notes) {
  const SeenWorkload& seen = record.seen;
  const bool heard = seen.is("QuotaReserved") && !seen.is("Evicted");  // words are of this term
  Json all = Json::array();
  bool same = seen.checks.size() == status.checks.size();
  for (const quota::CheckReport& known : status.checks) {
    const auto stored = std::ranges::find(seen.checks, known.check, &StoredCheck::name);
    if (stored == seen.checks.end()) {
      all.push_back(pending_check(known.check, "", wanted.wall));
      same = false;
      continue;
    }
    Json& check = all.emplace_back(Json::parse(stored->json));
    if (const auto word = record.words.find(known.check); heard && word != record.words.end())
      if (std::string change = put(word->second, check, wanted.wall); !change.empty()) {
        same = false;
        if (word->second.state != stored->state)
          notes.push_back(note_of(seen.workload.metadata, "Workload", "AdmissionCheckUpdated", std::move(change)));
      }
    if (stored->report.state != known.state || stored->report.message != known.message)
      events_.emplace_back(engine::WorkloadCheckReported{seen.workload.metadata.uid, stored->report, {}});
  }
  if (!same) wanted.change("admissionChecks", std::move(all));
}

// Whether all pods that it was admitted with are ready or have succeeded; who has no Job and no pods is asked himself.
bool Desk::is_ready(const SeenWorkload& seen, const quota::WorkloadStatus& status) const {
  int32_t wanted = 0, ready = 0;
  for (const quota::PodSetAssignment& set : status.assignment) wanted += set.count;
  if (const JobRecord* job = job_of(seen); job != nullptr) {
    ready = job->seen.job.ready + job->seen.job.succeeded;
  } else if (const GroupRecord* group = group_of(seen); group != nullptr) {
    for (const auto& [name, pod] : group->pods) ready += queueing::is_ready(pod.seen.pod) ? 1 : 0;
  } else {
    return seen.is("PodsReady");
  }
  return ready >= wanted;
}

void Desk::follow_readiness(WorkloadRecord& record, const quota::WorkloadStatus& status, Wanted& wanted) {
  const SeenWorkload& seen = record.seen;
  if (!pods_ready_ || status.phase != quota::WorkloadPhase::kAdmitted) return;
  const bool ready = is_ready(seen, status), was_ready = seen.is("PodsReady");
  if (ready != std::exchange(record.told_ready, ready))
    events_.emplace_back(engine::WorkloadPodsReady{seen.workload.metadata.uid, ready, {}});
  const StoredCondition* before = seen.condition("PodsReady");
  const bool recovers = before != nullptr && before->reason == "WaitForRecovery";
  if (ready && !was_ready) wanted.set("PodsReady", true, recovers ? "Recovered" : "Started", kReady);
  if (!ready && was_ready) wanted.set("PodsReady", false, "WaitForRecovery", kNotReady);
  if (!ready && before == nullptr) wanted.set("PodsReady", false, "WaitForStart", kNotReady);
}

// Of one that is evicted: what checks have said holds no longer, nor that its pods are ready, and when it may come back
// outlives this process.
void Desk::say_requeue(const SeenWorkload& seen, const quota::WorkloadStatus& status, Wanted& wanted) const {
  Json checks = Json::array();
  for (const StoredCheck& check : seen.checks)
    checks.push_back(pending_check(check.name, "Reset to Pending after eviction. Previously: " + check.state, wall_));
  if (!checks.empty()) wanted.change("admissionChecks", std::move(checks));
  if (seen.condition("PodsReady") != nullptr) wanted.set("PodsReady", false, "WaitForStart", kNotReady);
  if (status.requeue_at) {
    Json requeue = {{"requeueAt", format_rfc3339(quota::told_second(wall_ + (*status.requeue_at - now_)))}};
    if (status.requeues > 0) requeue["count"] = status.requeues;
    wanted.change("requeueState", std::move(requeue));
  }
  if (seen.workload.max_execution_s)
    wanted.change("accumulatedPastExecutionTimeSeconds",
                  seen.workload.past_execution_s + seen.admitted_for(wall_).nanos / Duration::seconds(1).nanos);
}

// Of one that this process hears of first: whether its pods had been ready in this term, and since when they are not.
void Desk::tell_readiness(WorkloadRecord& record) {
  const StoredCondition* told = record.seen.condition("PodsReady");
  const bool recovers = told != nullptr && told->reason == "WaitForRecovery";
  if (!recovers && !record.seen.is("PodsReady")) return;
  events_.emplace_back(engine::WorkloadPodsReady{record.seen.workload.metadata.uid, true, {}});
  if (recovers) {
    const Result<Time> since = parse_rfc3339(told->since);
    events_.emplace_back(engine::WorkloadPodsReady{record.seen.workload.metadata.uid, false, since ? *since : Time{}});
  }
  record.told_ready = !recovers;
}

}  // namespace berth::queueing
