#include "queueing/desk.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "api/queue_limits.h"
#include "api/victim_terms.h"
#include "bridge/queues.h"
#include "queueing/held.h"
#include "queueing/step.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

constexpr Duration kCompareEvery = Duration::seconds(1);
constexpr size_t kComparedMax = 500;                       // at a time
constexpr Duration kPodsGoWithin = Duration::seconds(60);  // once their Job has gone

// What an update of a workload can change for the engine.
bool says_the_same(const api::Workload& a, const api::Workload& b) {
  return a.metadata.generation == b.metadata.generation &&
         std::ranges::equal(a.pod_sets, b.pod_sets, {}, &api::WorkloadPodSet::reclaimable,
                            &api::WorkloadPodSet::reclaimable);
}

// What tells them apart, but for their claims, which never change.
std::vector<std::string> marks_of(const PodsBySet& pods) {
  std::vector<std::string> out;
  for (const std::vector<const api::Pod*>& set : pods)
    for (const api::Pod* pod : set) {
      std::string& mark = out.emplace_back(pod->metadata.uid);
      for (const auto& [key, value] : pod->metadata.labels)
        if (key != api::kPodSetLabel) mark += fmt::format(" {}={}", key, value);
    }
  return out;
}

}  // namespace

void Desk::see(SeenWorkload seen) {
  if (!is_older(seen.workload.metadata.resource_version, watched_version_))
    watched_version_ = seen.workload.metadata.resource_version;
  take_in(std::move(seen));
}

void Desk::take_in(SeenWorkload seen) {
  const Name name = name_of(seen.workload.metadata);
  if (const auto known = workloads_.find(name); known != workloads_.end()) {
    const api::ObjectMeta& before = known->second.seen.workload.metadata;
    if (before.uid != seen.workload.metadata.uid) forget(known);
    else if (is_older(seen.workload.metadata.resource_version, before.resource_version)) return;
  }
  WorkloadRecord& record = workloads_[name];
  const bool same = record.in_engine && says_the_same(record.seen.workload, seen.workload);
  if (!record.seen.checks.empty() || !seen.checks.empty()) checked_.insert(name);
  record.seen = std::move(seen);
  if (const auto& sets = record.seen.workload.pod_sets; record.unneeded.size() != sets.size()) {
    record.unneeded.clear();
    for (const api::WorkloadPodSet& set : sets) record.unneeded.push_back(set.reclaimable);
  }
  if (const api::OwnerReference* owner = record.seen.workload.metadata.controller(); owner != nullptr) {
    const auto [own, is_new] = workload_of_owner_.try_emplace(owner->uid, name);
    const Name before = std::exchange(own->second, name);
    const auto other = before == name ? workloads_.end() : workloads_.find(before);
    // Of two the one that has quota counts, else the first.
    if (other != workloads_.end() && (other->second.seen.is("QuotaReserved") || !record.seen.is("QuotaReserved")))
      workload_of_owner_[owner->uid] = before;
    else if (other != workloads_.end() && other->second.in_engine && !other->second.ended) tell_engine(other->second);
    if (const auto job = job_by_uid_.find(owner->uid); job != job_by_uid_.end()) dirty_jobs_.insert(job->second);
    if (workload_of_owner_.at(owner->uid) != before || is_new) tell_owner(owner->uid);
    if (owner->kind == "Pod") see_anew({name.first, owner->name}, std::string(owner->uid));
  }
  if (groups_.contains(name)) dirty_groups_.insert(name);
  const bool taken_back = record.withdrawn && !record.seen.is("QuotaReserved");
  if (taken_back) record.withdrawn = false;
  if (taken_back) introduce_anew(record);
  else if (!same || record.seen.is("Finished")) tell_engine(record);
  dirty_workloads_.insert(name);
}

