#include "quota/ledger.h"

namespace berth::quota {

const Holder* Ledger::find(WorkloadId id) const {
  const auto found = holders_.find(id.value);
  return found == holders_.end() ? nullptr : &found->second;
}

void Ledger::reserve(Holder holder) {
  tree_.add_usage(holder.queue, holder.usage);
  by_queue_[holder.queue.value].push_back(holder.id);
  Holder& kept = holders_[holder.id.value];
  kept = std::move(holder);
}

void Ledger::release(WorkloadId id) {
  take_out(id);
  std::erase(by_queue_[holder(id).queue.value], id);
  holders_.erase(id.value);
}

void Ledger::replace(Holder holder) {
  take_out(holder.id);
  const WorkloadId id = holder.id;
  holders_.at(id.value) = std::move(holder);
  put_back(id);
}

}  // namespace berth::quota
