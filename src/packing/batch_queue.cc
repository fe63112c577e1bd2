#include "packing/batch_queue.h"

#include <absl/container/flat_hash_map.h>

#include "base/check.h"

namespace berth::packing {

BatchQueue::BatchQueue(size_t window, BatchOptions options) : window_(window), options_(options) {
  check(window_ > 0, "a batch sees something");
}

uint64_t BatchQueue::add(const Request& request) {
  queue_.push_back({.ticket = added_, .waiting = {.request = request}});
  return added_++;
}

std::vector<BatchQueue::Placed> BatchQueue::run(Fleet& fleet) {
  std::vector<size_t> seen;  // places in the queue
  std::vector<WaitingRequest> window;
  absl::flat_hash_map<Request, bool> known;
  for (size_t n = 0; n < queue_.size() && window.size() < window_; ++n) {
    const Request& request = queue_[n].waiting.request;
    const auto [fits, is_new] = known.try_emplace(request, false);
    if (is_new) fits->second = fleet.fits(request);
    if (!fits->second) continue;
    seen.push_back(n);
    window.push_back(queue_[n].waiting);
  }
  const auto places = plan_batch(fleet, window, options_);
  std::vector<Placed> placed;
  std::vector<bool> leaves(queue_.size(), false);
  for (size_t w = 0; w < window.size(); ++w) {
    Entry& entry = queue_[seen[w]];
    if (places[w]) placed.push_back({.ticket = entry.ticket, .placement = *places[w]});
    else ++entry.waiting.passed_over;
    leaves[seen[w]] = places[w].has_value();
  }
  std::deque<Entry> left;
  for (size_t n = 0; n < queue_.size(); ++n)
    if (!leaves[n]) left.push_back(queue_[n]);
  queue_ = std::move(left);
  return placed;
}

}  // namespace berth::packing
