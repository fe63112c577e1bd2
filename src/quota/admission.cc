#include "quota/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/quantity.h"
#include "quota/alike.h"

namespace berth::quota {
std::string turn_text(const Record& record) {
  return fmt::format("waits for its turn in ClusterQueue {}, behind workloads that come before it",
                     record.status.cluster_queue);
}

void await_turn(Record& record) {
  record.standing = Standing::kPending;
  record.tries = 0;
  const std::string& told = record.status.reason;
  const bool waited_for_time = record.eviction && told == record.eviction->reason;
  const bool stays = told == "WaitingForQuota" || told == "ExceedsMaxQuota" || told == "NoMatchingFlavor";
  if (!stays || waited_for_time) {  // nothing is known (now)
    record.status.reason = "PendingEvaluation";
    record.status.message = turn_text(record);
  }
}

Admission::Admission(AdmissionOptions options, Places* places)
    : options_(std::move(options)), places_(places), usage_(options_.usage), spending_(options_.created_ahead) {}

WorkloadId Admission::find(const std::string& uid) const {
  const auto known = by_uid_.find(uid);
  return known == by_uid_.end() ? WorkloadId{} : known->second;
}

void Admission::places_changed() {
  const std::set<WorkloadId> woken = std::exchange(want_place_, {});
  for (const WorkloadId id : woken) {  // what they were told need not hold any more
    const Standing standing = record(id).standing;
    if (standing == Standing::kHolding) touched_.push_back(id);
    if (standing == Standing::kBehind) {  // the first of its group is to have a turn
      Waiting& waiting = waiting_.at(record(id).status.cluster_queue);
      waiting.wake(record(id).likeness, waiting.groups.at(record(id).likeness));
      want_place_.insert(want_place_.end(), id);  // until it is told something else
    } else if (waits(standing)) {
      enqueue(id);
    }
  }
  for (const auto& [name, waiting] : waiting_)
    if (waiting.last_head.valid()) record(waiting.last_head).tries = 0;
}

std::vector<WantsPlace> Admission::wanting_places() const {
  std::vector<const Record*> all;
  for (const WorkloadId id : want_place_)
    if (waits(record(id).standing) && record(id).options != nullptr) all.push_back(&record(id));
  std::sort(all.begin(), all.end(), [](const Record* a, const Record* b) { return a->key < b->key; });
  std::vector<WantsPlace> out;
  const ReservationOptions& kept = options_.reservations;
  for (const Record* each : all) {
    const bool waited = kept.enabled && each->waits_since && *each->waits_since + kept.after <= now_;
    out.push_back({each->key.id, each->options, waited});
  }
  return out;
}

Claimant Admission::claimant(const Record& record) const {
  const model::Workload& workload = record.status.workload;
  return {record.key.id, ledger_->tree().queue(record.status.cluster_queue), workload.priority, workload.created,
          workload.uid};
}

// What the workload holds with its assignment, and what is known of it, but for when it came to it.
Holder Admission::holder_of(const Record& record) const {
  Holder out;
  static_cast<Claimant&>(out) = claimant(record);
  out.usage = usage_of(ledger_->tree(), record.status.assignment, record.status.workload);
  out.user = record.status.workload.user;
  out.checkpoints = record.status.workload.checkpoints;
  out.began = record.admitted;
  for (const PodSetAssignment& set : record.status.assignment)
    for (const auto& [resource, amount] : set.usage)
      out.gpu_micros = saturating_add(out.gpu_micros, model::gpu_micros(resource, amount));
  return out;
}

// Evicted, and not released yet.
bool Admission::leaving(const Record& record) const {
  return record.standing == Standing::kHolding && ledger_->holder(record.key.id).evicted;
}

// What had become of a workload before this process knew it.
void Admission::begin_record(Record& record, const model::Workload& workload) const {
  record.ran = workload.past_execution;
  if (!workload.requeue) return;
  const model::Requeue& before = *workload.requeue;
  const bool of_readiness = before.reason == kPodsReadyTimeout;
  const bool keeps_place = of_readiness && options_.pods_ready.timestamp == RequeuingTimestamp::kCreation;
  record.status.requeues = before.count;
  const bool for_good = before.reason.starts_with("DeactivatedDueTo");
  if (!for_good && !of_readiness && before.reason != kCheckEviction) return;
  record.status.evicted = before.reason;
  record.eviction = EvictionReason{before.reason, before.message, for_good};
  if (for_good) return;
  record.status.requeue_at = record.eviction->requeue_at = before.at;
  if (!keeps_place) record.eviction->ranks_since = before.evicted + options_.created_ahead;
}

WorkloadId Admission::upsert(model::Workload workload) {
  const WorkloadId next{static_cast<uint32_t>(records_.size())};
  const auto [at, is_new] = by_uid_.try_emplace(workload.uid, next);
  const WorkloadId id = at->second;
  if (is_new) begin_record(records_.emplace_back(), workload);
  else leave(id);
  workload.requeue.reset();  // it has been looked at
  Record& record = this->record(id);
  const bool was_active = is_new || record.status.workload.active;
  if (!was_active && workload.active) reactivate(record);
  const model::Workload& known = record.status.workload;
  if (is_new || known.active != workload.active || known.problem != workload.problem || !alike(known, workload))
    ++epoch_;  // others may be taken from than before
  const Time since = record.eviction ? record.eviction->ranks_since.value_or(workload.created) : workload.created;
  record.key = {record.key.behind_sticky, -workload.priority, since, workload.uid, id};
  record.likeness = likeness(workload);
  record.status.workload = std::move(workload);
  if (record.standing == Standing::kHolding) update_holder(record);
  touched_.push_back(id);
  return id;
}

// New facts of who is admitted: his priority, and what he has reclaimed.
void Admission::update_holder(const Record& record) {
  const Holder& before = ledger_->holder(record.key.id);
  Holder holder = holder_of(record);
  holder.reserved = before.reserved;
  holder.evicted = before.evicted;
  holder.won_in = before.won_in;
  const bool gives_back = holder.usage != before.usage;
  const QuotaNode queue = before.queue;
  holder.queue = queue;
  ledger_->replace(std::move(holder));
  if (gives_back) wake_tree(queue);
}

// Gives back what it holds, and wakes those who may get it.
void Admission::vacate(WorkloadId id) {
  Record& record = this->record(id);
  if (record.standing == Standing::kHolding) {
    const QuotaNode queue = ledger_->holder(id).queue;
    ledger_->release(id);
    // As in Kueue: what a stopped LocalQueue gave back wakes nobody, so that it is there when the queue goes on.
    const model::LocalQueue* local = local_queue(record.status.workload);
    if (local == nullptr || local->stop == model::StopPolicy::kNone) wake_tree(queue);
  } else {
    leave(id);
  }
  record.standing = Standing::kNone;
  want_place_.erase(id);
  not_ready_.erase(id);
  end_usage(record);
  record.key.behind_sticky = true;
  record.next_flavor.clear();
  record.promised.reset();
  release_places(id);
  record.placeless = record.status.lent_room = false;
  record.status.assignment.clear();
  record.status.checks.clear();
  record.status.phase = WorkloadPhase::kPending;
  schedule(id);
}

void Admission::release_places(WorkloadId id) {
  if (places_ != nullptr) places_->release(id);
}

void Admission::finish(WorkloadId id) {
  ++epoch_;
  vacate(id);
  WorkloadStatus& status = record(id).status;
  status.phase = WorkloadPhase::kFinished;
  for (std::string* text : {&status.reason, &status.message, &status.evicted, &status.preempted}) text->clear();
}

void Admission::remove(WorkloadId id) {
  ++epoch_;
  vacate(id);
  by_uid_.erase(record(id).status.workload.uid);
  record(id) = Record{};
}

void Admission::released(WorkloadId id) {
  if (record(id).deactivated()) ++epoch_;  // for good, as one that has finished
  vacate(id);
  touched_.push_back(id);
}

void Admission::evict(WorkloadId id, EvictionReason why, std::vector<AdmissionDecision>& decisions) {
  Record& record = this->record(id);
  record.status.evicted = why.reason;
  record.status.preempted.clear();
  record.eviction = why;
  record.status.requeue_at = why.requeue_at;
  if (why.reason == kPodsReadyTimeout) ++record.status.requeues;
  ledger_->set_evicted(id);
  want_place_.erase(id);
  record.checks_retry_at = {};
  release_places(id);
  schedule(id);
  AdmissionDecision& decision = decisions.emplace_back();
  decision.kind = AdmissionDecision::Kind::kEvict;
  decision.workload = id;
  decision.cluster_queue = record.status.cluster_queue;
  decision.reason = std::move(why.reason);
  decision.message = std::move(why.message);
  decision.deactivates = why.deactivates;
}

void Admission::leave(WorkloadId id) {
  Record& record = this->record(id);
  if (record.standing == Standing::kHolding) return;
  want_place_.erase(id);
  const auto waiting = waiting_.find(record.status.cluster_queue);
  if (waiting == waiting_.end()) return;
  if (record.standing == Standing::kPending) waiting->second.take(record.key, record.likeness);
  if (record.standing == Standing::kParked) waiting->second.take_parked(record.key);
  if (record.standing == Standing::kBehind) waiting->second.leave_group(record.key, record.likeness);
  record.standing = Standing::kNone;
}

void Admission::enqueue(WorkloadId id) {
  leave(id);
  Record& record = this->record(id);
  if (!record.waits_since) record.waits_since = now_;
  await_turn(record);
  waiting_[record.status.cluster_queue].add(record.key, record.likeness);
}

void Admission::park(WorkloadId id) {
  leave(id);
  Record& record = this->record(id);
  record.key.behind_sticky = true;
  record.standing = Standing::kParked;
  waiting_[record.status.cluster_queue].add_parked(record.key);
}

// Who is like a head that has been parked is told the same, if it comes behind it, and waits in a group from now on.
// All of a group are alike for quota.
void Admission::park_alike(const Record& head) {
  if (head.evicted_in == epoch_) return;  // the others might spare fewer
  Waiting& waiting = waiting_.at(head.status.cluster_queue);
  const bool wants_place = want_place_.contains(head.key.id);
  const bool aside = kept_.aside.ids.contains(head.key.id) && head.status.reason == "WaitingForQuota";
  const bool by_quota = (head.lacks_quota || aside) && !wants_place;  // who differs in labels alone is told the same
  const auto like_head = [&](const Record& other) {
    const model::Workload &a = other.status.workload, &b = head.status.workload;
    return by_quota ? alike_for_quota(a, b) : alike(a, b);
  };
  const auto all_like_head = [&](const Waiting::Group& group) {
    const auto is_like = [&](const OrderKey* key) { return like_head(record(key->id)); };
    return by_quota ? group.members.empty() || is_like(*group.members.begin())
                    : std::ranges::all_of(group.members, is_like);
  };
  const auto plain = [](const Record& each) {
    return each.key.behind_sticky && !each.promised && each.next_flavor.empty();
  };
  // In a group the order is that of creation, so that who is behind could take from no more workloads.
  const auto may_group = [&](const Record& each) {
    return plain(each) && each.key.since == each.status.workload.created;
  };
  const auto tell = [&](Record& other) {
    other.status.reason = head.status.reason;
    other.status.message = head.status.message;
    other.lacks_quota = head.lacks_quota;
    other.kept_for_it.clear();
    other.options = head.options;
    if (wants_place) want_place_.insert(other.key.id);
    else want_place_.erase(other.key.id);
  };
  bool groups = may_group(head);
  if (const auto at = waiting.groups.find(head.likeness); at != waiting.groups.end()) {
    Waiting::Group& group = at->second;
    const OrderKey* first = group.members.empty() ? nullptr : *group.members.begin();
    groups = groups && all_like_head(group);
    if (groups && group.awake && (first == nullptr || head.key < *first)) {
      for (const OrderKey* key : group.members) tell(record(key->id));
      group.awake = false;
      group.leader = {};  // it is told below, or waits on by itself
    }
  }
  if (const auto pending = waiting.alike.find(head.likeness); pending != waiting.alike.end()) {
    const std::vector<WorkloadId> others(pending->second.begin(), pending->second.end());
    for (const WorkloadId id : others) {
      Record& other = record(id);
      if (!plain(other) || other.status.workload.created < head.status.workload.created || !like_head(other)) continue;
      tell(other);
      const bool joins = groups && may_group(other);
      other.standing = joins ? Standing::kBehind : Standing::kParked;
      if (joins) waiting.join(other.key, other.likeness);
      else waiting.park(other.key, other.likeness);
    }
  }
  if (!groups) return;
  record(head.key.id).standing = Standing::kBehind;
  waiting.join(head.key, head.likeness);
}

// Its victims make room for it: nobody of its queue comes before it.
void Admission::make_sticky(WorkloadId id) {
  leave(id);
  record(id).key.behind_sticky = false;
  enqueue(id);
}

void Admission::hold_back(WorkloadId id, std::string reason, std::string message) {
  leave(id);
  Record& record = this->record(id);
  record.standing = Standing::kHeldBack;
  record.waits_since.reset();
  record.lacks_quota = false;
  record.status.reason = std::move(reason);
  record.status.message = std::move(message);
}

// Whoever was parked anywhere in the queue's tree may fit now.
void Admission::wake_tree(QuotaNode queue) {
  const QuotaTree& tree = ledger_->tree();
  for (const QuotaNode each : tree.queues_below(tree.root(queue))) {
    const auto waiting = waiting_.find(tree.name(each));
    if (waiting == waiting_.end()) continue;
    waiting->second.wake();
    for (const OrderKey& key : waiting->second.pending) {
      Record& woken = record(key.id);
      woken.tries = 0;
      if (woken.standing == Standing::kPending) continue;
      want_place_.erase(key.id);
      await_turn(woken);
      waiting->second.alike[woken.likeness].insert(key.id);
    }
  }
}

}  // namespace berth::quota
