#include "engine/promised_shares.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"
#include "base/int128.h"

namespace berth::engine {
namespace {

constexpr int kSearchMax = 500;  // steps

using Bins = std::vector<size_t>;  // by share, the index of its device among the rooms

// The largest first, each where the least room is that is enough; those that fit nowhere open another device.
Bins best_fit(const std::vector<int64_t>& amounts, std::vector<int64_t> rooms, int64_t whole) {
  Bins out;
  for (const int64_t amount : amounts) {
    size_t best = rooms.size();
    for (size_t i = 0; i < rooms.size(); ++i)
      if (rooms[i] >= amount && (best == rooms.size() || rooms[i] < rooms[best])) best = i;
    if (best == rooms.size()) rooms.push_back(whole);
    rooms[best] -= amount;
    out.push_back(best);
  }
  return out;
}

// Tries all devices that differ in their room for the next share, then for those behind it.
bool search(const std::vector<int64_t>& amounts, std::vector<int64_t>& rooms, Bins& out, int& steps) {
  if (out.size() == amounts.size()) return true;
  const int64_t amount = amounts[out.size()];
  std::vector<int64_t> tried;
  for (size_t i = 0; i < rooms.size(); ++i) {
    if (rooms[i] < amount || std::ranges::find(tried, rooms[i]) != tried.end()) continue;
    if (--steps < 0) return false;
    tried.push_back(rooms[i]);
    out.push_back(i);
    rooms[i] -= amount;
    if (search(amounts, rooms, out, steps)) return true;
    rooms[i] += amount;
    out.pop_back();
  }
  return false;
}

// Opens as few devices as it can.
Bins pack(const std::vector<int64_t>& amounts, const std::vector<int64_t>& rooms, int64_t whole) {
  Bins best = best_fit(amounts, rooms, whole);
  const size_t last = best.empty() ? 0 : *std::ranges::max_element(best);
  const size_t opened = std::max(last + 1, rooms.size()) - rooms.size();
  const Int128 asked = std::accumulate(amounts.begin(), amounts.end(), Int128{0});
  const Int128 there = std::accumulate(rooms.begin(), rooms.end(), Int128{0});
  for (size_t fewer = 0; fewer < opened; ++fewer) {
    if (there + Int128{whole} * static_cast<int64_t>(fewer) < asked) continue;
    std::vector<int64_t> left = rooms;
    left.insert(left.end(), fewer, whole);
    Bins out;
    int steps = kSearchMax;
    if (search(amounts, left, out, steps)) return out;
  }
  return best;
}

}  // namespace

int32_t device_to_open(const ListedDevices& listed, const SharedDevices& shared) {
  if (!listed) return shared.next_closed();
  const model::DeviceSet best = listed.topology().choose(listed.free(shared.open()), 1);
  return best != 0 ? std::countr_zero(best) : shared.next_closed(listed.size());
}

std::vector<int32_t> places_of_shares(const std::vector<int64_t>& amounts, int64_t whole, SharedDevices shared,
                                      const ListedDevices& listed) {
  check(std::ranges::is_sorted(amounts, std::greater<>()), "the largest share has its turn first");
  std::vector<int32_t> devices;  // that take more
  std::vector<int64_t> rooms;    // of these
  for (int32_t i = 0; i < std::ssize(shared.all()); ++i) {
    const bool takes_more = !listed || (i < listed.size() && (listed.free(0) >> i & 1) != 0);
    if (shared.used(i) == 0 || shared.used(i) >= whole || !takes_more) continue;
    devices.push_back(i);
    rooms.push_back(whole - shared.used(i));
  }
  std::vector<int32_t> out;
  for (const size_t bin : pack(amounts, rooms, whole)) {
    while (devices.size() <= bin) {
      devices.push_back(device_to_open(listed, shared));
      shared.take(devices.back(), 1, ShareHolder::kPromised);
    }
    out.push_back(devices[bin]);
  }
  return out;
}

}  // namespace berth::engine
