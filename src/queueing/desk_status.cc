// The part of Desk that says what the status of a Workload is to be.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "model/quantity.h"
#include "queueing/step.h"
#include "queueing/wanted.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

constexpr const char* kOwnerNotFound = "OwnerNotFound";

Json admission_json(const StoredAdmission& admission) {
  Json sets = Json::array();
  for (const quota::PodSetAssignment& set : admission.pod_sets) {
    Json flavors = Json::object(), usage = Json::object();
    for (const auto& [resource, pick] : set.flavors) flavors[resource] = pick.flavor;
    for (const auto& [resource, amount] : set.usage) usage[resource] = model::format_quota(resource, amount);
    sets.push_back({{"name", set.name}, {"flavors", flavors}, {"resourceUsage", usage}, {"count", set.count}});
  }
  return {{"clusterQueue", admission.cluster_queue}, {"podSetAssignments", std::move(sets)}};
}

Json reclaimable_json(const api::Workload& workload, const std::vector<int32_t>& unneeded) {
  Json out = Json::array();
  for (size_t i = 0; i < unneeded.size(); ++i)
    if (unneeded[i] > 0) out.push_back({{"name", workload.pod_sets[i].name}, {"count", unneeded[i]}});
  return out;
}

int32_t succeeded_of(const GroupRecord& group, const api::Workload& workload, const api::WorkloadPodSet& set) {
  return static_cast<int32_t>(std::ranges::count_if(group.pods, [&](const auto& each) {
    const api::Pod& pod = each.second.seen.pod;
    return pod.status.phase == "Succeeded" && workloads::is_of_set(pod, workload, set);
  }));
}

// As it is stored: of flavors, how good a choice they were is not.
bool same(const std::optional<StoredAdmission>& a, const std::optional<StoredAdmission>& b) {
  return a.has_value() == b.has_value() && (!a || admission_json(*a) == admission_json(*b));
}

// Of one that was evicted, and is in its queue again: why it is, in Kueue's words. Who is made active again has all of
// its time once more.
void say_requeued(const SeenWorkload& seen, Wanted& wanted) {
  const std::string &evicted = seen.condition("Evicted")->reason, &message = seen.condition("Evicted")->message;
  if (evicted.starts_with("Deactivated")) {
    if (seen.workload.past_execution_s > 0) wanted.change("accumulatedPastExecutionTimeSeconds", nullptr);
    return wanted.set("Requeued", true, "Reactivated", "The workload was reactivated");
  }
  if (evicted == quota::kPodsReadyTimeout || evicted == quota::kCheckEviction)
    return wanted.set("Requeued", true, "BackoffFinished", "The workload backoff was finished");
  for (const std::string queue : {"ClusterQueue", "LocalQueue"})
    if (evicted == queue + "Stopped")
      return wanted.set("Requeued", true, queue + "Restarted", "The " + queue + " was restarted after being stopped");
  wanted.set("Requeued", true, evicted, message);
}

bool backs_off(const quota::WorkloadStatus& status, Time now) { return status.requeue_at && *status.requeue_at > now; }

// It is not back in its queue: it backs off, is not to wait at all, or its queue is stopped still.
bool stays_out(const quota::WorkloadStatus& status, const std::string& evicted, Time now) {
  const std::string& reason = status.reason;
  const bool held_back = reason == "Deactivated" || reason == "Suspended" || reason == quota::kBudgetSpent;
  return reason == evicted || held_back || backs_off(status, now);
}

// What status.requeueState tells of a time that is over goes.
void say_backed_off(const SeenWorkload& seen, const quota::WorkloadStatus& status, Time now, Wanted& wanted) {
  if (!seen.requeue || backs_off(status, now)) return;
  if (status.requeues == 0) wanted.change("requeueState", nullptr);
  else if (seen.requeue->at) wanted.change("requeueState", {{"count", status.requeues}, {"requeueAt", nullptr}});
}

