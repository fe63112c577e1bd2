// Rejections: pods that the kubelet refused (OutOfcpu, OutOfnvidia.com/gpu, UnexpectedAdmissionError), by owner.
//
// A refused pod is dead; its controller makes another at once, which would be bound and refused again, in a hot loop.
// The replacements of one owner therefore wait 1, 2, 4 … seconds after each refusal, until one of them stays bound for
// a while. Pods without a controller are not replaced and leave no trace here.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <string>

#include "base/time.h"

namespace berth::engine {

class Rejections {
 public:
  void record(const std::string& owner_uid, Time now, Duration initial, Duration max) {
    if (owner_uid.empty()) return;
    Entry& entry = owners_[owner_uid];
    if (now - entry.last > kForget) entry.count = 0;
    entry.last = now;
    const int64_t shift = std::min<int64_t>(entry.count++, 30);
    entry.until = now + Duration{std::min(initial.nanos << std::min<int64_t>(shift, 20), max.nanos)};
    if (owners_.size() > kMaxOwners) forget_old(now);
  }
  // Until when new pods of the owner wait; a time in the past when they need not.
  Time until(const std::string& owner_uid) const {
    const auto at = owner_uid.empty() ? owners_.end() : owners_.find(owner_uid);
    return at == owners_.end() ? Time{INT64_MIN} : at->second.until;
  }

 private:
  static constexpr Duration kForget = Duration::seconds(600);
  static constexpr size_t kMaxOwners = 10'000;
  struct Entry {
    int64_t count = 0;
    Time last{INT64_MIN / 2};
    Time until;
  };
  void forget_old(Time now) {
    absl::erase_if(owners_, [&](const auto& item) { return now - item.second.last > kForget; });
  }
  absl::flat_hash_map<std::string, Entry> owners_;
};

}  // namespace berth::engine
