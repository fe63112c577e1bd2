#include "quota/ledger.h"

namespace berth::quota {

const Holder* Ledger::find(WorkloadId id) const {
  const auto found = holders_.find(id.value);
  return found == holders_.end() ? nullptr : &found->second;
}

int64_t Ledger::used_by(const std::string& user, QuotaNode queue, const std::string& resource) const {
  int64_t sum = 0;
  for (const WorkloadId id : holders(queue))
    if (const Holder& each = holder(id); each.user == user)
      for (const auto& [fr, amount] : each.usage)
        if (tree_.resource(fr) == resource) sum = saturating_add(sum, amount);
  return sum;
}

void Ledger::reserve(Holder holder) {
  tree_.add_usage(holder.queue, holder.usage);
  by_queue_[holder.queue.value].push_back(holder.id);
  if (holder.evicted) leaving_.insert(holder.id);
  Holder& kept = holders_[holder.id.value];
  kept = std::move(holder);
}

void Ledger::set_evicted(WorkloadId id) {
  holders_.at(id.value).evicted = true;
  leaving_.insert(id);
}

void Ledger::release(WorkloadId id) {
  take_out(id);
  std::erase(by_queue_[holder(id).queue.value], id);
  holders_.erase(id.value);
  leaving_.erase(id);
}

void Ledger::replace(Holder holder) {
  take_out(holder.id);
  const WorkloadId id = holder.id;
  if (holder.evicted) leaving_.insert(id);
  else leaving_.erase(id);
  holders_.at(id.value) = std::move(holder);
  put_back(id);
}

}  // namespace berth::quota
