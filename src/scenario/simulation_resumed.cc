// The part of Simulation that goes on with work which a cluster's queues knew already: Workloads with their status, the
// Jobs that they are for, and the pods that these have.
#include <algorithm>
#include <utility>

#include "api/kueue_names.h"
#include "queueing/seen.h"
#include "scenario/simulation.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {
namespace {

std::string full_name(const api::ObjectMeta& metadata) { return metadata.namespace_name + "/" + metadata.name; }

// The latest time that the Workload tells.
Time latest_of(const queueing::SeenWorkload& stored) {
  Time out = stored.workload.metadata.created.value_or(Time{});
  for (const queueing::StoredCondition& condition : stored.conditions)
    if (const auto since = parse_rfc3339(condition.since)) out = std::max(out, *since);
  return out;
}

// As Kueue and Berth mark the pods of work that is let in; older versions of Kueue do not.
void mark(api::ObjectMeta& pod, const api::Workload& workload) {
  if (pod.annotation(api::kWorkloadAnnotation) == nullptr)
    pod.annotations.set(std::string(api::kWorkloadAnnotation), workload.metadata.name);
  if (workload.pod_sets.size() == 1 && pod.labels.find(api::kPodSetLabel) == nullptr)
    pod.labels.set(std::string(api::kPodSetLabel), workload.pod_sets.front().name);
}

// A pod by itself is its Workload's controller; those of a group own it together.
QueueController::Called called_by_pods(const api::Workload& workload) {
  const api::OwnerReference* alone = workload.metadata.controller();
  if (alone != nullptr) return {"Pod", workload.metadata.namespace_name + "/" + alone->name};
  return {"Pod group", full_name(workload.metadata)};
}

// The Job as it was before it was let in.
api::Object before_admission(api::Job job, const api::Workload& workload) {
  const api::WorkloadPodSet& set = workload.pod_sets.front();
  job.suspend = true;
  workloads::set_pods(job, set.count);
  job.pod_template = set.pod_template;
  return job;
}

}  // namespace

// Makes known whose pods are whose, before any of them comes.
void Simulation::expect_resumed(size_t workload) {
  Workload& record = workloads_[workload];
  const queueing::SeenWorkload& stored = *record.manifest.stored;
  resumed_.wall = std::max(resumed_.wall, latest_of(stored));
  const std::string name = full_name(stored.workload.metadata);
  if (workloads::is_of_pods(stored.workload)) {
    const size_t group = groups_.by_name[name] = resumed_.groups[name] = groups_.all.size();
    groups_.all.push_back({.workload = stored.workload});
    for (const api::OwnerReference& owner : stored.workload.metadata.owners) resumed_.groups[owner.uid] = group;
    return;
  }
  resumed_.objects[name] = workload;
  if (const api::OwnerReference* owner = stored.workload.metadata.controller(); owner != nullptr)
    resumed_.objects[owner->uid] = workload;
  if (const auto* job = std::get_if<api::Job>(&record.manifest.object)) record.next_index = job->succeeded;
}

// A pod of the input is that of a Job or group that was there with it, or by itself.
void Simulation::adopt(api::Pod pod) {
  const auto object_of = [&](const std::string& key) {
    const auto at = resumed_.objects.find(key);
    return at == resumed_.objects.end() ? SIZE_MAX : at->second;
  };
  size_t workload = SIZE_MAX;
  const std::string space = pod.metadata.namespace_name + "/";
  if (const api::OwnerReference* owner = pod.metadata.controller(); owner != nullptr) workload = object_of(owner->uid);
  if (const std::string* name = pod.metadata.annotation(api::kWorkloadAnnotation);
      name != nullptr && workload == SIZE_MAX)
    workload = object_of(space + *name);
  if (workload != SIZE_MAX) {
    mark(pod.metadata, workloads_[workload].manifest.stored->workload);
    const int32_t index = pod.terminal() ? 0 : workloads_[workload].next_index++;  // those that succeeded are counted
    return add_pod(std::move(pod), workload, index, 1);
  }
  auto group = resumed_.groups.find(pod.metadata.uid);
  if (group == resumed_.groups.end()) group = resumed_.groups.find(space + workloads::workload_name_of(pod));
  if (group == resumed_.groups.end()) return add_pod(std::move(pod), SIZE_MAX, 0, 1);
  if (!workloads::waits_for_admission(pod)) mark(pod.metadata, *groups_.all[group->second].workload);
  add_pod(std::move(pod), SIZE_MAX, 0, 1, group->second);
}

// Its Workload goes on from where it stood; what its pods are to do is seen to when all have come.
void Simulation::resume(size_t workload) {
  Workload& record = workloads_[workload];
  const queueing::SeenWorkload& stored = *record.manifest.stored;
  const bool of_pods = workloads::is_of_pods(stored.workload);
  const QueueController::Owner owner =
      of_pods ? QueueController::Owner{SIZE_MAX, resumed_.groups.at(full_name(stored.workload.metadata))}
              : QueueController::Owner{workload, SIZE_MAX};
  const Time created = now_ + Duration{static_cast<int64_t>(sequence_++)};
  const auto given =
      queues_.resume(stored, owner, of_pods ? called_by_pods(stored.workload) : called(record.manifest.object), created,
                     options_.topology_levels, now_, resumed_.wall - now_);
  const bool leaves = queues_.is_leaving(owner);
  resumed_.fresh.push_back(owner);
  if (of_pods && given) return let_in(*given);
  auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr) return;
  record.ended = job->succeeded;
  record.failed = job->failed;
  const bool released = !std::exchange(job->suspend, job->suspend || !given);
  if (!given && !leaves) return;
  const api::Object before = before_admission(*job, stored.workload);
  if (given && !released) release_job(workload, *given);
  else if (given) mark(job->pod_template.metadata, stored.workload);  // of the pods that it still makes
  record.before_admission = before;
  record.released = now_;
  if (const auto deadline = deadline_of(record)) schedule(now_, *deadline - now_, DueKind::kJobDeadline, workload);
}

// Those that have come, with their pods: they go on, or leave.
void Simulation::follow_resumed() {
  for (const QueueController::Owner owner : std::exchange(resumed_.fresh, {})) {
    const auto* job =
        owner.object == SIZE_MAX ? nullptr : std::get_if<api::Job>(&workloads_[owner.object].manifest.object);
    if (queues_.is_leaving(owner)) {
      clear_out(owner);
    } else if (job != nullptr && job->suspend) {
      make_pods_leave(owner.object);
    } else if (owner.group != SIZE_MAX) {
      const std::vector<size_t>& pods = groups_.all[owner.group].pods;
      if (!pods.empty()) follow_group(pods_[pods.front()]);
    } else if (job == nullptr) {
      if (queues_.admitted_at(owner)) begin_workload(owner.object);
    } else {
      next_job_pods(owner.object);
      follow_job(owner.object);
    }
  }
}

}  // namespace berth::scenario
