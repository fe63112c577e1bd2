// Told: what waiting pods have been told last, by UID, so that nothing is said twice and nothing is forgotten.
//
// A server forgets an event after its --event-ttl (1 h by default). A pod that waits longer is therefore reminded of
// the same text every kRemindAfter. Owner thread only. Cost: O(log pods) a call.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::apps {

class Told {
 public:
  using Text = std::shared_ptr<const std::string>;
  static constexpr Duration kRemindAfter = Duration::seconds(25 * 60);

  struct News {
    bool is_new = false;  // the pod was told something else before, or nothing
    bool first = false;   // nothing
  };
  // The pod is to be told this now.
  News tell(const std::string& uid, const Text& text, Time now);
  void forget(const std::string& uid);
  // A list: all that pods have in their conditions. When they were told is kept where it is known; else a reminder
  // comes sooner.
  void replace_all(const std::vector<std::pair<std::string, std::string>>& texts, Time now);
  // At most `max` pods that were told their text kRemindAfter ago; they count as told now.
  std::vector<std::pair<std::string, Text>> due(Time now, size_t max);

 private:
  struct Entry {
    Text text;
    Time at;
  };
  void put(const std::string& uid, Text text, Time at);

  absl::flat_hash_map<std::string, Entry> entries_;
  absl::btree_set<std::pair<Time, std::string>> by_time_;  // (Entry::at, UID)
};

}  // namespace berth::apps
