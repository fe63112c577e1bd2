// The part of Admission that sums up queues, for people and their dashboards.
#include "quota/admission.h"

namespace berth::quota {

namespace {

template <typename Key>
const QueueCounts& counts_of(const std::map<Key, QueueCounts>& queues, const Key& key) {
  static const QueueCounts k_nothing;
  const auto at = queues.find(key);
  return at == queues.end() ? k_nothing : at->second;
}

}  // namespace

const QueueCounts& QueueOverview::of(const std::string& cluster_queue) const {
  return counts_of(cluster_queues, cluster_queue);
}
const QueueCounts& QueueOverview::of(const std::pair<std::string, std::string>& local_queue) const {
  return counts_of(local_queues, local_queue);
}

// One whose own queue or that of its namespace is stopped, or which is itself, does not count.
bool Admission::is_counted_as_waiting(const Record& record) const {
  if (waits(record.standing)) return true;
  const model::LocalQueue* local = local_queue(record.status.workload);
  return record.standing == Standing::kHeldBack && record.status.workload.active && local != nullptr &&
         local->stop == model::StopPolicy::kNone;
}

QueueStatus Admission::queue_status(const std::string& cluster_queue, const QueueOverview& overview) const {
  QueueStatus status;
  const model::ClusterQueue& queue = queues_.find(cluster_queue)->second;
  if (const std::string reason = inactive_reason(queue); !reason.empty()) {
    status.active = false;
    status.reason = reason;
    status.why = why_inactive(queue, reason, flavors_, checks_, spending_);
  }
  const QueueCounts& counts = overview.of(cluster_queue);
  status.pending = counts.pending;
  status.reserving = counts.reserving;
  status.admitted = counts.admitted;
  const QuotaTree& tree = ledger_->tree();
  const QuotaNode node = tree.queue(cluster_queue);
  for (const model::ResourceGroup& group : queue.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      for (const auto& [resource, quota] : flavor.resources) {
        const int64_t used = tree.usage(node, tree.find(flavor.flavor, resource));
        // By itself it borrows nothing: its quota was lowered.
        const int64_t over = tree.has_parent(node) ? std::max<int64_t>(0, used - quota.nominal) : 0;
        const auto of_admitted = counts.used.find({flavor.flavor, resource});
        status.held.push_back(
            {flavor.flavor, resource, used, over, of_admitted == counts.used.end() ? 0 : of_admitted->second});
      }
  if (options_.fair) status.share = tree.share(node);
  return status;
}

// By itself, or by one that is like it.
bool has_a_turn(const Record& record, const WaitingByQueue& waiting) {
  if (record.standing != Standing::kBehind) return record.standing == Standing::kPending;
  return waiting.find(record.status.cluster_queue)->second.groups.at(record.likeness).awake;
}

// What the holder has of quota, under the names of flavors and resources.
void add_quota(const QuotaTree& tree, const Holder& holder, bool admitted, QueueCounts& counts) {
  for (const auto& [fr, amount] : holder.usage) {
    const std::pair<std::string, std::string> name = {tree.flavor(fr), tree.resource(fr)};
    for (FlavorAmounts* sums : {&counts.held, admitted ? &counts.used : nullptr})
      if (sums != nullptr) (*sums)[name] = saturating_add((*sums)[name], amount);
  }
}

QueueOverview Admission::overview() const {
  QueueOverview out;
  for (const Record& record : records_) {
    if (!record.key.id.valid()) continue;
    const bool holds = record.standing == Standing::kHolding, queued = is_counted_as_waiting(record);
    if (!holds && !queued) continue;
    const Holder* const holder = holds ? ledger_->find(record.key.id) : nullptr;
    const bool admitted = record.status.phase == WorkloadPhase::kAdmitted;
    const model::Workload& workload = record.status.workload;
    for (QueueCounts* counts : {&out.cluster_queues[record.status.cluster_queue],
                                &out.local_queues[{workload.namespace_name, workload.queue}]}) {
      counts->reserving += holds ? 1 : 0;
      counts->admitted += admitted ? 1 : 0;
      counts->pending += queued ? 1 : 0;
      counts->inadmissible += queued && !has_a_turn(record, waiting_) ? 1 : 0;
      if (holder != nullptr) add_quota(ledger_->tree(), *holder, admitted, *counts);
    }
  }
  if (!options_.fair) return out;
  const QuotaTree& tree = ledger_->tree();
  for (const auto& [name, cohort] : cohorts_)
    if (const QuotaNode node = tree.cohort(name); node.valid() && !tree.in_cycle(node))
      out.cohort_shares[name] = tree.share(node);
  return out;
}

}  // namespace berth::quota