void Desk::see(SeenJob seen) {
  const Name name = name_of(seen.job.metadata);
  if (const auto known = jobs_.find(name); known != jobs_.end()) {
    const api::ObjectMeta& before = known->second.seen.job.metadata;
    if (before.uid != seen.job.metadata.uid) job_gone(name.first, name.second);
    else if (is_older(seen.job.metadata.resource_version, before.resource_version)) return;
  }
  JobRecord& record = jobs_[name];
  const auto told = [](const SeenJob& of) {
    return std::tuple(api::checkpoints_of(of.job.metadata), api::user_of(of.job.metadata),
                      of.job.metadata.deleted.has_value(), workloads::why_not_queued(of.job));
  };
  const bool news = told(record.seen) != told(seen) || record.seen.job.metadata.uid.empty();
  const api::ObjectMeta &was = record.seen.job.metadata, &is = seen.job.metadata;
  const bool owner_news = was.uid != is.uid || workloads::queue_of(was) != workloads::queue_of(is) ||
                          record.seen.job.suspend != seen.job.suspend;
  const bool changed = was.generation != is.generation || was.labels != is.labels || was.annotations != is.annotations;
  record.seen = std::move(seen);
  if (changed) end_hold(record);
  job_by_uid_[record.seen.job.metadata.uid] = name;
  if (owner_news) tell_owner(record.seen.job.metadata.uid);
  dirty_jobs_.insert(name);
  const auto workload = workload_of_owner_.find(record.seen.job.metadata.uid);
  if (workload == workload_of_owner_.end()) return;
  dirty_workloads_.insert(workload->second);
  if (WorkloadRecord& own = workloads_.at(workload->second); news && own.in_engine && !own.ended) tell_engine(own);
}

void Desk::workload_gone(const std::string& namespace_name, const std::string& name) {
  if (const auto known = workloads_.find({namespace_name, name}); known != workloads_.end()) forget(known);
}

void Desk::forget(std::map<Name, WorkloadRecord>::iterator at) {
  const api::ObjectMeta& metadata = at->second.seen.workload.metadata;
  if (at->second.in_engine) events_.emplace_back(engine::WorkloadEnded{metadata.uid, true});
  if (const api::OwnerReference* owner = metadata.controller(); owner != nullptr) {
    if (const auto own = workload_of_owner_.find(owner->uid);
        own != workload_of_owner_.end() && own->second == at->first) {
      workload_of_owner_.erase(own);
      tell_owner(owner->uid);
    }
    if (const auto job = job_by_uid_.find(owner->uid); job != job_by_uid_.end()) dirty_jobs_.insert(job->second);
  }
  if (groups_.contains(at->first)) dirty_groups_.insert(at->first);
  if (!at->second.seen.checks.empty()) checked_.insert(at->first);
  dirty_workloads_.erase(at->first);
  untold_workloads_.erase(at->first);
  workloads_.erase(at);
}

void Desk::job_gone(const std::string& namespace_name, const std::string& name) {
  const auto known = jobs_.find({namespace_name, name});
  if (known == jobs_.end()) return;
  const std::string uid = known->second.seen.job.metadata.uid;
  job_by_uid_.erase(uid);
  gone_jobs_.emplace_back(now_, uid);
  dirty_jobs_.erase(known->first);
  jobs_.erase(known);
  const auto workload = workload_of_owner_.find(uid);
  if (workload == workload_of_owner_.end()) return;
  dirty_workloads_.insert(workload->second);
  if (WorkloadRecord& own = workloads_.at(workload->second); own.in_engine && !own.ended) tell_engine(own);
}

void Desk::see_priority(const std::string& workload_priority_class, std::optional<int32_t> value) {
  if (value) queue_priorities_[workload_priority_class] = *value;
  else queue_priorities_.erase(workload_priority_class);
  for (const auto& [name, record] : jobs_) dirty_jobs_.insert(name);  // one may have waited for it
  for (const auto& [name, group] : groups_) dirty_groups_.insert(name);
}

void Desk::see_pod_priority(const std::string& priority_class, std::optional<int32_t> value) {
  if (value) pod_priorities_[priority_class] = *value;
  else pod_priorities_.erase(priority_class);
}