// The conditions of one that has quota, is let in, has to go, or waits; and events for what is new.
void say_reserved(const quota::WorkloadStatus& status, const SeenWorkload& seen, Wanted& wanted,
                  std::vector<Note>& notes) {
  const std::string text = "Quota reserved in ClusterQueue " + status.cluster_queue;
  if (!seen.is("QuotaReserved")) notes.push_back(note_of(seen.workload.metadata, "Workload", "QuotaReserved", text));
  wanted.set("QuotaReserved", true, "QuotaReserved", text);
  if (seen.is("Evicted")) say_requeued(seen, wanted);
  for (const char* type : {"Evicted", "Preempted"})
    if (const StoredCondition* known = seen.condition(type); known != nullptr)
      wanted.unset(type, "QuotaReserved", "Previously: " + known->message);
  if (status.lent_room)
    wanted.set(kRoomLent, true, "Backfilled",
               "It has room that is kept for others, and is the first to leave if it runs for longer than it declares");
  else wanted.unset(kRoomLent, "QuotaReserved", "It has room of its own");
  if (status.phase != quota::WorkloadPhase::kAdmitted)
    return wanted.set("Admitted", false, status.reason.empty() ? "UnsatisfiedChecks" : status.reason, status.message,
                      true);
  if (!seen.is("Admitted"))
    notes.push_back(
        note_of(seen.workload.metadata, "Workload", "Admitted", "Admitted by ClusterQueue " + status.cluster_queue));
  wanted.set("Admitted", true, "Admitted", "The workload is admitted");
}

void say_evicted(const quota::WorkloadStatus& status, const quota::AdmissionDecision* by, const SeenWorkload& seen,
                 Wanted& wanted, std::vector<Note>& notes) {
  std::string text = by != nullptr ? by->message : "The workload is evicted: " + status.evicted;
  if (by != nullptr && !by->preemption.empty())
    text += fmt::format(" due to {}; preemptor path: {}; preemptee path: {}", by->preemption, by->preemptor_path,
                        by->preemptee_path);
  if (seen.is("Evicted") && by == nullptr) return;  // an earlier term has said so, and knew for whom
  if (!seen.is("Evicted"))
    notes.push_back(note_of(seen.workload.metadata, "Workload", "EvictedDueTo" + status.evicted, text));
  wanted.set("Evicted", true, status.evicted, text);
  if (status.preempted.empty()) return;
  if (!seen.is("Preempted")) notes.push_back(note_of(seen.workload.metadata, "Workload", "Preempted", text));
  wanted.set("Preempted", true, status.preempted, text);
}

// `held`: its Job could not be started, and it is out of its queue for a while.
void say_waiting(const quota::WorkloadStatus& status, const SeenWorkload& seen, bool held, Time now, Wanted& wanted,
                 std::vector<Note>& notes) {
  const std::string reason = status.reason.empty() ? "Pending" : status.reason;
  const StoredCondition* known = seen.condition("QuotaReserved");
  if (known == nullptr || known->status == "True" || known->reason != reason)
    notes.push_back(note_of(seen.workload.metadata, "Workload", "Pending", status.message, true));
  wanted.set("QuotaReserved", false, reason, status.message, true);
  wanted.set_not_admitted();
  if (!seen.is("Evicted")) return;
  const StoredCondition& evicted = *seen.condition("Evicted");
  if (held || stays_out(status, evicted.reason, now)) wanted.set("Requeued", false, evicted.reason, evicted.message);
  else say_requeued(seen, wanted);
}

// It has no quota any more.
void say_free(const std::string& why, Wanted& wanted) {
  wanted.set("QuotaReserved", false, "Pending", why);
  wanted.set_not_admitted();
  wanted.admission.reset();
}

constexpr const char* kWaitsForReplacement = "WaitingForReplacementPods";

// Of a group, as Kueue says it.
void say_replacement(const WorkloadRecord& record, Wanted& wanted) {
  const StoredCondition* evicted = record.seen.is("Evicted") ? record.seen.condition("Evicted") : nullptr;
  if (record.lacks.empty()) wanted.unset(kWaitsForReplacement, "PodsReady", "No pods need replacement");
  else if (evicted != nullptr) wanted.set(kWaitsForReplacement, true, evicted->reason, evicted->message);
  else wanted.set(kWaitsForReplacement, true, "PodsFailed", "Some Failed pods need replacement");
}

}  // namespace

