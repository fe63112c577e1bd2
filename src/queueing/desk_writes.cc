// The part of Desk that says what is to be written.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/kueue_names.h"
#include "model/quantity.h"
#include "queueing/desk.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::ordered_json;

Json metadata_json(const api::ObjectMeta& metadata) {
  return {{"uid", metadata.uid}, {"resourceVersion", metadata.resource_version}};
}

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

// As it is stored: of flavors, how good a choice they were is not.
bool same(const std::optional<StoredAdmission>& a, const std::optional<StoredAdmission>& b) {
  return a.has_value() == b.has_value() && (!a || admission_json(*a) == admission_json(*b));
}

Json toleration_json(const model::Toleration& toleration) {
  constexpr std::string_view kOperators[] = {"Equal", "Exists", "Lt", "Gt"};
  Json out = {{"operator", kOperators[static_cast<size_t>(toleration.op)]}};
  if (!toleration.key.empty()) out["key"] = toleration.key;
  if (!toleration.value.empty()) out["value"] = toleration.value;
  if (!toleration.any_effect) out["effect"] = model::to_string(toleration.effect);
  return out;
}

// The value at a path of a template; null without it.
Json at_path(const Json& object, std::initializer_list<const char*> path) {
  const Json* at = &object;
  for (const char* key : path) {
    const auto next = at->is_object() ? at->find(key) : at->end();
    if (next == at->end()) return {};
    at = &*next;
  }
  return *at;
}

// A merge patch that makes an object of texts into another: what goes is null.
Json changes(const Json& from, const Json& to) {
  Json out = Json::object();
  for (const auto& [key, value] : from.items())
    if (!to.is_object() || !to.contains(key)) out[key] = nullptr;
  for (const auto& [key, value] : to.items())
    if (!from.is_object() || !from.contains(key) || from[key] != value) out[key] = value;
  return out;
}

bool is_injected(const api::Job& job) {
  return job.pod_template.metadata.annotation(api::kWorkloadAnnotation) != nullptr;
}

Note note_of(const api::ObjectMeta& metadata, const char* kind, std::string reason, std::string text,
             bool warning = false) {
  return {kind, metadata.namespace_name, metadata.name, metadata.uid, std::move(reason), std::move(text), warning};
}

