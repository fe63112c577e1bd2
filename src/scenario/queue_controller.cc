#include "scenario/queue_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/kueue_names.h"
#include "bridge/queues.h"
#include "queueing/held.h"
#include "workloads/kueue/pod_group.h"

namespace berth::scenario {

namespace {

const char* state_of(quota::WorkloadPhase phase) {
  switch (phase) {
    case quota::WorkloadPhase::kPending: return "Pending";
    case quota::WorkloadPhase::kQuotaReserved: return "QuotaReserved";
    case quota::WorkloadPhase::kAdmitted: return "Admitted";
    case quota::WorkloadPhase::kFinished: break;
  }
  return "Finished";
}

}  // namespace

bool is_queueing(const api::Object& object) {
  return std::holds_alternative<api::ResourceFlavor>(object) || std::holds_alternative<api::ClusterQueue>(object) ||
         std::holds_alternative<api::AdmissionCheck>(object) || std::holds_alternative<api::Cohort>(object) ||
         std::holds_alternative<api::LocalQueue>(object) || std::holds_alternative<api::WorkloadPriorityClass>(object);
}

void QueueController::put(const api::Object& object) {
  if (const auto* priority = std::get_if<api::WorkloadPriorityClass>(&object)) {
    priorities_[priority->metadata.name] = priority->value;
    for (Record& record : all_)
      if (record.waits_for_class == priority->metadata.name) {
        record.waits_for_class.clear();
        record.workload.problem = record.refused;
        record.workload.priority = priority->value;
        outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
      }
  }
  if (const auto* flavor = std::get_if<api::ResourceFlavor>(&object)) {
    flavors_[flavor->flavor.name] = flavor->flavor;
    outbox_.emplace_back(engine::QueueObjectUpserted{flavor->flavor});
  }
  if (const auto* queue = std::get_if<api::LocalQueue>(&object)) {
    any_local_queue_ = true;
    if (queue->metadata.name == api::kDefaultLocalQueue) with_default_.insert(queue->metadata.namespace_name);
  }
  if (const auto* queue = std::get_if<api::ClusterQueue>(&object))
    outbox_.emplace_back(engine::QueueObjectUpserted{queue->queue});
  if (const auto* cohort = std::get_if<api::Cohort>(&object))
    outbox_.emplace_back(engine::QueueObjectUpserted{cohort->cohort});
  if (const auto* check = std::get_if<api::AdmissionCheck>(&object))
    outbox_.emplace_back(engine::QueueObjectUpserted{check->check});
  if (const auto* local = std::get_if<api::LocalQueue>(&object))
    outbox_.emplace_back(engine::QueueObjectUpserted{local->queue});
}

QueueController::Record& QueueController::add(const api::Workload& workload, Owner owner, Called called, Time created,
                                              const bridge::TopologyLevels& levels) {
  Record record{.workload = bridge::to_model(workload, levels),
                .owner = owner,
                .kind = std::move(called.kind),
                .name = std::move(called.name),
                .submitted = created};
  record.workload.uid = fmt::format("workload/{}/{}", workload.metadata.namespace_name, workload.metadata.name);
  record.workload.created = created;
  // One of this name that is over makes way.
  if (const auto known = by_uid_.find(record.workload.uid); known != by_uid_.end() && all_[known->second].finished) {
    outbox_.emplace_back(engine::WorkloadEnded{all_[known->second].workload.uid, true});
    known->second = all_.size();  // for who asks by its name
    record.workload.uid += fmt::format("/{}", all_.size());
  }
  by_uid_[record.workload.uid] = by_owner_[owner] = all_.size();
  return all_.emplace_back(std::move(record));
}

void QueueController::submit(const api::Workload& workload, Owner owner, Called called, Time created,
                             const bridge::TopologyLevels& levels, std::string refused) {
  Record& record = add(workload, owner, std::move(called), created, levels);
  record.workload.problem = record.refused = std::move(refused);
  if (record.workload.checkpoints.last) record.workload.checkpoints.last = created;  // before it came
  if (const std::string* name = workload.metadata.labels.find(api::kPriorityClassLabel); name != nullptr) {
    if (const auto known = priorities_.find(*name); known != priorities_.end()) {
      record.workload.priority = known->second;
    } else {
      record.waits_for_class = *name;
      record.workload.problem =
          fmt::format("WorkloadPriorityClass {} is not there, so that the {} waits for it", *name, record.kind);
    }
  }
  outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
}

std::optional<QueueController::Admitted> QueueController::resume(const queueing::SeenWorkload& stored, Owner owner,
                                                                 Called called, Time created,
                                                                 const bridge::TopologyLevels& levels, Time now,
                                                                 Duration ahead) {
  Record& record = add(stored.workload, owner, std::move(called), created, levels);
  if (workloads::is_of_pods(stored.workload)) record.workload.owner_uid.clear();  // pods have other UIDs here
  queueing::tell_past(stored, record.workload);
  const auto held = queueing::held_by(stored);
  engine::Event event = engine::WorkloadUpserted{record.workload};
  if (held) event = engine::WorkloadAdmitted{record.workload, *held};
  queueing::tell_time(event, now, ahead);
  record.workload =
      held ? std::get<engine::WorkloadAdmitted>(event).workload : std::get<engine::WorkloadUpserted>(event).workload;
  outbox_.push_back(std::move(event));
  for (const queueing::StoredCheck& check : stored.checks)
    outbox_.emplace_back(engine::WorkloadCheckReported{record.workload.uid, check.report, now});
  if (!held) return std::nullopt;
  record.given = held->assignment;
  if (!held->evicted.empty()) {
    leaving_.push_back(owner);
    return std::nullopt;
  }
  if (held->quota_only) return std::nullopt;
  record.admitted = now;
  return told(record, flavors_);
}

void QueueController::change(Owner owner, const api::Workload& workload, const bridge::TopologyLevels& levels,
                             std::string refused) {
  Record& record = all_[by_owner_.at(owner)];
  std::vector<model::PodSet> sets = bridge::to_model(workload, levels).pod_sets;
  if (sets.size() != record.workload.pod_sets.size()) return;
  for (size_t i = 0; i < sets.size(); ++i) {
    sets[i].name = record.workload.pod_sets[i].name;
    sets[i].reclaimable = record.workload.pod_sets[i].reclaimable;
  }
  record.workload.pod_sets = std::move(sets);
  record.refused = std::move(refused);
  if (record.waits_for_class.empty()) record.workload.problem = record.refused;
  outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
}

void QueueController::refuse(Owner owner, std::string why) {
  Record& record = all_[by_owner_.at(owner)];
  if (record.refused == why || record.finished) return;
  record.refused = std::move(why);
  if (!record.waits_for_class.empty()) return;
  record.workload.problem = record.refused;
  outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
}

void QueueController::name_members(Owner owner, const api::Workload& workload,
                                   const std::vector<std::vector<const api::Pod*>>& pods,
                                   const bridge::TopologyLevels& levels) {
  Record& record = all_[by_owner_.at(owner)];
  bool changed = false;
  for (size_t i = 0; i < pods.size(); ++i) {
    model::PodSet& set = record.workload.pod_sets[i];
    changed |= !pods[i].empty() || !set.members.empty();
    bridge::name_members(set, workload, pods[i], levels);
  }
  if (changed && !record.finished) outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
}

bool QueueController::waits(Owner owner, const quota::Admission& admission) const {
  const auto known = by_owner_.find(owner);
  if (known == by_owner_.end() || all_[known->second].finished || is_leaving(owner)) return false;
  const quota::WorkloadId id = admission.find(all_[known->second].workload.uid);
  return !id.valid() || admission.status(id).phase == quota::WorkloadPhase::kPending;
}

std::string QueueController::uid_of(Owner owner) const {
  const auto known = by_owner_.find(owner);
  return known == by_owner_.end() ? std::string() : all_[known->second].workload.uid;
}

void QueueController::reclaim(Owner owner, const std::vector<int32_t>& pods) {
  model::Workload& workload = all_[by_owner_.at(owner)].workload;
  bool changed = false;
  for (size_t set = 0; set < pods.size(); ++set)
    changed |= std::exchange(workload.pod_sets[set].reclaimable, pods[set]) != pods[set];
  if (changed) outbox_.emplace_back(engine::WorkloadUpserted{workload});
}

void QueueController::finish(Owner owner, Time now) {
  Record& record = all_[by_owner_.at(owner)];
  if (record.finished) return;
  record.finished = now;
  std::erase(leaving_, owner);
  outbox_.emplace_back(engine::WorkloadEnded{record.workload.uid});
}

void QueueController::set_ready(Owner owner, int32_t pods, Time now) {
  const auto known = by_owner_.find(owner);
  if (known == by_owner_.end()) return;
  Record& record = all_[known->second];
  if (!record.admitted || record.finished) return;
  int32_t wanted = 0;
  for (const quota::PodSetAssignment& set : record.given) wanted += set.count;
  if (record.ready == (pods >= wanted)) return;
  record.ready = !record.ready;
  outbox_.emplace_back(engine::WorkloadPodsReady{record.workload.uid, record.ready, now});
}

QueueController::Record* QueueController::find(const std::string& name) {
  const auto found =
      std::find_if(all_.rbegin(), all_.rend(), [&](const Record& record) { return record.name == name; });
  return found == all_.rend() ? nullptr : &*found;  // the latest
}

bool QueueController::report_check(const std::string& name, quota::CheckReport report, Time now) {
  const Record* record = find(name);
  if (record == nullptr) return false;
  outbox_.emplace_back(engine::WorkloadCheckReported{record->workload.uid, std::move(report), now});
  return true;
}

bool QueueController::set_active(const std::string& name, bool active) {
  Record* record = find(name);
  if (record == nullptr) return false;
  record->workload.active = active;
  outbox_.emplace_back(engine::WorkloadUpserted{record->workload});
  return true;
}

void QueueController::released(Owner owner) {
  std::erase(leaving_, owner);
  outbox_.emplace_back(engine::WorkloadReleased{all_[by_owner_.at(owner)].workload.uid});
}

size_t QueueController::find(const quota::AdmissionDecision& decision, const quota::Admission& admission) const {
  return by_uid_.at(admission.status(decision.workload).workload.uid);
}

void QueueController::reserve(const quota::AdmissionDecision& decision, const quota::Admission& admission) {
  all_[find(decision, admission)].given = decision.assignment;
}

QueueController::Admitted QueueController::admit(const quota::AdmissionDecision& decision,
                                                 const quota::Admission& admission, Time now) {
  Record& record = all_[find(decision, admission)];
  record.admitted = now;
  record.ready = false;
  record.given = decision.assignment;
  return told(record, admission.flavors());
}

QueueController::Admitted QueueController::told(const Record& record, const quota::Flavors& flavors) {
  Admitted out{record.owner, {}, {}};
  for (const quota::PodSetAssignment& set : record.given) {
    workloads::PodSetInfo& info = out.infos.emplace_back(workloads::PodSetInfo{record.workload.name, set.name});
    quota::FlavorTerms terms = quota::terms_of(set, flavors);
    info.node_labels = std::move(terms.node_labels);
    info.tolerations = std::move(terms.tolerations);
    out.counts.push_back(set.count);
  }
  return out;
}

QueueController::Owner QueueController::evict(const quota::AdmissionDecision& decision,
                                              const quota::Admission& admission) {
  Record& record = all_[find(decision, admission)];
  ++record.evictions;
  record.evicted_for = decision.preemptor.valid()
                           ? fmt::format("{} by {}", decision.reason,
                                         all_[by_uid_.at(admission.status(decision.preemptor).workload.uid)].name)
                           : decision.reason;
  record.admitted.reset();
  if (decision.deactivates) {
    record.workload.active = false;
    outbox_.emplace_back(engine::WorkloadUpserted{record.workload});
  }
  leaving_.push_back(record.owner);
  return record.owner;
}

// What was submitted, by the name of its Workload: "Job default/train".
std::string QueueController::called(const std::string& workload) const {
  const auto known = by_uid_.find("workload/" + workload);
  return known == by_uid_.end() ? workload : all_[known->second].kind + " " + all_[known->second].name;
}

std::vector<WorkloadReport> QueueController::workloads(const quota::Admission& admission) const {
  std::vector<WorkloadReport> out;
  for (const Record& record : all_) {
    WorkloadReport& row = out.emplace_back();
    row.kind = record.kind;
    row.name = record.name;
    row.uid = record.workload.uid;
    row.queue = record.workload.queue;
    row.priority = record.workload.priority;
    row.submitted = record.submitted;
    row.admitted = record.admitted;
    row.finished = record.finished;
    row.evictions = record.evictions;
    row.evicted_for = record.evicted_for;
    const quota::WorkloadId id = admission.find(record.workload.uid);
    if (!id.valid() && record.finished) row.state = state_of(quota::WorkloadPhase::kFinished);
    if (!id.valid()) continue;
    const quota::WorkloadStatus& status = admission.status(id);
    row.cluster_queue = status.cluster_queue;
    row.state = state_of(status.phase);
    row.reason = status.reason;
    row.message = status.message;
    if (status.phase == quota::WorkloadPhase::kPending) {
      row.waits_for = admission.explain(id);
      row.message = row.waits_for.message;
      for (quota::WaitingFor::Account& account : row.waits_for.quota)
        for (quota::WaitingFor::HeldBy& holder : account.holders) holder.workload = called(holder.workload);
      continue;
    }
    for (const quota::PodSetAssignment& set : record.given) {
      WorkloadReport::Set& given = row.pod_sets.emplace_back();
      given.name = set.name;
      given.count = set.count;
      for (const auto& [resource, pick] : set.flavors) given.flavors[resource] = pick.flavor;
    }
  }
  return out;
}

std::vector<QueueReport> QueueController::queues(const quota::Admission& admission) {
  std::vector<QueueReport> out;
  for (const auto& [name, queue] : admission.cluster_queues()) {
    const quota::QueueStatus status = admission.queue_status(name);
    QueueReport& row = out.emplace_back();
    row.name = name;
    row.cohort = queue.cohort;
    row.inactive = status.active ? "" : status.reason;
    row.pending = status.pending;
    row.admitted = status.admitted;
    for (const auto& held : status.held) {
      int64_t nominal = 0;
      for (const model::ResourceGroup& group : queue.groups)
        for (const model::FlavorQuotas& flavor : group.flavors)
          if (const auto quota = flavor.resources.find(held.resource);
              flavor.flavor == held.flavor && quota != flavor.resources.end())
            nominal = quota->second.nominal;
      row.held.push_back({held.flavor, held.resource, held.total, held.borrowed, nominal});
    }
  }
  return out;
}

}  // namespace berth::scenario