// How what the Workload stands for has ended; empty: it has not.
workloads::GroupEnd Desk::end_of(const SeenWorkload& seen, const JobRecord* job, const GroupRecord* group) {
  if (job != nullptr) return {job->seen.finished, job->seen.how_finished};
  if (group == nullptr || !seen.problem.empty()) return {};
  std::vector<const api::Pod*> pods;
  for (const auto& [name, pod] : group->pods) pods.push_back(&pod.seen.pod);
  int32_t total = 0;
  for (const api::WorkloadPodSet& set : seen.workload.pod_sets) total += set.count;
  return workloads::end_of_group(pods, total);
}

// By pod set, how many pods are needed no more; empty: what is stored says so already.
std::vector<int32_t> Desk::reclaimable_of(WorkloadRecord& record, const JobRecord* job, const GroupRecord* group) {
  const SeenWorkload& seen = record.seen;
  if (job == nullptr && !workloads::is_of_pods(seen.workload)) return {};  // whoever made it says that
  const bool counts = group != nullptr && seen.workload.metadata.annotation(api::kIsGroupAnnotation) != nullptr;
  std::vector<int32_t> out;
  bool differs = false;
  for (size_t i = 0; i < seen.workload.pod_sets.size(); ++i) {
    const api::WorkloadPodSet& set = seen.workload.pod_sets[i];
    if (job != nullptr) {
      out.push_back(workloads::reclaimable(job->seen.job, set.count, job->seen.job.succeeded));
    } else {  // a pod that has succeeded may be deleted then
      const int32_t now = counts ? succeeded_of(*group, seen.workload, set) : 0;
      out.push_back(record.unneeded[i] = std::max(now, record.unneeded[i]));
    }
    differs |= out.back() != set.reclaimable;
  }
  return differs ? out : std::vector<int32_t>();
}

// One that was evicted for good waits no more, until somebody makes it active again, if only while it leaves. People
// have heard why by then.
void Desk::deactivate(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const StoredCondition& evicted = *seen.condition("Evicted");
  if (!evicted.reason.starts_with("DeactivatedDueTo")) return;
  if (!seen.workload.active) record.inactive_since = evicted.since;
  if (!seen.workload.active || record.inactive_since == evicted.since) return;
  const Json body = {{"metadata", metadata_json(seen.workload.metadata)}, {"spec", {{"active", false}}}};
  Write write{.kind = Write::Kind::kPatchWorkload,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = body.dump()};
  if (!send(record.lane, std::move(write), writes) && !record.lane.busy) dirty_workloads_.insert(name);
}

// Whoever the workload stands for has gone for good: the garbage collector is about to take it.
bool Desk::is_orphan(const WorkloadRecord& record) const {
  const SeenWorkload& seen = record.seen;
  return workloads::is_of_pods(seen.workload) && job_of(seen) == nullptr && group_of(seen) == nullptr &&
         !outlasts_pods(seen);
}

// Its Job is gone, and was told to leave what belongs to it (--cascade=orphan): nobody is about to take it.
bool Desk::has_lost_job(const SeenWorkload& seen) const {
  const std::string* job = seen.workload.metadata.labels.find(kJobUidLabel);
  return job != nullptr && seen.workload.metadata.owners.empty() && !job_by_uid_.contains(*job);
}

