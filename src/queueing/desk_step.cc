// The part of Desk that takes quota back from Jobs that are not what was admitted, and from those that cannot start.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "queueing/step.h"
#include "queueing/wanted.h"
#include "workloads/job/job.h"

namespace berth::queueing {
namespace {

constexpr int kRefusalsMax = 3;
constexpr Duration kHoldMin = Duration::seconds(60), kHoldMax = Duration::seconds(3600);

}  // namespace

bool is_injected(const SeenJob& job) {
  return job.job.pod_template.metadata.annotation(api::kWorkloadAnnotation) != nullptr;
}

bool is_at_rest(const SeenJob& job) { return job.job.suspend && !job.has_pods() && !job.started && !is_injected(job); }

std::string why_out_of_step(const SeenJob& job, const SeenWorkload& workload) {
  if (!workload.is("QuotaReserved") || !workload.admission || workload.workload.pod_sets.size() != 1 ||
      workload.admission->pod_sets.size() != 1 || !job.finished.empty() || job.ends_since)
    return "";
  const api::WorkloadPodSet& set = workload.workload.pod_sets.front();
  const int32_t given = workload.admission->pod_sets.front().count;
  const int32_t wants = workloads::wanted_once_released(job.job, 0, 0);
  const int32_t least = set.min_count.value_or(set.count) - set.reclaimable;
  const bool runs = !job.job.suspend || is_injected(job), partly = set.min_count && given < set.count;
  const bool alike = runs ? wants == given || (!partly && wants == set.count) : wants == set.count;
  if (alike && given <= set.count && given >= least) return "";
  return fmt::format(
      "No matching Workload; restoring pod templates according to existent Workload: the Job wants {} pods at a time, "
      "and was admitted with {}",
      wants, given);
}

// The engine forgets what it has decided about the Workload, and decides about what it is now.
void Desk::introduce_anew(WorkloadRecord& record) {
  if (record.in_engine && !record.ended)
    events_.emplace_back(engine::WorkloadEnded{record.seen.workload.metadata.uid, true});
  record.in_engine = false;
  record.evicted_by.reset();
  record.evicted_for.clear();
  tell_engine(record);
}

// Whether pods have run of one that was admitted before; none: some are there, of which those know who see them.
std::optional<bool> Desk::has_run(const Name& name, const SeenWorkload& seen) const {
  if (const JobRecord* record = job_of(seen)) {
    const SeenJob& job = record->seen;
    if (is_at_rest(job)) return false;
    if (job.job.succeeded + job.job.failed > 0) return true;
    return job.has_pods() ? std::nullopt : std::optional(false);
  }
  const GroupRecord* group = group_of(seen);
  if (group == nullptr) return std::nullopt;
  const auto is_over = [](const auto& pod) { return pod.second.seen.pod.terminal(); };
  if (std::ranges::any_of(group->pods, is_over)) return true;
  return has_begun(name, *group) ? std::nullopt : std::optional(false);
}

// Takes the quota back from one that has not begun, and whose Job is not what was admitted any more or cannot be
// started: what is stored says so first, and then the engine hears of it as of one that has come just now.
bool Desk::withdraw(const Name& name, WorkloadRecord& record, const quota::WorkloadStatus& status,
                    std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const JobRecord* job = job_of(seen);
  const GroupRecord* group = job == nullptr ? group_of(seen) : nullptr;
  const bool holds = status.phase != quota::WorkloadPhase::kPending && !is_leaving(status);
  const bool idle = job != nullptr ? is_at_rest(job->seen) : group != nullptr && !has_begun(name, *group);
  if (!holds || !idle || !seen.is("QuotaReserved")) return false;
  const bool going = job != nullptr && job->seen.job.metadata.deleted.has_value();
  const std::string unlike = going            ? std::string(kJobIsDeleted)
                             : job == nullptr ? ""
                                              : why_out_of_step(job->seen, seen);
  const char* reason = unlike.empty() ? "FailedToStart" : "NoMatchingWorkload";
  const std::string& why = unlike.empty() ? record.held : unlike;
  if (why.empty()) return false;
  Wanted wanted{.conditions = seen.conditions,
                .admission = std::nullopt,
                .wall = wall_,
                .generation = seen.workload.metadata.generation};
  wanted.set("Evicted", true, reason, why);
  wanted.set("QuotaReserved", false, "Pending", why);
  wanted.set_not_admitted();
  say_requeue(seen, status, wanted);
  Json body = {{"metadata", metadata_json(seen.workload.metadata)}, {"status", std::move(wanted.more)}};
  body["status"]["conditions"] = conditions_json(wanted.conditions);
  body["status"]["admission"] = nullptr;
  Write write{.kind = Write::Kind::kPatchStatus,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = body.dump(-1, ' ', false, Json::error_handler_t::replace)};
  write.notes = {note_of(seen.workload.metadata, "Workload", std::string("EvictedDueTo") + reason, why)};
  if (send(record.lane, std::move(write), writes)) record.withdrawn = true;
  else if (!record.lane.busy) dirty_workloads_.insert(name);
  return true;
}

// The server would not have a Workload: whoever it was for hears so once it is no passing trouble.
void Desk::hear_of_workload(const Answer& answer) {
  const Name name{answer.write.namespace_name, answer.write.name};
  const bool passes = answer.http_status == 404 || answer.http_status == 409 || answer.http_status == 429;
  const std::string text = "its Workload cannot be made, which is tried again: " + answer.error;
  const auto count = [&](int& unmade) {
    if (answer.stored) unmade = 0;
    else if (!passes) ++unmade;
    return unmade >= kUnmadeMax;
  };
  if (answer.write.party == Write::Party::kJob) {
    JobRecord& job = jobs_.at(name);
    if (count(job.unmade)) tell(job, "ErrWorkloadCompose", text);
    return;
  }
  GroupRecord& group = groups_.at(name);
  if (count(group.unmade) && std::exchange(group.told, text) != text)
    notes_.push_back(note_of(group.pods.begin()->second.seen.pod.metadata, "Pod", "ErrWorkloadCompose", text, true));
}

// How the start of a Job ended. One that the server refuses again and again gives its quota to others.
void Desk::hear_of_start(JobRecord& record, const Answer& answer) {
  if (!std::exchange(record.starting, false)) return;
  if (answer.stored) record.refusals = record.given_up = 0;
  else if (answer.http_status == 422 || answer.http_status == 403 || answer.http_status == 400)
    refuse(record, answer.error, false);
}

// The Job cannot be started. `for_good`: the next time it would be the same; else that counts. One that is given up
// waits out of its queue for a while, or until the Job changes.
void Desk::refuse(JobRecord& record, const std::string& why, bool for_good) {
  const auto known = workload_of_owner_.find(record.seen.job.metadata.uid);
  if (known == workload_of_owner_.end()) return;
  WorkloadRecord& workload = workloads_.at(known->second);
  const std::string text = "Error starting the Job: " + why;
  notes_.push_back(note_of(record.seen.job.metadata, "Job", "FailedToStart", text, true));
  notes_.push_back(note_of(workload.seen.workload.metadata, "Workload", "FailedToStart", text, true));
  if (++record.refusals < kRefusalsMax && !for_good) return;
  Duration pause = kHoldMin;
  for (int i = 0; i < record.given_up && pause < kHoldMax; ++i) pause = pause + pause;
  pause = std::min(pause, kHoldMax);
  record.refusals = 0;
  ++record.given_up;
  workload.held =
      fmt::format("{}; it is tried again at {}, or when the Job changes", text, format_rfc3339(wall_ + pause));
  workload.held_until = now_ + pause;
  dirty_workloads_.insert(known->second);
}

// True: it is not to be admitted. When the time is over the engine hears so.
bool Desk::is_held(WorkloadRecord& record) {
  if (record.held.empty() || record.held_until > now_ || record.seen.is("QuotaReserved")) return !record.held.empty();
  record.held.clear();
  tell_engine(record);
  return false;
}

// The Job has changed: it may start now.
void Desk::end_hold(JobRecord& record) {
  record.refusals = record.given_up = 0;
  const auto known = workload_of_owner_.find(record.seen.job.metadata.uid);
  if (known == workload_of_owner_.end()) return;
  WorkloadRecord& workload = workloads_.at(known->second);
  if (workload.held.empty()) return;
  workload.held.clear();
  if (workload.in_engine && !workload.ended) tell_engine(workload);
}

}  // namespace berth::queueing