std::vector<engine::Event> Desk::take_events(Time now, Time wall) {
  for (const Name& name : dirty_groups_) {
    const auto at = workloads_.find(name);
    if (at == workloads_.end() || !at->second.in_engine || at->second.ended) continue;
    if (lacking_pods(at->second) != at->second.lacks || marks_of(pods_apart(at->second)) != at->second.apart)
      tell_engine(at->second);
  }
  const auto has_gone = [&](const auto& job) { return now - job.first >= kPodsGoWithin; };
  const auto first = std::ranges::find_if_not(gone_jobs_, has_gone);
  std::for_each(gone_jobs_.begin(), first, [&](const auto& job) { tell_owner(job.second); });
  gone_jobs_.erase(gone_jobs_.begin(), first);
  for (engine::Event& event : events_) {
    if (auto* kept = std::get_if<engine::WorkloadAdmitted>(&event))
      if (const auto at = workloads_.find({kept->workload.namespace_name, kept->workload.name}); at != workloads_.end())
        kept->held.ran = has_run(at->first, at->second.seen);
    tell_time(event, now, wall - now);
  }
  return std::exchange(events_, {});
}

// Somebody new, what is new of him, or that he has finished.
void Desk::tell_engine(WorkloadRecord& record) {
  const SeenWorkload& seen = record.seen;
  if (seen.is("Finished")) {
    if (record.in_engine && !record.ended) events_.emplace_back(engine::WorkloadEnded{seen.workload.metadata.uid});
    record.ended = true;
    return;
  }
  api::Workload told = seen.workload;
  if (workloads::is_of_pods(seen.workload))
    for (size_t i = 0; i < told.pod_sets.size(); ++i)
      told.pod_sets[i].reclaimable = std::min(told.pod_sets[i].reclaimable, record.unneeded[i]);
  if (auto owner = owned(seen)) {  // that is what will run, whoever has edited the Workload
    for (size_t i = 0; i < std::min(owner->sets.size(), told.pod_sets.size()); ++i)
      owner->sets[i].reclaimable = told.pod_sets[i].reclaimable;
    told.pod_sets = std::move(owner->sets);
  }
  const JobRecord* job = job_of(seen);
  if (job != nullptr) {
    workloads::declare_runtime(job->seen.job, told);
    for (api::WorkloadPodSet& set : told.pod_sets) {
      defaults_.add_places(set.pod_template.spec);
      const api::Job& seen_job = job->seen.job;
      set.reclaimable = std::min(set.reclaimable, workloads::reclaimable(seen_job, set.count, seen_job.succeeded));
    }
  }
  model::Workload workload = bridge::to_model(told, levels_);
  if (job != nullptr) {
    if (std::string refused = refusal(defaults_.ranges(), workload.namespace_name, told.pod_sets);
        !refused.empty() && !seen.is("QuotaReserved"))
      workload.problem = std::move(refused);
    if (std::string wrong = workloads::why_not_queued(job->seen.job); !wrong.empty() && !seen.is("QuotaReserved"))
      workload.problem = std::move(wrong);
    workload.checkpoints = api::checkpoints_of(job->seen.job.metadata);
    workload.user = api::user_of(job->seen.job.metadata);
    if (job->seen.job.metadata.deleted) workload.problem = kJobIsDeleted;
  }
  const auto apart = pods_apart(record);
  for (size_t i = 0; i < apart.size(); ++i) bridge::name_members(workload.pod_sets[i], told, apart[i], levels_);
  record.apart = marks_of(apart);
  record.lacks = lacking_pods(record);
  if (!record.lacks.empty()) workload.problem = record.lacks;
  if (!record.held.empty()) workload.problem = record.held;
  if (const api::OwnerReference* owner = seen.workload.metadata.controller();
      owner != nullptr && owner->kind == "Job" && job == nullptr && !seen.is("QuotaReserved"))
    workload.problem = fmt::format("its Job {} is not there, or names no queue", owner->name);
  if (!seen.problem.empty()) workload.problem = seen.problem;
  if (const std::string* own = other_of_owner(seen); own != nullptr)
    workload.problem =
        fmt::format("{} {} has Workload {} already; delete one of the two", seen.workload.metadata.controller()->kind,
                    seen.workload.metadata.controller()->name, *own);
  if (!record.in_engine) tell_past(seen, workload);
  if (auto held = record.in_engine ? std::nullopt : held_by(seen)) {
    events_.emplace_back(engine::WorkloadAdmitted{std::move(workload), std::move(*held)});
    if (pods_ready_) tell_readiness(record);
  } else {
    events_.emplace_back(engine::WorkloadUpserted{std::move(workload)});
  }
  record.in_engine = true;
}

