#include "engine/shared_devices.h"

#include <algorithm>

#include "base/check.h"

namespace berth::engine {

int32_t SharedDevices::best_fit(int64_t units, model::DeviceSet given, Among among) const {
  int32_t best = -1;
  for (size_t i = 0; i < used_.size(); ++i) {
    if (takes_none(i, given, among) || used_[i] + units > whole_) continue;
    if (best < 0 || used_[i] > used_[static_cast<size_t>(best)]) best = static_cast<int32_t>(i);
  }
  return best;
}

int64_t SharedDevices::most_room(model::DeviceSet given, Among among) const {
  int64_t most = -1;
  for (size_t i = 0; i < used_.size(); ++i)
    if (!takes_none(i, given, among)) most = std::max({most, whole_ - used_[i], int64_t{0}});
  return most;
}

int64_t SharedDevices::count_promised() const {
  int64_t out = 0;
  for (size_t i = 0; i < used_.size(); ++i) out += used_[i] > 0 && sharers_[i].there == 0 ? 1 : 0;
  return out;
}

int64_t SharedDevices::count_later() const {
  return std::ranges::count_if(sharers_, [](const Sharers& sharers) { return sharers.stay + sharers.come > 0; });
}

int64_t SharedDevices::over() const {
  int64_t out = 0;
  for (const int64_t used : used_) out += std::max<int64_t>(used - whole_, 0);
  return out;
}

int32_t SharedDevices::next_closed(int32_t first) const {
  const auto from = used_.begin() + std::min<ptrdiff_t>(first, std::ssize(used_));
  return std::max(first, static_cast<int32_t>(std::find(from, used_.end(), 0) - used_.begin()));
}

model::DeviceSet SharedDevices::open() const {
  model::DeviceSet out = 0;
  for (size_t i = 0; i < std::min<size_t>(used_.size(), 32); ++i) out |= model::DeviceSet{used_[i] > 0} << i;
  return out;
}

void SharedDevices::count(size_t device, ShareHolder holder, uint32_t more) {
  (holder == ShareHolder::kPromised ? sharers_[device].come : sharers_[device].there) += more;
  if (holder == ShareHolder::kStays) sharers_[device].stay += more;
}

int SharedDevices::take(int32_t device, int64_t units, ShareHolder holder) {
  const auto index = static_cast<size_t>(device);
  if (used_.size() <= index) used_.resize(index + 1, 0), sharers_.resize(index + 1);
  check(units > 0, "a share is a part of a device");
  const bool opens = used_[index] == 0;
  used_[index] += units;
  count(index, holder, 1);
  return opens ? 1 : 0;
}

int SharedDevices::give_back(int32_t device, int64_t units, ShareHolder holder) {
  const auto index = static_cast<size_t>(device);
  check(index < used_.size() && used_[index] >= units, "only what was taken of a device is given back");
  used_[index] -= units;
  count(index, holder, -1U);
  const bool closes = used_[index] == 0;
  while (!used_.empty() && used_.back() == 0) used_.pop_back(), sharers_.pop_back();
  return closes ? -1 : 0;
}

void ListedDevices::take(model::DeviceSet set) {
  taken_ |= set;
  for (; set != 0; set &= set - 1) ++pods_[static_cast<size_t>(std::countr_zero(set))];
}

void ListedDevices::give_back(model::DeviceSet set) {
  for (; set != 0; set &= set - 1) {
    const auto device = static_cast<size_t>(std::countr_zero(set));
    check(pods_[device] > 0, "only what was taken is given back");
    if (--pods_[device] == 0) taken_ &= ~(set & -set);
  }
}

}  // namespace berth::engine