bool is_leaving(const quota::WorkloadStatus& status) {
  return status.phase == quota::WorkloadPhase::kAdmitted && !status.evicted.empty();
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

void Desk::look_at(const Name& name, WorkloadRecord& record, const quota::Admission& admission,
                   std::vector<Write>& writes) {
  const SeenWorkload& seen = record.seen;
  const quota::WorkloadId id = admission.find(seen.workload.metadata.uid);
  if (!id.valid() || record.ended || seen.workload.metadata.deleted) return;
  const quota::WorkloadStatus& status = admission.status(id);
  const JobRecord* job = job_of(seen);
  Wanted wanted{.conditions = seen.conditions,
                .admission = seen.admission,
                .wall = wall_,
                .generation = seen.workload.metadata.generation};
  Write write{.kind = Write::Kind::kPatchStatus, .namespace_name = name.first, .name = name.second, .body = {}};
  if (job != nullptr && !job->seen.finished.empty()) {
    wanted.set("Finished", true, job->seen.finished, job->seen.how_finished);
    write.notes.push_back(note_of(seen.workload.metadata, "Workload", "FinishedWorkload", "The Job has finished"));
  } else if (is_leaving(status)) {
    say_evicted(status, record.evicted_by ? &*record.evicted_by : nullptr, seen, wanted, write.notes);
    if (job == nullptr && seen.is("Evicted") && !std::exchange(record.released, true))  // nothing runs for it
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
  const int32_t reclaimable = job == nullptr ? 0 : workloads::reclaimable(job->seen.job, job->seen.job.succeeded);
  const bool reclaims = reclaimable > seen.workload.pod_sets.front().reclaimable && job->seen.finished.empty();
  if (wanted.conditions == seen.conditions && same_admission && !reclaims) return;
  if (wanted.text_only && same_admission && !reclaims && record.told_at + told_every_ > now_) {
    wakeup_ = std::min(wakeup_.value_or(record.told_at + told_every_), record.told_at + told_every_);
    return;
  }
  if (!may_write(record.lane)) return;
  Json conditions = Json::array();
  for (const StoredCondition& one : wanted.conditions) {
    Json condition = {{"type", one.type}, {"status", one.status}, {"lastTransitionTime", one.since}};
    condition["reason"] = one.reason;
    condition["message"] = one.message;
    if (one.observed_generation > 0) condition["observedGeneration"] = one.observed_generation;
    conditions.push_back(std::move(condition));
  }
  Json body = {{"metadata", metadata_json(seen.workload.metadata)},
               {"status", {{"conditions", std::move(conditions)}}}};
  if (!same_admission) body["status"]["admission"] = wanted.admission ? admission_json(*wanted.admission) : Json();
  if (reclaims)
    body["status"]["reclaimablePods"] =
        Json::array({{{"name", seen.workload.pod_sets.front().name}, {"count", reclaimable}}});
  write.body = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  record.told_at = now_;
  record.lane.busy = true;
  writes.push_back(std::move(write));
}

// A Workload for the Job; nothing while its priority class is not known.
std::optional<Write> Desk::create_workload(const SeenJob& job) const {
  api::Workload workload = workloads::workload_of(job.job);
  workload.metadata.labels.set("kueue.x-k8s.io/job-uid", job.job.metadata.uid);
  std::optional<std::string> priority_class;
  const std::string& of_pods = job.job.pod_template.spec.priority_class_name;
  if (const std::string* label = job.job.metadata.labels.find(api::kPriorityClassLabel); label != nullptr) {
    const auto known = queue_priorities_.find(*label);
    if (known == queue_priorities_.end()) return std::nullopt;
    priority_class = *label;
    workload.priority = known->second;
  } else if (const auto known = pod_priorities_.find(of_pods); known != pod_priorities_.end()) {
    workload.priority = known->second;
  }
  return Write{.kind = Write::Kind::kCreateWorkload,
               .namespace_name = job.job.metadata.namespace_name,
               .name = job.job.metadata.name,
               .body = workload_json(workload, job.pod_template, priority_class),
               .notes = {note_of(
                   job.job.metadata, "Job", "CreatedWorkload",
                   fmt::format("Created Workload: {}/{}", job.job.metadata.namespace_name, workload.metadata.name))}};
}

namespace {

// Lets the Job's pods come, as they were admitted.
Write start(const SeenJob& seen, const SeenWorkload& workload, const quota::Admission& admission) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  const quota::PodSetAssignment& given = workload.admission->pod_sets.front();
  const quota::FlavorTerms terms = quota::terms_of(given, admission.flavors());
  const Json before = Json::parse(seen.pod_template);
  Json selector = Json::object(), tolerations = at_path(before, {"spec", "tolerations"});
  for (const auto& [key, value] : terms.node_labels) selector[key] = value;
  Json added = Json::array();
  if (tolerations.is_array()) added = tolerations;
  for (const model::Toleration& toleration : terms.tolerations)
    if (Json one = toleration_json(toleration); std::ranges::find(added, one) == added.end())
      added.push_back(std::move(one));
  Json pod_template = {{"metadata",
                        {{"annotations", {{std::string(api::kWorkloadAnnotation), workload.workload.metadata.name}}},
                         {"labels", {{std::string(api::kPodSetLabel), given.name}}}}}};
  if (!selector.empty()) pod_template["spec"]["nodeSelector"] = std::move(selector);
  if (!added.empty()) pod_template["spec"]["tolerations"] = std::move(added);
  Json spec = {{"suspend", false}, {"template", std::move(pod_template)}};
  if (given.count < workload.workload.pod_sets.front().count) spec["parallelism"] = given.count;
  return {
      .kind = Write::Kind::kPatchJob,
      .namespace_name = metadata.namespace_name,
      .name = metadata.name,
      .body = Json{{"metadata", metadata_json(metadata)}, {"spec", std::move(spec)}}.dump(),
      .notes = {note_of(metadata, "Job", "Started", "Admitted by clusterQueue " + workload.admission->cluster_queue)}};
}

Write stop(const SeenJob& seen, const std::string& why) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  return {.kind = Write::Kind::kPatchJob,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = Json{{"metadata", metadata_json(metadata)}, {"spec", {{"suspend", true}}}}.dump(),
          .notes = {note_of(metadata, "Job", "Stopped", why)}};
}

// The server lets the template of a suspended Job be changed only where it has no start time, which the Job controller
// leaves there.
Write forget_start(const SeenJob& seen) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  return {.kind = Write::Kind::kPatchJobStatus,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = Json{{"metadata", metadata_json(metadata)}, {"status", {{"startTime", nullptr}}}}.dump()};
}

