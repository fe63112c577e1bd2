// The part of Desk that makes Workloads for Jobs, and starts and stops these.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "api/patch.h"
#include "queueing/step.h"
#include "queueing/write_json.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

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

}  // namespace

// False: its priority class is not known.
bool Desk::set_priority(const api::ObjectMeta& metadata, const api::PodSpec& spec, api::Workload& workload,
                        std::optional<std::string>& priority_class) const {
  if (const std::string* label = metadata.labels.find(api::kPriorityClassLabel); label != nullptr) {
    const auto known = queue_priorities_.find(*label);
    if (known == queue_priorities_.end()) return false;
    priority_class = *label;
    workload.priority = known->second;
  } else if (const auto known = pod_priorities_.find(spec.priority_class_name); known != pod_priorities_.end()) {
    workload.priority = known->second;
  }
  return true;
}

// Says once why the Job has no Workload.
void Desk::tell(JobRecord& record, const char* reason, const std::string& text) {
  if (std::exchange(record.told, text) != text)
    notes_.push_back(note_of(record.seen.job.metadata, "Job", reason, text, true));
}

// Of one that has a Workload: what it says may have come to be wrong, or to name a class that is not there.
void Desk::tell_of_labels(JobRecord& record, const SeenWorkload& workload) {
  if (const std::string wrong = workload.is("QuotaReserved") ? "" : workloads::why_not_queued(record.seen.job);
      !wrong.empty())
    return tell(record, "ErrWorkloadCompose", wrong + std::string(kNotAdmittedUntil));
  const std::string* name = record.seen.job.metadata.labels.find(api::kPriorityClassLabel);
  if (name == nullptr || queue_priorities_.contains(*name)) return record.told.clear();
  tell(record, "ErrWorkloadCompose",
       fmt::format("WorkloadPriorityClass {} is not there; the Job keeps its priority until it is", *name));
}

// A Workload for the Job; nothing while it says what cannot be, or its priority class is not known.
std::optional<Write> Desk::create_workload(JobRecord& record) {
  const SeenJob& job = record.seen;
  if (const std::string wrong = workloads::why_not_queued(job.job); !wrong.empty()) {
    tell(record, "ErrWorkloadCompose", wrong + std::string(kNotAdmittedUntil));
    return std::nullopt;
  }
  api::Workload workload = workloads::workload_of(job.job);
  workload.metadata.labels.set(std::string(kJobUidLabel), job.job.metadata.uid);
  std::optional<std::string> priority_class;
  if (!set_priority(job.job.metadata, job.job.pod_template.spec, workload, priority_class)) {
    tell(record, "ErrWorkloadCompose",
         fmt::format("WorkloadPriorityClass {} is not there, so that the Job waits for it",
                     *job.job.metadata.labels.find(api::kPriorityClassLabel)));
    return std::nullopt;
  }
  if (record.unmade < kUnmadeMax) record.told.clear();
  const std::string pod_template = defaults_.complete(job.job.metadata.namespace_name,
                                                      workload.pod_sets.front().pod_template.spec, job.pod_template);
  return Write{.kind = Write::Kind::kCreateWorkload,
               .namespace_name = job.job.metadata.namespace_name,
               .name = job.job.metadata.name,
               .body = workload_json(workload, {pod_template}, priority_class),
               .notes = {note_of(
                   job.job.metadata, "Job", "CreatedWorkload",
                   fmt::format("Created Workload: {}/{}", job.job.metadata.namespace_name, workload.metadata.name))}};
}

// Of a Job that names a queue while its pods are another scheduler's: a condition that says so, once.
std::optional<Write> Desk::warn_of_other_scheduler(const SeenJob& job) const {
  Json conditions = Json::parse(job.conditions);
  for (const Json& one : conditions)
    if (one.value("type", "") == kQueuedCondition) return std::nullopt;
  const api::ObjectMeta& metadata = job.job.metadata;
  const std::string text = fmt::format(
      "names queue {}, and its pods the scheduler {}, which Berth does not serve: it does not wait in the queue. Let "
      "its "
      "template say schedulerName: {}, or install the webhook, and create it anew",
      workloads::queue_of(metadata), job.job.pod_template.spec.scheduler_name, *served_.begin());
  const std::string now = format_rfc3339(wall_);
  conditions.push_back({{"type", kQueuedCondition},
                        {"status", "False"},
                        {"reason", "OtherScheduler"},
                        {"message", text},
                        {"lastProbeTime", now},
                        {"lastTransitionTime", now}});
  return Write{
      .kind = Write::Kind::kPatchJobStatus,
      .namespace_name = metadata.namespace_name,
      .name = metadata.name,
      .body = Json{{"metadata", metadata_json(metadata)}, {"status", {{"conditions", std::move(conditions)}}}}.dump(),
      .notes = {note_of(metadata, "Job", "NotQueued", text, true)}};
}

