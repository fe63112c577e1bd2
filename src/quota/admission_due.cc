// When those that wait are to have room kept, and which of a queue are looked at (quota/admission_keeper.h).
#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>

#include "quota/admission_keeper.h"

namespace berth::quota {
namespace {

// Of a queue, beside those for whom room is kept: those that are looked at, and those for whom none could be kept
// lately.
constexpr size_t kFirstOnes = 4, kPausedMax = 64;

}  // namespace

bool Admission::Keeper::is_due(const Record& record) const {
  return record.waits_since && *record.waits_since + options().after <= admission.now_;
}

// When room may be kept for it.
Time Admission::Keeper::due_at(const Record& record) const {
  if (!record.waits_since) return Time{INT64_MAX};
  return std::max(*record.waits_since + options().after, record.keeps_from);
}

void Admission::offers_changed() {
  for (Record& record : records_) {
    if (!waits(record.standing) || record.keeps_from == Time{INT64_MIN}) continue;
    record.keeps_from = Time{INT64_MIN};
    record.keeps_pause = {};
    Keeper{*this}.look_at_queue(record.status.cluster_queue);
  }
}

void Admission::lost_kept(WorkloadId id) {
  const auto room = kept_.rooms.find(id);
  if (room != kept_.rooms.end()) Keeper{*this}.wake(id, room->second);
}

bool Admission::move_kept(WorkloadId id) {
  const auto room = kept_.rooms.find(id);
  const bool keeps = room != kept_.rooms.end() && room->second.in_nodes && !stale_ && waits(record(id).standing);
  return keeps && Keeper{*this}.move(id, room->second);
}

// For whom none could be kept lately, and neither for those alone for whom some is, nor for what his user has.
bool Admission::Keeper::stays_roomless(WorkloadId id, const Record& record) const {
  return record.keeps_from > admission.now_ && !admission.kept_.behind.contains(id) &&
         record.status.reason != "UserLimit";
}

// Whether those that wait in the queue are in another order than when they were looked at: what their LocalQueues have
// used changes with time.
bool Admission::Keeper::is_another_order(const Waiting& waiting) const {
  return !std::ranges::is_sorted(waiting.by_usage, {}, [&](WorkloadId id) { return used_of_late(id); });
}

// Those that wait in a queue, the first in order first. Where what LocalQueues have used counts: O(those waiting).
class Admission::Keeper::InOrder {
 public:
  InOrder(const Keeper& keeper, Waiting& waiting) : sets_{&waiting.pending, &waiting.parked, &waiting.behind} {
    for (size_t i = 0; i < sets_.size(); ++i) next_[i] = sets_[i]->begin();
    waiting.by_usage.clear();
    std::map<std::pair<std::string_view, std::string_view>, double> used;  // of LocalQueues
    if (!keeper.admission.kept_.by_usage) return;
    for (WorkloadId id = first_of_sets(); id.valid(); id = first_of_sets()) {
      const Record& record = keeper.admission.record(id);
      const auto queue = keeper.admission.queues_.find(record.status.cluster_queue);
      if (queue == keeper.admission.queues_.end() || !queue->second.usage_based) break;
      const model::Workload& workload = record.status.workload;
      const auto [at, is_new] = used.try_emplace({workload.namespace_name, workload.queue}, 0);
      if (is_new) {
        at->second = keeper.admission.local_usage(queue->second, workload);
        waiting.by_usage.push_back(id);
      }
      by_usage_.emplace_back(record.key.behind_sticky, at->second, by_usage_.size(), id);
    }
    if (by_usage_.empty()) {
      for (size_t i = 0; i < sets_.size(); ++i) next_[i] = sets_[i]->begin();
      return;
    }
    std::ranges::stable_sort(waiting.by_usage, {}, [&](WorkloadId id) { return keeper.used_of_late(id); });
    std::ranges::make_heap(by_usage_, std::greater());
  }
  // Invalid: that were all.
  WorkloadId next() {
    if (by_usage_.empty()) return first_of_sets();
    std::ranges::pop_heap(by_usage_, std::greater());
    const WorkloadId id = std::get<WorkloadId>(by_usage_.back());
    by_usage_.pop_back();
    return id;
  }

 private:
  WorkloadId first_of_sets() {
    size_t first = sets_.size();
    for (size_t i = 0; i < sets_.size(); ++i)
      if (next_[i] != sets_[i]->end() && (first == sets_.size() || *next_[i] < *next_[first])) first = i;
    return first == sets_.size() ? WorkloadId{} : (next_[first]++)->id;
  }
  std::array<const std::set<OrderKey>*, 3> sets_;
  std::array<std::set<OrderKey>::const_iterator, 3> next_;
  std::vector<std::tuple<bool, double, size_t, WorkloadId>> by_usage_;  // a heap of those left
};

// Has those of a queue looked at whose time has come, of the first in order for which no room is kept, and may be.
void Admission::Keeper::wake_first_ones(Waiting& waiting) {
  if (waiting.quiet_until && *waiting.quiet_until > admission.now_ && !is_another_order(waiting))
    return consider_time(*waiting.quiet_until);
  std::array<WorkloadId, kFirstOnes> due;
  size_t seen = 0, is_due = 0, paused = 0;
  Time next_due{INT64_MAX};
  waiting.first_roomless = {};
  bool is_first_known = false;
  InOrder all(*this, waiting);
  for (int32_t kept = 0; seen < kFirstOnes && (kept < options().per_queue || !is_first_known);) {
    const WorkloadId id = all.next();
    if (!id.valid()) break;
    const auto room = admission.kept_.rooms.find(id);
    if (room != admission.kept_.rooms.end()) {
      if (!room->second.may_never_be_lent()) ++kept;
      continue;
    }
    const Record& record = admission.record(id);
    if (!is_first_known && !stays_roomless(id, record)) {
      WorkloadId& roomless = waiting.first_roomless;
      if (!roomless.valid() || before({id}, {roomless})) roomless = id;
      is_first_known = record.key.behind_sticky;
    }
    const bool pauses = record.keeps_from > admission.now_;
    if (pauses && paused++ == kPausedMax) break;
    if (kept >= options().per_queue) continue;
    if (!pauses) ++seen;
    const Time at = due_at(record);
    if (at > admission.now_) next_due = std::min(next_due, at);
    else if (record.standing != Standing::kPending) due[is_due++] = id;
  }
  consider_time(next_due);
  waiting.quiet_until = next_due;
  for (size_t i = 0; i < is_due; ++i) admission.enqueue(due[i]);
}

void Admission::Keeper::look_at_queue(const std::string& cluster_queue) const {
  const auto waiting = admission.waiting_.find(cluster_queue);
  if (waiting != admission.waiting_.end()) waiting->second.quiet_until.reset();
}

void Admission::Keeper::consider_time(Time at) {
  std::optional<Time>& next = admission.kept_.next_due;
  if (at < Time{INT64_MAX}) next = std::min(next.value_or(at), at);
}

}  // namespace berth::quota
