// Times of workloads: when time alone has one leave, or wait in its queue again.
//
// Whatever a workload waits for in time is one moment, Record::due. When it comes the workload is looked at like one
// with new facts.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "quota/admission_keeper.h"
#include "quota/told_second.h"

namespace berth::quota {

std::string time_text(Time time, Duration created_ahead) {
  if (created_ahead == Duration{}) return format_duration({time.nanos});
  return format_rfc3339(told_second(time + created_ahead));
}

std::optional<Duration> declared_runtime(const Record& record) {
  const model::Workload& workload = record.status.workload;
  if (!workload.max_execution) return workload.runtime;
  const Duration left = *workload.max_execution - record.ran;
  return std::min(workload.runtime.value_or(left), left);
}

std::optional<Time> Admission::next_due() const {
  std::optional<Time> next = spending_.next_due();
  if (!due_.empty()) next = std::min(next.value_or(due_.begin()->first), due_.begin()->first);
  for (const auto& [id, room] : kept_.rooms)
    if (room.free_by > now_ && room.free_by < Time{INT64_MAX})
      next = std::min(next.value_or(room.free_by), room.free_by);
  return next;
}

void Admission::wake_due() {
  while (!due_.empty() && due_.begin()->first <= now_) {
    const auto [due, id] = *due_.begin();
    due_.erase(due_.begin());
    Record& record = this->record(id);
    record.due.reset();
    touched_.push_back(id);
    if (record.standing == Standing::kHolding && record.admitted &&
        due == *record.admitted + ledger_->terms(ledger_->holder(id).queue).min_runtime)
      wake_tree(ledger_->holder(id).queue);  // from now on it may be taken from
  }
}

void Admission::schedule(WorkloadId id) {
  Record& record = this->record(id);
  const std::optional<Time> next = deadline(record);
  if (next == record.due) return;
  if (record.due) due_.erase({*record.due, id});
  record.due = next;
  if (next) due_.emplace(*next, id);
}

// When something is to be done about the workload that is not to be done yet.
std::optional<Time> Admission::deadline(const Record& record) const {
  if (record.standing != Standing::kHolding) {
    if (!backs_off(record)) return std::nullopt;
    return record.eviction->requeue_at;
  }
  if (!record.admitted || leaving(record)) return std::nullopt;
  std::optional<Time> next = not_ready_until(record);
  if (const std::optional<Duration>& limit = record.status.workload.max_execution) {
    const Time end = *record.admitted + (*limit - record.ran);
    next = std::min(next.value_or(end), end);
  }
  if (const std::optional<Time> until = spared_until(record)) next = std::min(next.value_or(*until), *until);
  return next;
}

// Until when it has not run so long that it may be taken from; none: it may be.
std::optional<Time> Admission::spared_until(const Record& record) const {
  const auto queue = queues_.find(record.status.cluster_queue);
  if (queue == queues_.end() || !record.admitted) return std::nullopt;
  const Time until = *record.admitted + queue->second.victims.min_runtime;
  return until > now_ ? std::optional(until) : std::nullopt;
}

std::optional<Term> Admission::term(WorkloadId id) const {
  const Record& record = this->record(id);
  if (!record.admitted || record.standing != Standing::kHolding) return std::nullopt;
  return Term{*record.admitted, record.ran};
}

std::optional<Time> Admission::expected_end(WorkloadId id) const {
  const Record& record = this->record(id);
  const std::optional<Time> since = record.standing == Standing::kHolding ? record.admitted : std::nullopt;
  const std::optional<Duration> declared = declared_runtime(record);
  return since && declared ? std::optional(*since + *declared) : std::nullopt;
}

// Why a workload that is admitted may not go on.
std::optional<EvictionReason> Admission::overdue(const Record& record) const {
  if (!record.admitted) return std::nullopt;
  if (const std::optional<Time> until = not_ready_until(record); until && *until <= now_)
    return too_long_not_ready(record);
  const std::optional<Duration>& limit = record.status.workload.max_execution;
  if (limit && record.ran + (now_ - *record.admitted) >= *limit)
    return EvictionReason{"DeactivatedDueToMaximumExecutionTimeExceeded",
                          "The workload is deactivated due to exceeding the maximum execution time", true};
  return std::nullopt;
}

// Until when its pods may be without being ready; none: they are, or nobody asks.
std::optional<Time> Admission::not_ready_until(const Record& record) const {
  const WaitForPodsReady& options = options_.pods_ready;
  if (!options.enabled || record.readiness == Readiness::kReady) return std::nullopt;
  if (record.readiness == Readiness::kStarting) return *record.admitted + options.timeout;
  const Duration limit = options.recovery_timeout.value_or(options.timeout);
  if (limit == Duration{}) return std::nullopt;
  return record.recovers_since + limit;
}

bool Admission::waits_for_pods() const { return options_.pods_ready.block_admission && !not_ready_.empty(); }

std::optional<EvictionReason> Admission::too_long_not_ready(const Record& record) const {
  const WaitForPodsReady& options = options_.pods_ready;
  const int32_t requeues = record.status.requeues + 1;
  if (options.backoff_limit && requeues > *options.backoff_limit)
    return EvictionReason{"DeactivatedDueToRequeuingLimitExceeded",
                          "The workload is deactivated due to exceeding the maximum number of re-queuing retries",
                          true};
  EvictionReason out{std::string(kPodsReadyTimeout),
                     "Exceeded the PodsReady timeout " + record.status.workload.full_name()};
  out.requeue_at = now_ + options.backoff(requeues);
  if (options.timestamp == RequeuingTimestamp::kEviction) out.ranks_since = now_ + options_.created_ahead;
  return out;
}

void Admission::pods_ready(WorkloadId id, bool ready, Time at) {
  Record& record = this->record(id);
  const bool was_ready = record.readiness == Readiness::kReady;
  if (!options_.pods_ready.enabled || !record.admitted || record.standing != Standing::kHolding || ready == was_ready)
    return;
  record.readiness = ready ? Readiness::kReady : Readiness::kRecovering;
  record.recovers_since = at;
  if (ready) not_ready_.erase(id);
  else not_ready_.insert(id);
  touched_.push_back(id);
}

void Admission::take_over(const Admission& from, Time now) {
  usage_.take_averages(from.usage_, now);
  for (const Record& known : from.records_) {
    const WorkloadId id = known.key.id.valid() ? find(known.status.workload.uid) : WorkloadId{};
    if (!id.valid()) continue;
    Record& record = this->record(id);
    record.evicted_in = known.evicted_in;
    if (record.standing == Standing::kHolding) {
      if (const Holder* const had = from.ledger_ ? from.ledger_->find(known.key.id) : nullptr) {
        Holder holder = ledger_->holder(id);
        holder.reserved = had->reserved;
        holder.won_in = had->won_in;
        ledger_->replace(std::move(holder));
      }
      continue;
    }
    record.waits_since = known.waits_since;
    record.keeps_from = known.keeps_from;
    record.keeps_pause = known.keeps_pause;
    record.eviction = known.eviction;
    record.ran = known.ran;
    record.status.requeues = known.status.requeues;
    record.status.requeue_at = known.status.requeue_at;
  }
  epoch_ = from.epoch_;
  for (const auto& [owner, known] : from.kept_.rooms) {
    const WorkloadId id = find(from.record(owner).status.workload.uid);
    if (!id.valid()) continue;
    KeptRoom& room = kept_.put(id, known);
    touched_.push_back(id);
    room.gives_way.clear();
    for (const WorkloadId holder : known.gives_way)
      if (const WorkloadId here = find(from.record(holder).status.workload.uid); here.valid())
        room.gives_way.insert(here);
    if (room.keeps_places()) room.looked_at = Time{INT64_MIN};  // places are looked for anew
    room.in_nodes = room.in_part = false;
  }
}

// It was evicted, and is not to wait in a queue yet.
bool Admission::backs_off(const Record& record) const {
  return record.eviction && !record.eviction->deactivates && record.eviction->requeue_at &&
         *record.eviction->requeue_at > now_;
}

// It is admitted.
void Admission::begin_term(Record& record) {
  record.admitted = now_;
  ledger_->set_began(record.key.id, now_);
  record.readiness = Readiness::kStarting;
  count_usage(record, false);
  charge(record, now_);
  schedule(record.key.id);
}

// What it has in use counts for its LocalQueue, from now on or since it was admitted.
void Admission::count_usage(Record& record, bool restored) {
  const auto queue = queues_.find(record.status.cluster_queue);
  if (queue == queues_.end() || !queue->second.usage_based) return;
  UsedLocally& used = record.counted.emplace();
  used.local_queue = {record.status.workload.namespace_name, record.status.workload.queue};
  for (const PodSetAssignment& set : record.status.assignment) used.amounts.add(set.usage);
  if (restored) usage_.resume(used.local_queue, used.amounts, record.admitted.value_or(now_), now_);
  else usage_.begin(used.local_queue, used.amounts, now_);
}

// It gives back what it has: that was in use until the next cycle, whose time is known.
void Admission::end_usage(Record& record) {
  if (record.counted) uncounted_.no_longer_used.push_back(*std::exchange(record.counted, std::nullopt));
  if (record.charge) uncounted_.no_longer_charged.push_back(*std::exchange(record.charge, std::nullopt));
}

// Somebody made it active again: it begins with all its time and all its retries.
void Admission::reactivate(Record& record) {
  if (record.deactivated()) record.ran = {};
  record.begins_anew = record.deactivated() && leaving(record);
  record.eviction.reset();
  record.status.requeues = 0;
  record.status.requeue_at.reset();
}

Duration WaitForPodsReady::backoff(int32_t n) const {
  Duration out = backoff_base;
  for (int32_t i = 1; i < n && out < backoff_max; ++i) out = out * 2;
  return std::min(out, backoff_max);
}

}  // namespace berth::quota
