// Why a workload waits, in figures: what it asks for, what its queue has of it, and who has the rest.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "quota/admission.h"

namespace berth::quota {

struct Admission::Explainer {
  int64_t asked_of(const Record& record, const model::ResourceGroup& group, const std::string& flavor,
                   const std::string& resource, bool fewest) const;
  Assignment free_flavors(const Record& record, std::vector<int32_t> counts) const;
  std::string message(const Record& record, bool is_head) const;
  std::string user_limit(const Record& record, const model::ClusterQueue& queue, bool is_head) const;
  std::string as_told(const Record& record, bool is_head) const;
  std::string beyond_user(const Record& record, const model::ClusterQueue& queue, bool fewest) const;
  std::vector<WaitingFor::Fit> fits_now(const Record& record) const;
  WaitingFor::Account account(QuotaNode queue, FlavorResource fr, int64_t asked) const;

  const Admission& admission;
};

// By all its pods that need something still and may have the flavor; `fewest`: by as many as will do.
int64_t Admission::Explainer::asked_of(const Record& record, const model::ResourceGroup& group,
                                       const std::string& flavor, const std::string& resource, bool fewest) const {
  int64_t sum = 0;
  for (const model::PodSet& set : record.status.workload.pod_sets) {
    if (!may_have_flavor(admission.flavors_, group, flavor, set)) continue;
    int64_t amount = 0;
    const int64_t each = asked_by_pod(set, resource, admission.flavors_, flavor);
    if (__builtin_mul_overflow(each, int64_t{fewest ? set.fewest() : set.needed()}, &amount))
      return std::numeric_limits<int64_t>::max();
    sum = saturating_add(sum, amount);
  }
  return sum;
}

std::string with_kept(std::string message, const Record& record) {
  if (record.kept_for_it.empty()) return message;
  if (message.empty()) return record.kept_for_it;
  return fmt::format("{}{} {}", message, message.back() == '.' ? "" : ".", record.kept_for_it);
}

// With what is free alone. `counts`: of each pod set; empty: all.
Assignment Admission::Explainer::free_flavors(const Record& record, std::vector<int32_t> counts) const {
  const FlavorRequest request{.claimant = admission.claimant(record),
                              .workload = &record.status.workload,
                              .queue = &admission.queues_.find(record.status.cluster_queue)->second,
                              .counts = std::move(counts)};
  return assign_free_flavors(admission.ledger_->tree(), admission.flavors_, request);
}

// As things stand now, where the status says how they stood when it had its turn.
std::string Admission::Explainer::message(const Record& record, bool is_head) const {
  Assignment free = free_flavors(record, {});
  const auto queue = admission.queues_.find(record.status.cluster_queue);
  const bool of_user = queue != admission.queues_.end() && !beyond_user(record, queue->second, false).empty();
  if (free.exceeds_quota || of_user) {  // fewer pods may do
    std::vector<int32_t> fewest;
    for (const model::PodSet& set : record.status.workload.pod_sets) fewest.push_back(set.fewest());
    free = free_flavors(record, std::move(fewest));
  }
  if (const std::string now = free.message(); !now.empty()) return with_kept(now, record);
  return as_told(record, is_head);
}

// The same, of one that asks for more than its user may have.
std::string Admission::Explainer::user_limit(const Record& record, const model::ClusterQueue& queue,
                                             bool is_head) const {
  std::string now = beyond_user(record, queue, false);
  if (!now.empty()) now = beyond_user(record, queue, true);  // fewer pods may do
  return now.empty() ? as_told(record, is_head) : with_kept(now, record);
}

// How much more than its user may have, in the first flavor that it may have, as if there were room; empty: nothing.
std::string Admission::Explainer::beyond_user(const Record& record, const model::ClusterQueue& queue,
                                              bool fewest) const {
  model::ResourceList asked;
  for (const model::ResourceGroup& group : queue.groups)
    for (const std::string& resource : group.resources)
      for (const model::FlavorQuotas& flavor : group.flavors)
        if (const int64_t amount = asked_of(record, group, flavor.flavor, resource, fewest); amount > 0) {
          asked.add(resource, amount);
          break;
        }
  return beyond_user_limit(*admission.ledger_, record.status.workload.user, queue, asked);
}

// What now does not keep it any more: it has its turn soon, or was told what does when it had.
std::string Admission::Explainer::as_told(const Record& record, bool is_head) const {
  return is_head || !has_a_turn(record, admission.waiting_) ? record.status.message : turn_text(record);
}

// How many pods of each set have quota now.
std::vector<WaitingFor::Fit> Admission::Explainer::fits_now(const Record& record) const {
  const std::vector<model::PodSet>& sets = record.status.workload.pod_sets;
  std::vector<WaitingFor::Fit> out;
  for (size_t i = 0; i < sets.size(); ++i) {
    const auto fits = [&](int32_t pods) {
      std::vector<int32_t> counts(sets.size(), 0);
      counts[i] = pods;
      return free_flavors(record, std::move(counts)).outcome == Outcome::kFit;
    };
    int32_t least = 0, most = sets[i].needed();
    while (least < most) {
      const int32_t middle = most - (most - least) / 2;
      if (fits(middle)) least = middle;
      else most = middle - 1;
    }
    out.push_back({sets[i].name, least, sets[i].needed()});
  }
  return out;
}

WaitingFor Admission::explain(WorkloadId id) const {
  const Record& record = this->record(id);
  const Explainer explainer{*this};
  WaitingFor out;
  out.message = record.status.message;
  const auto waiting = waiting_.find(record.status.cluster_queue);
  const auto queue = queues_.find(record.status.cluster_queue);
  if (waiting != waiting_.end()) {
    std::set<OrderKey> all = waiting->second.pending;
    for (const std::set<OrderKey>* parked : {&waiting->second.parked, &waiting->second.behind})
      all.insert(parked->begin(), parked->end());
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
        if (const int64_t asked = explainer.asked_of(record, group, flavor.flavor, resource, false); asked > 0) {
          const FlavorResource fr = tree.find(flavor.flavor, resource);
          const bool too_much = asked > tree.potential(node, fr);
          out.quota.push_back(explainer.account(
              node, fr, too_much ? explainer.asked_of(record, group, flavor.flavor, resource, true) : asked));
        }
  if (out.position > 0 && record.status.reason == "UserLimit")
    out.message = explainer.user_limit(record, queue->second, out.position == 1);
  if (!record.lacks_quota || out.position == 0) return out;
  out.message = explainer.message(record, out.position == 1);
  out.fits = explainer.fits_now(record);
  return out;
}

WaitingFor::Account Admission::Explainer::account(QuotaNode queue, FlavorResource fr, int64_t asked) const {
  const Ledger& ledger = *admission.ledger_;
  const QuotaTree& tree = ledger.tree();
  WaitingFor::Account out;
  out.flavor = tree.flavor(fr);
  out.resource = tree.resource(fr);
  out.asked = asked;
  out.nominal = tree.quota(queue, fr).nominal;
  out.used = tree.usage(queue, fr);
  const int64_t free = tree.available(queue, fr);  // below 0 where more is in use than there is, which has to go, too
  out.available = std::max<int64_t>(0, free);
  out.may_borrow = std::max<int64_t>(0, out.available - std::max<int64_t>(0, out.nominal - out.used));
  out.short_by = std::max<int64_t>(0, saturating_add(asked, -std::max(free, -std::numeric_limits<int64_t>::max())));
  out.most = tree.potential(queue, fr);
  for (const QuotaNode other : tree.queues_below(tree.root(queue)))
    for (const WorkloadId id : ledger.holders(other))
      for (const auto& [held, amount] : ledger.holder(id).usage)
        if (held == fr && amount > 0)
          out.holders.push_back({admission.record(id).status.workload.full_name(), tree.name(other), amount});
  std::sort(out.holders.begin(), out.holders.end(), [](const auto& a, const auto& b) {
    return std::tuple(-a.amount, a.workload) < std::tuple(-b.amount, b.workload);
  });
  return out;
}

}  // namespace berth::quota
