#include "packing/batch.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>

#include "packing/batch_repair.h"
#include "packing/share_worth.h"

namespace berth::packing {
namespace {

// Of a device; a share of no worth counts as much.
constexpr double kPartLeast = 0.001;

using Places = std::vector<std::optional<Placement>>;

ShareWorth worth_of(std::span<const WaitingRequest> waiting) {
  std::map<int32_t, int64_t> counts;
  for (const WaitingRequest& w : waiting)
    if (w.request.is_share()) ++counts[w.request.milli_each];
  std::vector<ShareCount> shares;
  for (const auto& [milli, count] : counts) shares.push_back({.milli = milli, .count = count});
  return ShareWorth(std::move(shares));
}

// By index: many devices first, then what asks for most CPU for the part of a device that it stands for, of equals as
// they wait.
std::vector<size_t> hardest_first(std::span<const WaitingRequest> waiting) {
  const ShareWorth worth = worth_of(waiting);
  const auto key = [&](size_t n) {
    const Request& request = waiting[n].request;
    const double part = std::max(worth.of(request.milli_each), kPartLeast);
    return std::tuple(-std::max(request.devices, 1), -static_cast<double>(request.cpu_milli) / part,
                      -request.milli_each, std::popcount(request.models), -request.memory_bytes);
  };
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
  return order;
}

// One window, and where its requests are so far.
class Plan {
 public:
  Plan(Fleet& fleet, std::span<const WaitingRequest> waiting)
      : fleet_(fleet), waiting_(waiting), places_(waiting.size()) {}

  Places& places() { return places_; }
  bool is_overdue(size_t n) const { return waiting_[n].passed_over >= kPassedOverMax; }

  void place(size_t n) {
    if (!places_[n]) places_[n] = fleet_.place_observed(waiting_[n].request);
  }

  // Places those with devices; whether all of them have a place now.
  bool place_with_devices(const std::vector<size_t>& order) {
    bool all = true;
    for (const size_t n : order) {
      if (waiting_[n].request.devices == 0) continue;
      place(n);
      all = all && places_[n].has_value();
    }
    return all;
  }

  // Brings those that are not overdue to other places.
  void move_to(const Places& places) {
    for (size_t n = 0; n < waiting_.size(); ++n)
      if (places_[n] && !is_overdue(n)) fleet_.give_back(waiting_[n].request, *places_[n]);
    for (size_t n = 0; n < waiting_.size(); ++n) {
      if (is_overdue(n)) continue;
      places_[n] = places[n];
      if (places_[n]) fleet_.take(waiting_[n].request, *places_[n]);
    }
  }

 private:
  Fleet& fleet_;
  std::span<const WaitingRequest> waiting_;
  Places places_;
};

}  // namespace

std::vector<std::optional<Placement>> plan_batch(Fleet& fleet, std::span<const WaitingRequest> waiting,
                                                 const BatchOptions& options) {
  Plan plan(fleet, waiting);
  std::vector<size_t> as_they_wait(waiting.size());
  std::iota(as_they_wait.begin(), as_they_wait.end(), 0);
  for (const size_t n : as_they_wait)
    if (plan.is_overdue(n)) plan.place(n);
  if (!plan.place_with_devices(as_they_wait)) {
    const Places first = plan.places();
    const int64_t first_free = fleet.free_milli();
    plan.move_to(Places(waiting.size()));
    const std::vector<size_t> order = hardest_first(waiting);
    if (!plan.place_with_devices(order)) repair_batch(fleet, waiting, plan.places(), options);
    plan.place_with_devices(order);
    if (fleet.free_milli() > first_free) plan.move_to(first);
  }
  for (const size_t n : as_they_wait) plan.place(n);
  return plan.places();
}

}  // namespace berth::packing