namespace {

// So many pods are to run at a time.
void set_pods(const api::Job& job, int32_t count, Json& spec) {
  spec["parallelism"] = count;
  if (workloads::completions_follow(job)) spec["completions"] = count;
}

// Lets the Job's pods come, as they were admitted.
Write start(const SeenJob& seen, const SeenWorkload& workload, const quota::Admission& admission) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  const quota::PodSetAssignment& given = workload.admission->pod_sets.front();
  const quota::FlavorTerms terms = quota::terms_of(given, admission.flavors());
  const Json before = at_path(Json::parse(seen.pod_template), {"spec", "tolerations"});
  Json spec = {{"suspend", false}, {"template", pod_additions(workload, given, terms, before)}};
  if (given.count < workload.workload.pod_sets.front().count) set_pods(seen.job, given.count, spec);
  return {
      .kind = Write::Kind::kPatchJob,
      .namespace_name = metadata.namespace_name,
      .name = metadata.name,
      .body = Json{{"metadata", metadata_json(metadata)}, {"spec", std::move(spec)}}.dump(),
      .notes = {note_of(metadata, "Job", "Started", "Admitted by clusterQueue " + workload.admission->cluster_queue)}};
}

std::string why_not_to_start(const SeenJob& seen, const SeenWorkload& workload, const quota::Admission& admission) {
  const quota::PodSetAssignment& given = workload.admission->pod_sets.front();
  return conflict_of(workload, given, quota::terms_of(given, admission.flavors()), seen.pod_template);
}

// `evicted`: why, and since when, stands in its annotation, too.
Write stop(const SeenJob& seen, const std::string& why, std::optional<Time> evicted = {}) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  Json own = metadata_json(metadata);
  if (evicted) own["annotations"][api::kEvictedAnnotation] = evicted_text(why, *evicted);
  return {.kind = Write::Kind::kPatchJob,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = Json{{"metadata", std::move(own)}, {"spec", {{"suspend", true}}}}.dump(),
          .notes = {note_of(metadata, "Job", "Stopped", why)}};
}

Write set_start(const SeenJob& seen, Json start_time) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  const Json body = {{"metadata", metadata_json(metadata)}, {"status", {{"startTime", std::move(start_time)}}}};
  return {.kind = Write::Kind::kPatchJobStatus,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = body.dump()};
}

// The server lets the template of a suspended Job be changed only where it has no start time, which the Job controller
// leaves there.
Write forget_start(const SeenJob& seen) { return set_start(seen, nullptr); }

// The server lets no Job end that has no start time, and its controller gives none to one that is suspended.
Write recall_start(const SeenJob& seen, Time wall) {
  return set_start(seen, seen.ends_since->empty() ? format_rfc3339(wall) : *seen.ends_since);
}

