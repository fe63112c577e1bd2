// Why a workload waits, in figures: what it asks for, what its queue has of it, and who has the rest.
#include <algorithm>
#include <limits>
#include <tuple>

#include "quota/admission.h"

namespace berth::quota {

namespace {

// By all its pods that need something still.
int64_t asked_of(const model::Workload& workload, const std::string& resource) {
  int64_t sum = 0;
  for (const model::PodSet& set : workload.pod_sets) {
    int64_t amount = 0;
    if (__builtin_mul_overflow(set.requests.get(resource), int64_t{std::max(0, set.count - set.reclaimable)}, &amount))
      return std::numeric_limits<int64_t>::max();
    sum = saturating_add(sum, amount);
  }
  return sum;
}

}  // namespace

WaitingFor Admission::explain(WorkloadId id) const {
  const Record& record = this->record(id);
  WaitingFor out;
  const auto waiting = waiting_.find(record.status.cluster_queue);
  const auto queue = queues_.find(record.status.cluster_queue);
  if (waiting != waiting_.end()) {
    std::set<OrderKey> all = waiting->second.pending;
    all.insert(waiting->second.parked.begin(), waiting->second.parked.end());
    out.waiting = static_cast<int>(all.size());
    const auto used = [&](const OrderKey& key) {
      return queue == queues_.end() ? 0 : local_usage(queue->second, this->record(key.id).status.workload);
    };
    const auto before = [&](const OrderKey& a, const OrderKey& b) {
      return std::tuple(a.behind_sticky, used(a), a) < std::tuple(b.behind_sticky, used(b), b);
    };
    const auto own = std::find_if(all.begin(), all.end(), [&](const OrderKey& key) { return key.id == id; });
    if (own != all.end())
      out.position =
          1 + static_cast<int>(std::ranges::count_if(all, [&](const OrderKey& key) { return before(key, *own); }));
  }
  if (queue == queues_.end() || !ledger_) return out;
  const QuotaTree& tree = ledger_->tree();
  const QuotaNode node = tree.queue(queue->first);
  if (!node.valid()) return out;
  for (const model::ResourceGroup& group : queue->second.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      for (const auto& [resource, quota] : flavor.resources)
        if (const int64_t asked = asked_of(record.status.workload, resource); asked > 0)
          out.quota.push_back(account(node, tree.find(flavor.flavor, resource), asked));
  return out;
}

WaitingFor::Account Admission::account(QuotaNode queue, FlavorResource fr, int64_t asked) const {
  const QuotaTree& tree = ledger_->tree();
  WaitingFor::Account out;
  out.flavor = tree.flavor(fr);
  out.resource = tree.resource(fr);
  out.asked = asked;
  out.nominal = tree.quota(queue, fr).nominal;
  out.used = tree.usage(queue, fr);
  out.available = std::max<int64_t>(0, tree.available(queue, fr));
  out.may_borrow = std::max<int64_t>(0, out.available - std::max<int64_t>(0, out.nominal - out.used));
  out.short_by = std::max<int64_t>(0, asked - out.available);
  for (const QuotaNode other : tree.queues_below(tree.root(queue)))
    for (const WorkloadId id : ledger_->holders(other))
      for (const auto& [held, amount] : ledger_->holder(id).usage)
        if (held == fr && amount > 0)
          out.holders.push_back({record(id).status.workload.full_name(), tree.name(other), amount});
  std::sort(out.holders.begin(), out.holders.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.amount, a.workload) < std::tuple(-b.amount, b.workload);
  });
  return out;
}

}  // namespace berth::quota
