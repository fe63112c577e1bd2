// Whose turn it is: the part of Admission that orders those who wait.
#include <algorithm>
#include <set>
#include <utility>

#include "quota/admission.h"

namespace berth::quota {
namespace {

// Of a StrictFIFO queue another comes first now: what it was told as the head need not hold any more.
void pass_turn(Record& record) {
  if (record.standing != Standing::kPending || !record.key.behind_sticky) return;
  record.lacks_quota = false;
  record.kept_for_it.clear();
  record.status.reason = "PendingEvaluation";
  record.status.message = turn_text(record);
}

}  // namespace

// The first of each active queue. They stay in their queue's set until they are admitted or parked.
std::vector<Entry> Admission::heads() {
  std::vector<Entry> entries;
  for (auto& [name, waiting] : waiting_) {
    for (const WorkloadId id : waiting.lead()) {
      want_place_.erase(id);
      await_turn(record(id));
    }
    if (waiting.pending.empty()) continue;
    const auto spec = queues_.find(name);
    const WorkloadId id = head(spec->second, waiting.pending);
    const WorkloadId last = std::exchange(waiting.last_head, id);
    if (last != id && spec->second.strategy == model::QueueingStrategy::kStrictFifo && last.valid())
      pass_turn(record(last));
    entries.push_back({id, ledger_->tree().queue(name), &spec->second, record(id).next_flavor, {}, {}, {}});
  }
  return entries;
}

// What the workload's LocalQueue has used of late, where its ClusterQueue goes by that.
double Admission::local_usage(const model::ClusterQueue& queue, const model::Workload& workload) const {
  if (!queue.usage_based) return 0;
  const model::LocalQueue* local = local_queue(workload);
  const int64_t weight = local == nullptr ? model::kFairWeightUnit : local->fair_weight;
  return usage_.weighted({workload.namespace_name, workload.queue}, weight, now_);
}

// Whose turn it is of those that wait in a queue. Where it is usage-based, the first of the LocalQueue that has used
// the least of late; but who others have been evicted for comes first there, too. O(those waiting).
WorkloadId Admission::head(const model::ClusterQueue& queue, const std::set<OrderKey>& pending) const {
  const OrderKey* best = &*pending.begin();
  if (!queue.usage_based || !best->behind_sticky) return best->id;
  double least = local_usage(queue, record(best->id).status.workload);
  std::set<std::pair<std::string_view, std::string_view>> seen;  // LocalQueues
  for (const OrderKey& key : pending) {
    const model::Workload& workload = record(key.id).status.workload;
    if (!seen.emplace(workload.namespace_name, workload.queue).second) continue;
    const double used = local_usage(queue, workload);
    if (used >= least) continue;
    best = &key;
    least = used;
  }
  return best->id;
}

}  // namespace berth::quota
