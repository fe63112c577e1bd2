// Waiting: the workloads of one ClusterQueue that wait, in their order: those that are to have their turn, and those
// that are parked until something happens that could help them.
//
// Thousands may wait that are alike (quota/alike.h). What the first of them is told holds for all, so that only it has
// a turn, for a group that stays parked behind it: waking a queue costs as much as it has groups. Once the first is
// admitted, or gone, the next of the group leads it.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.h"
#include "quota/decision.h"

namespace berth::quota {

// The order of a queue: those that others have been evicted for, priority, age.
struct OrderKey {
  bool behind_sticky = true;   // false: it is sticky, others have been evicted for it
  int32_t less_important = 0;  // the priority, negated
  Time since;
  std::string uid;
  WorkloadId id;
  friend auto operator<=>(const OrderKey&, const OrderKey&) = default;
};

// By priority and age alone, whomever others have been evicted for.
inline bool comes_earlier(const OrderKey& a, const OrderKey& b) {
  return std::tie(a.less_important, a.since, a.uid) < std::tie(b.less_important, b.since, b.uid);
}

struct Waiting {
  struct ByKey {
    bool operator()(const OrderKey* a, const OrderKey* b) const { return *a < *b; }
  };
  struct Group {
    std::set<const OrderKey*, ByKey> members;  // of `behind`
    WorkloadId leader;                         // pending, in their place; invalid: none is
    bool awake = false;                        // something could help them since they were told last
  };

  std::set<OrderKey> pending, parked;                                // parked by themselves
  std::set<OrderKey> behind;                                         // parked in groups
  std::map<uint64_t, Group> groups;                                  // by Record::likeness; all of one are alike
  absl::flat_hash_map<uint64_t, absl::btree_set<WorkloadId>> alike;  // those pending, by Record::likeness
  std::vector<uint64_t> leaderless;                                  // groups that may be awake without a leader
  WorkloadId last_head = {};                                         // that had the turn in the last cycle
  std::optional<Time> quiet_until = {};  // nobody is due to have room kept before; none: that is to be looked at
  WorkloadId first_roomless = {};        // as of then: the first in order that has none and may yet start
  // As of then, one of each LocalQueue, in the order of what these have used; empty where that does not count.
  std::vector<WorkloadId> by_usage = {};

  void add(const OrderKey& key, uint64_t likeness) {
    quiet_until.reset();
    pending.insert(key);
    alike[likeness].insert(key.id);
  }
  void take(const OrderKey& key, uint64_t likeness) {
    quiet_until.reset();
    pending.erase(key);
    no_longer_pending(key.id, likeness);
  }
  void add_parked(const OrderKey& key) {
    quiet_until.reset();
    parked.insert(key);
  }
  void take_parked(const OrderKey& key) {
    quiet_until.reset();
    parked.erase(key);
  }
  // One that is pending is parked by itself.
  void park(const OrderKey& key, uint64_t likeness) {
    quiet_until.reset();
    parked.insert(pending.extract(key));
    no_longer_pending(key.id, likeness);
  }
  // One that is pending, or parked by itself, is parked behind others that are like it.
  void join(const OrderKey& key, uint64_t likeness) {
    quiet_until.reset();
    auto node = pending.extract(key);
    if (node) no_longer_pending(key.id, likeness);
    else node = parked.extract(key);
    groups[likeness].members.insert(&*behind.insert(std::move(node)).position);
  }
  void leave_group(const OrderKey& key, uint64_t likeness) {
    quiet_until.reset();
    const auto at = behind.find(key);
    const auto group = groups.find(likeness);
    group->second.members.erase(&*at);
    behind.erase(at);
    if (group->second.members.empty() && !group->second.leader.valid()) groups.erase(group);
  }
  // All that are parked are to have their turn, or somebody in their place. The caller adds those of `parked` to those
  // alike. O(groups) where none is pending.
  void wake() {
    if (pending.empty()) pending.swap(parked);
    else pending.merge(parked);
    for (auto& [likeness, group] : groups) wake(likeness, group);
  }
  void wake(uint64_t likeness, Group& group) {
    if (!std::exchange(group.awake, true) && !group.leader.valid()) leaderless.push_back(likeness);
  }
  // The first of each group that is awake without a leader leads it from now on, and is pending.
  std::vector<WorkloadId> lead() {
    std::vector<WorkloadId> out;
    for (const uint64_t likeness : std::exchange(leaderless, {})) {
      const auto at = groups.find(likeness);
      if (at == groups.end() || !at->second.awake || at->second.leader.valid() || at->second.members.empty()) continue;
      Group& group = at->second;
      const OrderKey* first = *group.members.begin();
      group.members.erase(group.members.begin());
      group.leader = first->id;
      alike[likeness].insert(first->id);
      out.push_back(first->id);
      pending.insert(behind.extract(*first));
    }
    return out;
  }

 private:
  void no_longer_pending(WorkloadId id, uint64_t likeness) {
    const auto of_it = alike.find(likeness);
    of_it->second.erase(id);
    if (of_it->second.empty()) alike.erase(of_it);
    const auto group = groups.find(likeness);
    if (group == groups.end() || group->second.leader != id) return;
    group->second.leader = {};
    if (group->second.members.empty()) groups.erase(group);
    else if (group->second.awake) leaderless.push_back(likeness);
  }
};

}  // namespace berth::quota