void Desk::decided(const std::vector<quota::AdmissionDecision>& decisions, const quota::Admission& admission) {
  for (const quota::AdmissionDecision& decision : decisions) {
    const model::Workload& workload = admission.status(decision.workload).workload;
    const auto record = workloads_.find({workload.namespace_name, workload.name});
    if (record == workloads_.end()) continue;
    record->second.has_left = record->second.released = false;
    if (decision.kind == quota::AdmissionDecision::Kind::kEvict) {
      record->second.evicted_by = decision;
      record->second.evicted_for =
          decision.preemptor.valid() ? owner_of(admission.status(decision.preemptor).workload) : "";
    }
    decided_workloads_.insert(record->first);
    if (groups_.contains(record->first)) dirty_groups_.insert(record->first);
    if (const auto job = job_by_uid_.find(workload.owner_uid); job != job_by_uid_.end())
      dirty_jobs_.insert(job->second);
  }
}

// Sends what is to be written if the lane is free; false: it is not.
bool Desk::send(Lane& lane, Write&& write, std::vector<Write>& writes) {
  if (!may_write(lane)) return false;
  lane.busy = true;
  writes.push_back(std::move(write));
  return true;
}

// Whether the object's lane is free; if it is not, wakeup() says when.
bool Desk::may_write(Lane& lane) {
  if (lane.busy) return false;
  if (lane.from <= now_) return true;
  wakeup_ = std::min(wakeup_.value_or(lane.from), lane.from);
  return false;
}

// What nobody has decided may differ from what is stored, too: the next few are looked at, in a round.
void Desk::compare_some() {
  auto at = workloads_.upper_bound(compared_until_);
  for (size_t left = std::min(kComparedMax, workloads_.size()); left > 0; --left, ++at) {
    if (at == workloads_.end()) at = workloads_.begin();
    if (at->second.in_engine && !at->second.ended) dirty_workloads_.insert(at->first);
    compared_until_ = at->first;
  }
}

std::vector<Write> Desk::look(const quota::Admission& admission, Time now, Time wall, Duration told_every, size_t room,
                              size_t tell_room) {
  now_ = now;
  tell_room_ = tell_room;
  wall_ = wall;
  told_every_ = told_every;
  wakeup_.reset();
  if (!compared_at_ || now - *compared_at_ >= kCompareEvery) {
    compared_at_ = now;
    compare_some();
  }
  std::vector<Write> writes;
  const std::set<Name> jobs = std::exchange(dirty_jobs_, {}), groups = std::exchange(dirty_groups_, {});
  for (const Name& name : jobs) {
    if (writes.size() >= room) dirty_jobs_.insert(name);
    else if (const auto at = jobs_.find(name); at != jobs_.end()) look_at(name, at->second, admission, writes);
  }
  for (const Name& name : groups) {
    if (writes.size() >= room) dirty_groups_.insert(name);
    else if (const auto at = groups_.find(name); at != groups_.end()) look_at(name, at->second, admission, writes);
  }
  const auto look_at_all = [&](const std::set<Name>& names, std::set<Name>& later) {
    for (const Name& name : names) {
      if (writes.size() >= room) later.insert(name);
      else if (const auto at = workloads_.find(name); at != workloads_.end())
        look_at(name, at->second, admission, writes);
    }
  };
  look_at_all(std::exchange(decided_workloads_, {}), decided_workloads_);
  look_at_all(std::exchange(dirty_workloads_, {}), dirty_workloads_);
  tell_some(admission, writes, room);
  return writes;
}