// Says in `write` what people are to hear, and in `wanted` what the status is to be; false: nothing yet.
bool Desk::want(const Name& name, WorkloadRecord& record, const quota::WorkloadStatus& status,
                const workloads::GroupEnd& end, Wanted& wanted, std::vector<Note>& notes, std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const bool has_job = job_of(seen) != nullptr, alone = !has_job && group_of(seen) == nullptr;
  if (!end.reason.empty()) {
    wanted.set("Finished", true, end.reason, end.message);
    notes.push_back(note_of(seen.workload.metadata, "Workload", "FinishedWorkload",
                            end.reason == kOwnerNotFound ? end.message
                            : has_job                    ? "The Job has finished"
                                                         : "The pods have finished"));
    return true;
  }
  if (is_orphan(record)) {
    say_free("Its pods are gone", wanted);
    return true;
  }
  if (is_leaving(status)) {
    say_evicted(status, record.evicted_by ? &*record.evicted_by : nullptr, seen, wanted, notes);
    // What is stored says so, of this eviction, and nothing that says otherwise is on its way.
    const bool is_told =
        seen.is("Evicted") && *seen.condition("Evicted") == *wanted.condition("Evicted") && !record.lane.busy;
    if (is_told) deactivate(name, record, writes);
    else say_requeue(seen, status, wanted);
    record.told_ready = false;
    record.has_left |= alone;  // nothing runs for it
    if (record.has_left && is_told) give_back(name, record, wanted);
    return true;
  }
  say_backed_off(seen, status, now_, wanted);
  if (status.phase == quota::WorkloadPhase::kAdmitted || status.phase == quota::WorkloadPhase::kQuotaReserved) {
    wanted.admission = StoredAdmission{status.cluster_queue, status.assignment};
    say_reserved(status, seen, wanted, notes);
    follow_checks(record, status, wanted, notes);
    follow_readiness(record, status, wanted);
    say_replacement(record, wanted);
    return true;
  }
  record.told_ready = false;
  if (status.reason.empty()) return false;  // nobody has looked at it yet
  wanted.admission.reset();
  if (record.lacks.empty() || status.message != record.lacks) {
    say_waiting(status, seen, !record.held.empty(), now_, wanted, notes);
  } else {
    quota::WorkloadStatus lacks = status;
    lacks.reason = kWaitsForReplacement;
    say_waiting(lacks, seen, !record.held.empty(), now_, wanted, notes);
  }
  say_replacement(record, wanted);
  wanted.only_tells = !seen.is("Evicted");
  if (seen.is("Evicted") && status.reason == seen.condition("Evicted")->reason) deactivate(name, record, writes);
  return true;
}

// Whether anything runs still for one that was evicted, as those say that see it.
void Desk::say_left(const Name& name, bool left) {
  WorkloadRecord& record = workloads_.at(name);
  if (std::exchange(record.has_left, left) != left) dirty_workloads_.insert(name);
}

// Of one that was evicted, and for which nothing runs any more: what is stored says first that it has no quota, as of
// one that ends, and then the engine hears so. Others get the quota when nobody has it, and who gets it back at once
// has it since then.
void Desk::give_back(const Name& name, WorkloadRecord& record, Wanted& wanted) {
  const SeenWorkload& seen = record.seen;
  if (seen.is("QuotaReserved")) {
    say_free(seen.condition("Evicted")->message, wanted);
  } else if (!std::exchange(record.released, true)) {
    events_.emplace_back(engine::WorkloadReleased{seen.workload.metadata.uid});
    dirty_workloads_.insert(name);  // why it waits is not known yet
  }
}

// One that is being deleted stays until the Job that it stands for has stopped, and is as it was before it started; or
// until the pods of one that is gone are, too; or those pods that it was made for.
bool Desk::is_needed(const Name& name, const SeenWorkload& seen, const quota::Admission& admission) const {
  if (const GroupRecord* group = group_of(seen)) return !seen.is("Finished") && has_begun(name, *group);
  const JobRecord* job = job_of(seen);
  const quota::WorkloadId id = admission.find(seen.workload.metadata.uid);
  if ((job == nullptr || job->seen.job.metadata.deleted) && id.valid() &&
      seen.workload.metadata.labels.find(kJobUidLabel) != nullptr && !seen.is("Finished"))
    return !admission.pods(id).empty();
  const bool idle = job == nullptr || (is_at_rest(job->seen) && !job->lane.busy);  // its start may be on its way
  return !idle && job->seen.finished.empty() && !job->seen.job.metadata.deleted &&
         !workloads::queue_of(job->seen.job.metadata).empty() && other_of_owner(seen) == nullptr;
}