// Makes the template what it was when its Workload was made.
Write restore(const SeenJob& seen, const SeenWorkload& workload) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  const Json now = Json::parse(seen.pod_template), was = Json::parse(workload.templates.front());
  Json pod_template = Json::object();
  for (const auto& path :
       {std::pair("metadata", "annotations"), std::pair("metadata", "labels"), std::pair("spec", "nodeSelector")})
    if (Json change = changes(at_path(now, {path.first, path.second}), at_path(was, {path.first, path.second}));
        !change.empty())
      pod_template[path.first][path.second] = std::move(change);
  if (const Json before = at_path(was, {"spec", "tolerations"}); before != at_path(now, {"spec", "tolerations"}))
    pod_template["spec"]["tolerations"] = before;
  Json spec = {{"template", std::move(pod_template)}};
  const int32_t pods = workload.workload.pod_sets.front().count;
  if (seen.job.parallelism.value_or(1) < pods) spec["parallelism"] = pods;
  return {.kind = Write::Kind::kPatchJob,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = Json{{"metadata", metadata_json(metadata)}, {"spec", std::move(spec)}}.dump()};
}

}  // namespace

void Desk::look_at(const Name& name, JobRecord& record, const quota::Admission& admission, std::vector<Write>& writes) {
  const SeenJob& seen = record.seen;
  if (!managed(seen.job) || !seen.finished.empty() || seen.job.metadata.deleted) return;
  const auto send = [&](std::optional<Write> write) {
    if (!write || !may_write(record.lane)) {
      if (write && !record.lane.busy) dirty_jobs_.insert(name);
      return;
    }
    record.lane.busy = true;
    writes.push_back(std::move(*write));
  };
  const WorkloadRecord* workload = workload_of(seen);
  if (workload == nullptr) {
    if (!seen.job.suspend) return send(stop(seen, "Missing Workload; unable to restore pod templates"));
    return send(create_workload(seen));
  }
  const SeenWorkload& stored = workload->seen;
  const quota::WorkloadId id = admission.find(stored.workload.metadata.uid);
  if (!id.valid() || workload->ended) return;
  const quota::WorkloadStatus& status = admission.status(id);
  const bool leaving = is_leaving(status);
  if (status.phase == quota::WorkloadPhase::kAdmitted && !leaving) {
    const bool told = stored.is("Admitted") && stored.admission && !stored.is("Evicted");
    if (told && seen.job.suspend) send(start(seen, stored, admission));
    return;
  }
  if (!seen.job.suspend) {
    if (leaving && !stored.is("Evicted")) return;  // people hear first why
    const StoredCondition* evicted = stored.condition("Evicted");
    return send(stop(seen, leaving ? evicted->message : "Not admitted by cluster queue"));
  }
  if (seen.job.active > 0) return;  // its pods are still there
  if (seen.started) return send(forget_start(seen));
  if (is_injected(seen.job)) return send(restore(seen, stored));
  if (leaving && !std::exchange(workloads_.at(workload_of_owner_.at(seen.job.metadata.uid)).released, true))
    events_.emplace_back(engine::WorkloadReleased{stored.workload.metadata.uid});
}

}  // namespace berth::queueing
