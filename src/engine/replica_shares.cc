#include "engine/replica_shares.h"

#include <algorithm>
#include <functional>

#include "base/check.h"

namespace berth::engine {
namespace {

constexpr int kSearchMax = 2'000;  // steps

using Sizes = std::vector<std::pair<int64_t, int64_t>>;

// Where a size is, or would be.
template <typename S>
auto place_of(S& sizes, int64_t replicas) {
  return std::lower_bound(sizes.begin(), sizes.end(), replicas,
                          [](const auto& each, int64_t wanted) { return each.first > wanted; });
}

// The largest first, each on the device with the least room that is enough; `rooms` is ascending.
bool best_fit(const Sizes& sizes, std::vector<int64_t> rooms) {
  for (auto [size, count] : sizes) {
    // Whoever was the tightest stays so, hence takes all that it can.
    for (int64_t& room : rooms) {
      const int64_t taken = std::min(count, room / size);
      room -= taken * size;
      count -= taken;
    }
    if (count > 0) return false;
    std::sort(rooms.begin(), rooms.end());
  }
  return true;
}

// Tries all devices that differ in their room for the first of the shares, then for those behind it.
bool search(Sizes& left, std::vector<int64_t>& rooms, int& steps) {
  const auto next = std::find_if(left.begin(), left.end(), [](const auto& each) { return each.second > 0; });
  if (next == left.end()) return true;
  std::vector<int64_t> tried;
  --next->second;
  for (int64_t& room : rooms) {
    if (room < next->first || std::find(tried.begin(), tried.end(), room) != tried.end()) continue;
    if (--steps < 0) break;
    tried.push_back(room);
    room -= next->first;
    if (search(left, rooms, steps)) return true;
    room += next->first;
  }
  ++next->second;
  return false;
}

}  // namespace

void ReplicaShares::add(int64_t replicas) {
  check(replicas > 0, "a share takes replicas");
  const auto at = place_of(sizes_, replicas);
  if (at != sizes_.end() && at->first == replicas) ++at->second;
  else sizes_.insert(at, {replicas, 1});
}

void ReplicaShares::remove(int64_t replicas) {
  const auto at = place_of(sizes_, replicas);
  check(at != sizes_.end() && at->first == replicas, "only a share that is there is removed");
  if (--at->second == 0) sizes_.erase(at);
}

int64_t ReplicaShares::count(int64_t replicas) const {
  const auto at = place_of(sizes_, replicas);
  return at != sizes_.end() && at->first == replicas ? at->second : 0;
}

bool ReplicaShares::fits(int64_t more, int64_t each, int64_t all) const {
  check(more > 0 && each > 0, "a share takes replicas, of which a device is some");
  ReplicaShares together = *this;
  together.add(more);
  int64_t shares = 0;
  for (const auto& [size, count] : together.sizes_) shares += count;
  const int64_t whole = all / each, rest = all % each;
  std::vector<int64_t> rooms(static_cast<size_t>(std::clamp<int64_t>(whole, 0, shares)), each);
  if (rest > 0 && whole < shares) rooms.insert(rooms.begin(), rest);
  if (best_fit(together.sizes_, rooms)) return true;
  // Left over is what the shares leave of the devices; below 0 there is no way.
  int64_t left = std::max<int64_t>(all, 0);
  for (const auto& [size, count] : together.sizes_) {
    if (size > each || count > left / size) return false;
    left -= size * count;
  }
  int steps = kSearchMax;
  return search(together.sizes_, rooms, steps);
}

}  // namespace berth::engine
