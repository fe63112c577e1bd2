// The part of Desk that knows whose Workloads are, and tells the engine so.
#include <fmt/format.h>

#include <utility>

#include "queueing/desk.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {

engine::OwnerQueued Desk::owner(const std::string& uid) const {
  const auto job = job_by_uid_.find(uid);
  const auto own = workload_of_owner_.find(uid);
  engine::OwnerQueued owner{.uid = uid};
  if (job != job_by_uid_.end()) {
    const api::Job& known = jobs_.at(job->second).seen.job;
    owner.queued = !workloads::queue_of(known.metadata).empty();
    owner.suspended = known.suspend;
  }
  const bool stands = own != workload_of_owner_.end() &&
                      (owner.queued || workloads::is_of_pods(workloads_.at(own->second).seen.workload));
  if (stands) owner.workload = fmt::format("{}/{}", own->second.first, own->second.second);
  return owner;
}

// For people: what the workload stands for.
std::string Desk::owner_of(const model::Workload& workload) const {
  const auto job = job_by_uid_.find(workload.owner_uid);
  return job != job_by_uid_.end() ? fmt::format("Job {}/{}", job->second.first, job->second.second)
                                  : fmt::format("Workload {}/{}", workload.namespace_name, workload.name);
}

// For people: the words of the condition, and for whom it was, if that is known.
std::string Desk::why_evicted(const WorkloadRecord& record) {
  const std::string& text = record.seen.condition("Evicted")->message;
  return record.evicted_for.empty() ? text : fmt::format("{}, for {}", text, record.evicted_for);
}

const JobRecord* Desk::job_of(const SeenWorkload& workload) const {
  const api::OwnerReference* owner = workload.workload.metadata.controller();
  const auto name = owner == nullptr ? job_by_uid_.end() : job_by_uid_.find(owner->uid);
  return name == job_by_uid_.end() ? nullptr : &jobs_.at(name->second);
}

// The Workload that counts for its owner, where that is another one; else null.
const std::string* Desk::other_of_owner(const SeenWorkload& seen) const {
  const api::OwnerReference* owner = seen.workload.metadata.controller();
  const auto own = owner == nullptr ? workload_of_owner_.end() : workload_of_owner_.find(owner->uid);
  const bool is_other = own != workload_of_owner_.end() && own->second != name_of(seen.workload.metadata);
  return is_other ? &own->second.second : nullptr;
}

const WorkloadRecord* Desk::workload_of(const SeenJob& job) const {
  const auto name = workload_of_owner_.find(job.job.metadata.uid);
  return name == workload_of_owner_.end() ? nullptr : &workloads_.at(name->second);
}

}  // namespace berth::queueing
