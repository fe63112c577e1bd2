// The part of Desk that says what the status of a Workload is to be.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "model/quantity.h"
#include "queueing/write_json.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

Json admission_json(const StoredAdmission& admission) {
  Json sets = Json::array();
  for (const quota::PodSetAssignment& set : admission.pod_sets) {
    Json flavors = Json::object(), usage = Json::object();
    for (const auto& [resource, pick] : set.flavors) flavors[resource] = pick.flavor;
    for (const auto& [resource, amount] : set.usage) usage[resource] = model::format_resource(resource, amount);
    sets.push_back({{"name", set.name}, {"flavors", flavors}, {"resourceUsage", usage}, {"count", set.count}});
  }
  return {{"clusterQueue", admission.cluster_queue}, {"podSetAssignments", std::move(sets)}};
}

Json conditions_json(const std::vector<StoredCondition>& conditions) {
  Json out = Json::array();
  for (const StoredCondition& one : conditions) {
    Json condition = {{"type", one.type}, {"status", one.status}, {"lastTransitionTime", one.since}};
    condition["reason"] = one.reason;
    condition["message"] = one.message;
    if (one.observed_generation > 0) condition["observedGeneration"] = one.observed_generation;
    out.push_back(std::move(condition));
  }
  return out;
}

// As it is stored: of flavors, how good a choice they were is not.
bool same(const std::optional<StoredAdmission>& a, const std::optional<StoredAdmission>& b) {
  return a.has_value() == b.has_value() && (!a || admission_json(*a) == admission_json(*b));
}

}  // namespace

struct Desk::Wanted {
  std::vector<StoredCondition> conditions;
  std::optional<StoredAdmission> admission;
  int32_t reclaimable = 0;
  bool text_only = true;  // nothing but the reason why it waits differs from what is stored
  Time wall;
  int64_t generation = 0;

  void set(const std::string& type, bool is_true, std::string reason, std::string message, bool of_waiting = false) {
    auto at = std::ranges::find(conditions, type, &StoredCondition::type);
    if (at == conditions.end()) {
      at = conditions.emplace(at);
      at->type = type;
    }
    const std::string status = is_true ? "True" : "False";
    if (at->status == status && at->reason == reason && at->message == message) return;
    text_only &= of_waiting && at->status == status;
    if (at->status != status) at->since = format_rfc3339(wall);
    at->status = status;
    at->reason = std::move(reason);
    at->message = std::move(message);
    at->observed_generation = generation;
  }
  // A condition that was true is so no longer; where it never was, nothing is said.
  void unset(const std::string& type, const std::string& reason, const std::string& message) {
    const auto at = std::ranges::find(conditions, type, &StoredCondition::type);
    if (at != conditions.end() && at->status == "True") set(type, false, reason, message);
  }
};

namespace {

// The conditions of one that is let in, has to go, or waits; and events for what is new.
template <typename Wanted>
void say_admitted(const quota::WorkloadStatus& status, const SeenWorkload& seen, Wanted& wanted,
                  std::vector<Note>& notes) {
  const std::string queue = status.cluster_queue;
  if (!seen.is("QuotaReserved"))
    notes.push_back(note_of(seen.workload.metadata, "Workload", "QuotaReserved",
                            fmt::format("Quota reserved in ClusterQueue {}", queue)));
  if (!seen.is("Admitted"))
    notes.push_back(
        note_of(seen.workload.metadata, "Workload", "Admitted", fmt::format("Admitted by ClusterQueue {}", queue)));
  wanted.set("QuotaReserved", true, "QuotaReserved", fmt::format("Quota reserved in ClusterQueue {}", queue));
  wanted.set("Admitted", true, "Admitted", "The workload is admitted");
  for (const char* type : {"Evicted", "Preempted"})
    if (const StoredCondition* known = seen.condition(type); known != nullptr)
      wanted.unset(type, "QuotaReserved", "Previously: " + known->message);
}

template <typename Wanted>
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

template <typename Wanted>
void say_waiting(const quota::WorkloadStatus& status, const SeenWorkload& seen, Wanted& wanted,
                 std::vector<Note>& notes) {
  const std::string reason = status.reason.empty() ? "Pending" : status.reason;
  const StoredCondition* known = seen.condition("QuotaReserved");
  if (known == nullptr || known->status == "True" || known->reason != reason)
    notes.push_back(note_of(seen.workload.metadata, "Workload", "Pending", status.message, true));
  wanted.set("QuotaReserved", false, reason, status.message, true);
  wanted.unset("Admitted", "NoReservation", "The workload has no reservation");
  if (seen.is("Evicted")) wanted.set("Requeued", true, seen.condition("Evicted")->reason, "The workload waits again");
}

}  // namespace

// How what the Workload stands for has ended; empty: it has not.
workloads::GroupEnd Desk::end_of(const SeenWorkload& seen, const JobRecord* job, const GroupRecord* group) {
  if (job != nullptr) return {job->seen.finished, job->seen.how_finished};
  if (group == nullptr) return {};
  std::vector<const api::Pod*> pods;
  for (const auto& [name, pod] : group->pods) pods.push_back(&pod.seen.pod);
  int32_t total = 0;
  for (const api::WorkloadPodSet& set : seen.workload.pod_sets) total += set.count;
  return workloads::end_of_group(pods, total);
}

