#include "queueing/jobs_in_sight.h"

namespace berth::queueing {

void JobsInSight::see(const Name& name, const std::string& uid) {
  std::string& known = uids_[name];
  if (known == uid) return;
  seen_.erase(known);  // another by that name
  known = uid;
  seen_.insert(uid);
}

void JobsInSight::gone(const Name& name) {
  const auto known = uids_.find(name);
  if (known == uids_.end()) return;
  seen_.erase(known->second);
  uids_.erase(known);
}

bool JobsInSight::awaits(const std::string& uid, bool is_new, Time now) {
  if (seen_.contains(uid)) return false;
  if (is_new) awaited_since_.try_emplace(uid, now);
  return awaited_since_.contains(uid);
}

std::vector<std::string> JobsInSight::take_settled(Time now) {
  std::vector<std::string> settled;
  for (auto at = awaited_since_.begin(); at != awaited_since_.end();) {
    if (!seen_.contains(at->first) && now - at->second < kComesWithin) {
      ++at;
      continue;
    }
    settled.push_back(at->first);
    at = awaited_since_.erase(at);
  }
  return settled;
}

}  // namespace berth::queueing