// What the template was when its Workload was made. The labels that the API server gives it stay, of which Kueue's
// Workloads have none, and what tells that pods were let in goes, though a Job was made with it.
Json template_before(const Json& now, const SeenWorkload& workload) {
  Json was = Json::parse(workload.templates.front());
  const Json labels = at_path(now, {"metadata", "labels"});
  for (const char* key :
       {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"})
    if (labels.is_object() && labels.contains(key)) was["metadata"]["labels"][key] = labels[key];
  if (at_path(was, {"metadata", "annotations"}).is_object())
    was["metadata"]["annotations"].erase(std::string(api::kWorkloadAnnotation));
  return was;
}

Write restore(const SeenJob& seen, const SeenWorkload& workload) {
  const api::ObjectMeta& metadata = seen.job.metadata;
  const Json now = Json::parse(seen.pod_template), was = template_before(now, workload);
  Json pod_template = Json::object();
  for (const auto& path :
       {std::pair("metadata", "annotations"), std::pair("metadata", "labels"), std::pair("spec", "nodeSelector")})
    if (Json change = changes(at_path(now, {path.first, path.second}), at_path(was, {path.first, path.second}));
        !change.empty())
      pod_template[path.first][path.second] = std::move(change);
  for (const char* list : {"tolerations", "schedulingGates"})
    if (const Json before = at_path(was, {"spec", list}); before != at_path(now, {"spec", list}))
      pod_template["spec"][list] = before;
  Json spec = {{"template", std::move(pod_template)}};
  const int32_t pods = workload.workload.pod_sets.front().count, now_at_a_time = seen.job.parallelism.value_or(1);
  const bool as_started = !workload.admission || workload.admission->pod_sets.front().count == now_at_a_time;
  if (now_at_a_time < pods && as_started) set_pods(seen.job, pods, spec);  // else somebody has changed it since
  return {.kind = Write::Kind::kPatchJob,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = Json{{"metadata", metadata_json(metadata)}, {"spec", std::move(spec)}}.dump()};
}

}  // namespace

// A Job that is being deleted, and is kept by a finalizer of its own: the Job controller does nothing for it any more,
// so that its pods go by themselves if it has to leave.
void Desk::stop_deleted(const Name& name, JobRecord& record, const quota::Admission& admission,
                        std::vector<Write>& writes) {
  const WorkloadRecord* workload = workload_of(record.seen);
  if (workload == nullptr || workload->ended || !workload->seen.is("Evicted")) return;
  const std::string& uid = workload->seen.workload.metadata.uid;
  const quota::WorkloadId id = admission.find(uid);
  if (!id.valid() || !is_leaving(admission.status(id))) return;
  const std::vector<quota::PodOf> pods = admission.pods(id);
  dirty_jobs_.insert(name);  // until they are gone
  if (const auto runs = std::ranges::find(pods, false, &quota::PodOf::terminating); runs != pods.end()) {
    Write write{.kind = Write::Kind::kDeletePod,
                .namespace_name = name.first,
                .name = name.second,
                .body = api::delete_options_json(runs->uid),
                .object = runs->name};
    if (std::ranges::none_of(pods, &quota::PodOf::terminating))
      write.notes = {note_of(record.seen.job.metadata, "Job", "Stopped", why_evicted(*workload))};
    send(record.lane, std::move(write), writes);
  } else {
    say_left(workload_of_owner_.at(record.seen.job.metadata.uid), pods.empty() && !record.seen.has_pods());
  }
}

void Desk::look_at(const Name& name, JobRecord& record, const quota::Admission& admission, std::vector<Write>& writes) {
  const SeenJob& seen = record.seen;
  if (workloads::queue_of(seen.job.metadata).empty() || !seen.finished.empty()) return;
  if (seen.job.metadata.deleted) return stop_deleted(name, record, admission, writes);
  const auto send = [&](std::optional<Write> write) {
    if (write && !this->send(record.lane, std::move(*write), writes) && !record.lane.busy) dirty_jobs_.insert(name);
  };
  const WorkloadRecord* workload = workload_of(seen);
  // One that has a Workload was queued before, by whomever.
  if (workload == nullptr && !is_ours(seen.job)) return send(warn_of_other_scheduler(seen));
  // Nobody stops one that is about to end, nor starts it anew: no more pods come, and its quota is its own until then.
  if (seen.ends_since) {
    if (seen.job.suspend && !seen.started) send(recall_start(seen, wall_));
    return;
  }
  if (workload == nullptr) {
    if (!seen.job.suspend) return send(stop(seen, "Missing Workload; unable to restore pod templates"));
    return send(create_workload(record));
  }
  const SeenWorkload& stored = workload->seen;
  if (stored.is("Finished"))
    return tell(record, "ErrWorkloadCompose",
                fmt::format("its Workload {} says that it has finished, and the Job has not: it is not admitted, nor "
                            "counted; delete the Workload, so that the Job gets another",
                            stored.workload.metadata.name));
  tell_of_labels(record, stored);
  const quota::WorkloadId id = admission.find(stored.workload.metadata.uid);
  if (!id.valid() || workload->ended) return;
  const quota::WorkloadStatus& status = admission.status(id);
  const bool deleted = stored.workload.metadata.deleted.has_value(), leaving = is_leaving(status);
  const std::string unlike = leaving || deleted ? "" : why_out_of_step(seen, stored);
  if (status.phase == quota::WorkloadPhase::kAdmitted && !leaving && !deleted && unlike.empty()) {
    if (!is_told(stored) || !seen.job.suspend || !workload->held.empty()) return;
    // One that had been started by somebody else: pods may be there still, or come, which nobody counts.
    if (seen.has_pods() || (seen.job.metadata.generation > 1 && !seen.rests)) return;
    if (seen.started) return seen.rests ? send(forget_start(seen)) : void();
    if (const std::string conflict = why_not_to_start(seen, stored, admission); !conflict.empty())
      return refuse(record, conflict, true);
    const bool is_free = record.lane.is_free(now_);
    send(start(seen, stored, admission));
    record.starting |= is_free;
    return;
  }
  say_left(workload_of_owner_.at(seen.job.metadata.uid),
           leaving && stored.is("Evicted") && is_at_rest(seen) && !record.lane.busy);
  if (!seen.job.suspend) {
    if (deleted) return send(stop(seen, "Workload is deleted"));
    if (!unlike.empty()) return send(stop(seen, unlike, wall_));
    if (leaving && !stored.is("Evicted")) return;  // people hear first why
    if (!leaving) return send(stop(seen, "Not admitted by cluster queue"));
    return send(stop(seen, why_evicted(*workload), wall_));
  }
  if (seen.has_pods()) return;
  // Its controller says that it is suspended where it has not ended instead, for which it needs its start time.
  if (seen.started) return seen.rests ? send(forget_start(seen)) : void();
  if (is_injected(seen)) return send(restore(seen, stored));
  if (deleted) dirty_workloads_.insert(workload_of_owner_.at(seen.job.metadata.uid));
}

}  // namespace berth::queueing