// In a round, so that all have their turn however little room there is.
void Desk::tell_some(const quota::Admission& admission, std::vector<Write>& writes, size_t room) {
  while (!untold_workloads_.empty() && tell_room_ > 0 && writes.size() < room) {
    auto next = untold_workloads_.upper_bound(told_until_);
    if (next == untold_workloads_.end()) next = untold_workloads_.begin();
    told_until_ = *next;
    untold_workloads_.erase(next);
    if (const auto at = workloads_.find(told_until_); at != workloads_.end())
      look_at(at->first, at->second, admission, writes);
  }
}

// What a write has made of its object. The watch may know better by now: who has gone stays so, and of two by one name
// the one that it told of is there.
void Desk::take_in(const Answer& answer) {
  const auto is_known = [](const auto& all, const auto& name, const api::ObjectMeta& metadata, auto metadata_of) {
    const auto at = all.find(name);
    return at != all.end() && metadata_of(at->second.seen).uid == metadata.uid;
  };
  if (answer.workload) {
    const api::ObjectMeta& metadata = answer.workload->workload.metadata;
    const Name name = name_of(metadata);
    const bool is_new = answer.write.kind == Write::Kind::kCreateWorkload && !workloads_.contains(name) &&
                        (watched_version_.empty() || is_older(watched_version_, metadata.resource_version));
    if (is_new || is_known(
                      workloads_, name, metadata, [](auto& seen) -> auto& { return seen.workload.metadata; }))
      take_in(*answer.workload);
  }
  if (answer.job && is_known(
                        jobs_, name_of(answer.job->job.metadata), answer.job->job.metadata,
                        [](auto& seen) -> auto& { return seen.job.metadata; }))
    see(*answer.job);
  if (!answer.pod) return;
  const auto group = group_by_pod_.find(name_of(answer.pod->pod.metadata));
  if (group != group_by_pod_.end() &&
      is_known(
          groups_.at(group->second).pods, answer.pod->pod.metadata.name, answer.pod->pod.metadata,
          [](auto& seen) -> auto& { return seen.pod.metadata; }))
    see(*answer.pod);
}

void Desk::answered(const Answer& answer, Time now) {
  take_in(answer);
  if (answer.write.kind == Write::Kind::kPatchWorkload && !answer.stored)
    if (const auto at = workloads_.find({answer.write.namespace_name, answer.write.name}); at != workloads_.end())
      at->second.followed = {-1, -1, ""};
  Lane* lane = lane_of(answer.write);
  if (lane == nullptr) return;
  lane->answered(answer, now);
  const Name name{answer.write.namespace_name, answer.write.name};
  if (answer.write.kind == Write::Kind::kCreateWorkload) hear_of_workload(answer);
  if (answer.write.party == Write::Party::kJob) hear_of_start(jobs_.at(name), answer);
  switch (answer.write.party) {
    case Write::Party::kWorkload: dirty_workloads_.insert(name); break;
    case Write::Party::kJob: dirty_jobs_.insert(name); break;
    case Write::Party::kGroup: dirty_groups_.insert(name); break;
    case Write::Party::kPod: dirty_groups_.insert(group_by_pod_.at(name)); break;
    default: break;
  }
}

// Whoever waits for the write's answer; null: it has gone.
Lane* Desk::lane_of(const Write& write) {
  const Name name{write.namespace_name, write.name};
  const auto in = [](auto& all, const auto& key) -> Lane* {
    const auto at = all.find(key);
    return at == all.end() ? nullptr : &at->second.lane;
  };
  switch (write.party) {
    case Write::Party::kWorkload: return in(workloads_, name);
    case Write::Party::kJob: return in(jobs_, name);
    case Write::Party::kGroup: return in(groups_, name);
    default: break;
  }
  const auto group = group_by_pod_.find(name);
  return group == group_by_pod_.end() ? nullptr : in(groups_.at(group->second).pods, write.name);
}

std::optional<Time> Desk::wakeup() const { return wakeup_; }

}  // namespace berth::queueing