// By pod set, how many pods are needed no more; empty: what is stored says so already.
std::vector<int32_t> Desk::reclaimable_of(const SeenWorkload& seen, const JobRecord* job, const GroupRecord* group) {
  std::vector<int32_t> out;
  bool more = false;
  for (const api::WorkloadPodSet& set : seen.workload.pod_sets) {
    int32_t now = job != nullptr ? workloads::reclaimable(job->seen.job, job->seen.job.succeeded) : 0;
    if (group != nullptr && seen.workload.metadata.annotation(api::kIsGroupAnnotation) != nullptr)
      for (const auto& [name, pod] : group->pods)
        now +=
            pod.seen.pod.status.phase == "Succeeded" && workloads::is_of_set(pod.seen.pod, seen.workload, set) ? 1 : 0;
    out.push_back(std::max(now, set.reclaimable));
    more |= now > set.reclaimable;
  }
  return more ? out : std::vector<int32_t>();
}

// One that was evicted for good waits no more, until somebody makes it active again. People have heard why by then.
void Desk::deactivate(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  if (!seen.workload.active || !seen.condition("Evicted")->reason.starts_with("DeactivatedDueTo")) return;
  const Json body = {{"metadata", metadata_json(seen.workload.metadata)}, {"spec", {{"active", false}}}};
  Write write{.kind = Write::Kind::kPatchWorkload,
              .party = Write::Party::kWorkload,
              .namespace_name = name.first,
              .name = name.second,
              .body = body.dump()};
  if (!send(record.lane, std::move(write), writes) && !record.lane.busy) dirty_workloads_.insert(name);
}

void Desk::look_at(const Name& name, WorkloadRecord& record, const quota::Admission& admission,
                   std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const quota::WorkloadId id = admission.find(seen.workload.metadata.uid);
  if (!id.valid() || record.ended || seen.workload.metadata.deleted) return;
  const quota::WorkloadStatus& status = admission.status(id);
  const JobRecord* job = job_of(seen);
  const GroupRecord* group = group_of(seen);
  if (job == nullptr && group == nullptr && workloads::is_of_pods(seen.workload)) {
    record.ended = true;  // the garbage collector is about to take it
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
  const workloads::GroupEnd end = end_of(seen, job, group);
  std::optional<int64_t> past_s;  // in terms that are over, once this one is
  if (!end.reason.empty()) {
    wanted.set("Finished", true, end.reason, end.message);
    write.notes.push_back(note_of(seen.workload.metadata, "Workload", "FinishedWorkload",
                                  job != nullptr ? "The Job has finished" : "The pods have finished"));
  } else if (is_leaving(status)) {
    say_evicted(status, record.evicted_by ? &*record.evicted_by : nullptr, seen, wanted, write.notes);
    if (seen.is("Evicted")) deactivate(name, record, writes);
    if (!seen.is("Evicted") && seen.workload.max_execution_s)
      past_s = seen.workload.past_execution_s + seen.admitted_for(wall_).nanos / Duration::seconds(1).nanos;
    if (job == nullptr && group == nullptr && seen.is("Evicted") &&
        !std::exchange(record.released, true))  // nothing runs for it
      events_.emplace_back(engine::WorkloadReleased{seen.workload.metadata.uid});
  } else if (status.phase == quota::WorkloadPhase::kAdmitted) {
    wanted.admission = StoredAdmission{status.cluster_queue, status.assignment};
    say_admitted(status, seen, wanted, write.notes);
  } else if (status.reason.empty()) {
    return;  // nobody has looked at it yet
  } else {
    wanted.admission.reset();
    say_waiting(status, seen, wanted, write.notes);
  }
  const bool same_admission = same(wanted.admission, seen.admission);
  const std::vector<int32_t> reclaimable =
      end.reason.empty() ? reclaimable_of(seen, job, group) : std::vector<int32_t>();
  const bool reclaims = !reclaimable.empty();
  if (wanted.conditions == seen.conditions && same_admission && !reclaims) return;
  if (wanted.text_only && same_admission && !reclaims && record.told_at + told_every_ > now_) {
    wakeup_ = std::min(wakeup_.value_or(record.told_at + told_every_), record.told_at + told_every_);
    return;
  }
  if (!may_write(record.lane)) return;
  Json body = {{"metadata", metadata_json(seen.workload.metadata)},
               {"status", {{"conditions", conditions_json(wanted.conditions)}}}};
  if (!same_admission) body["status"]["admission"] = wanted.admission ? admission_json(*wanted.admission) : Json();
  if (past_s) body["status"]["accumulatedPastExecutionTimeSeconds"] = *past_s;
  for (size_t i = 0; i < reclaimable.size(); ++i)
    if (reclaimable[i] > 0)
      body["status"]["reclaimablePods"].push_back(
          {{"name", seen.workload.pod_sets[i].name}, {"count", reclaimable[i]}});
  write.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  record.told_at = now_;
  send(record.lane, std::move(write), writes);
}

}  // namespace berth::queueing
