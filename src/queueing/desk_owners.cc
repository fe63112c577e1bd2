// The part of Desk that knows whose Workloads are, and tells the engine so.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/kueue_names.h"
#include "queueing/desk.h"
#include "queueing/step.h"
#include "queueing/write_json.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

constexpr Duration kOutlastsFor = Duration::seconds(3600);  // after it was evicted, or may wait in its queue again

}  // namespace

bool outlasts_pods(const SeenWorkload& seen) {
  const api::ObjectMeta& metadata = seen.workload.metadata;
  return metadata.owners.empty() && metadata.annotation(api::kIsGroupAnnotation) != nullptr && seen.is("Evicted");
}

// Of one that outlasts its pods: none have come for a long time, or others that are like none of its own, which are to
// have a Workload of their own.
bool Desk::is_abandoned(const SeenWorkload& seen) {
  if (!outlasts_pods(seen) || seen.is("QuotaReserved")) return false;
  if (const GroupRecord* group = group_of(seen)) {
    const auto is_ours = [&](const auto& pod) {
      const api::Pod& one = pod.second.seen.pod;
      return one.metadata.deleted || std::ranges::any_of(seen.workload.pod_sets, [&](const auto& set) {
               return workloads::is_of_set(one, seen.workload, set);
             });
    };
    return std::ranges::none_of(group->pods, is_ours);
  }
  const Result<Time> evicted = parse_rfc3339(seen.condition("Evicted")->since);
  if (!evicted) return false;
  const Time since = seen.requeue && seen.requeue->at ? std::max(*evicted, *seen.requeue->at) : *evicted;
  if (since + kOutlastsFor <= wall_) return true;
  const Time then = now_ + (since + kOutlastsFor - wall_);
  wakeup_ = std::min(wakeup_.value_or(then), then);
  return false;
}

Write own_by(const SeenWorkload& seen, const std::vector<api::OwnerReference>& owners, Write::Party party) {
  const api::ObjectMeta& metadata = seen.workload.metadata;
  Json body = {{"metadata", metadata_json(metadata)}};
  body["metadata"]["ownerReferences"] = Json::parse(owners_json(owners));
  return {.kind = Write::Kind::kPatchWorkload,
          .party = party,
          .namespace_name = metadata.namespace_name,
          .name = metadata.name,
          .body = body.dump()};
}

// Has it taken by the garbage collector: its owner is a pod that is not there, with its own name and UID.
void Desk::abandon(const Name& name, WorkloadRecord& record, std::vector<Write>& writes) {
  const api::ObjectMeta& metadata = record.seen.workload.metadata;
  Write write = own_by(record.seen, {workloads::pod_owner(metadata)}, Write::Party::kWorkload);
  write.notes = {note_of(metadata, "Workload", "Abandoned", "Its pods have not come again")};
  if (!send(record.lane, std::move(write), writes) && !record.lane.busy) dirty_workloads_.insert(name);
}

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