// Takes Kueue's finalizer off one that is being deleted.
void Desk::let_go(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  if (!record.seen.finalizer) return;
  Json metadata = metadata_json(record.seen.workload.metadata);
  metadata["finalizers"] = record.seen.finalizers;
  Write write{.kind = Write::Kind::kPatchWorkload,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = Json{{"metadata", std::move(metadata)}}.dump()};
  if (!send(record.lane, std::move(write), writes) && !record.lane.busy) dirty_workloads_.insert(name);
}

void Desk::look_at(const Name& name, WorkloadRecord& record, const quota::Admission& admission,
                   std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  if (seen.workload.metadata.deleted) {
    if (!is_needed(name, seen, admission)) let_go(name, record, writes);
    return;
  }
  const quota::WorkloadId id = admission.find(seen.workload.metadata.uid);
  if (!id.valid() || record.ended) return;
  if (is_orphan(record) && !seen.is("QuotaReserved")) {
    record.ended = true;
    events_.emplace_back(engine::WorkloadEnded{seen.workload.metadata.uid});
    return;
  }
  Wanted wanted{.conditions = seen.conditions,
                .admission = seen.admission,
                .wall = wall_,
                .generation = seen.workload.metadata.generation};
  Write write{.kind = Write::Kind::kPatchStatus,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = {}};
  const JobRecord* job = job_of(seen);
  const GroupRecord* group = group_of(seen);
  if (group != nullptr && group->lane.busy) return;  // it is being written for its pods
  const quota::WorkloadStatus& status = admission.status(id);
  if (is_held(record) && record.held_until > now_)
    wakeup_ = std::min(wakeup_.value_or(record.held_until), record.held_until);
  if (!is_leaving(status) && follow(name, record, writes)) return;
  // Decided before its pod sets were written, perhaps.
  if (!record.lane.busy && std::exchange(record.reshaped, false) && status.phase != quota::WorkloadPhase::kPending &&
      !seen.is("QuotaReserved"))
    return introduce_anew(record);
  if (!is_leaving(status) && is_abandoned(seen)) return abandon(name, record, writes);
  const workloads::GroupEnd end =
      has_lost_job(seen) ? workloads::GroupEnd{kOwnerNotFound, "The Job that it was made for is not there any more"}
                         : end_of(seen, job, group);
  if (end.reason.empty() && withdraw(name, record, status, writes)) return;
  if (!want(name, record, status, end, wanted, write.notes, writes)) return;
  if (const auto unneeded = end.reason.empty() ? reclaimable_of(record, job, group) : std::vector<int32_t>();
      !unneeded.empty())
    wanted.change("reclaimablePods", reclaimable_json(seen.workload, unneeded));
  const bool same_admission = same(wanted.admission, seen.admission);
  if (wanted.conditions == seen.conditions && same_admission && wanted.more.empty()) return;
  if (wanted.text_only && same_admission && record.told_at + told_every_ > now_) {
    wakeup_ = std::min(wakeup_.value_or(record.told_at + told_every_), record.told_at + told_every_);
    return;
  }
  if (!may_write(record.lane)) return;
  write.only_tells = wanted.only_tells && same_admission && wanted.more.empty();
  if (write.only_tells && tell_room_ == 0) {
    untold_workloads_.insert(name);
    return;
  }
  if (write.only_tells) --tell_room_;
  Json body = {{"metadata", metadata_json(seen.workload.metadata)}, {"status", std::move(wanted.more)}};
  body["status"]["conditions"] = conditions_json(wanted.conditions);
  if (!same_admission) body["status"]["admission"] = wanted.admission ? admission_json(*wanted.admission) : Json();
  write.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  const bool gives_back = seen.admission && !wanted.admission;  // why it waits is to be told next
  record.told_at = gives_back ? Time{INT64_MIN} : now_;
  send(record.lane, std::move(write), writes);
}

}  // namespace berth::queueing
