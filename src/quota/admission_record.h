// What Admission remembers: of each workload, of those that wait in a queue, and of one whose turn it is in a cycle.
//
// Plain values that Admission alone changes; its invariants hold between its calls.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/flavors.h"
#include "quota/status.h"

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

// Where a workload is. kHolding: it has quota reserved, perhaps on its way out.
enum class Standing : uint8_t { kNone, kPending, kParked, kHeldBack, kHolding };

// Why a workload that holds quota has to give it back.
struct EvictionReason {
  std::string reason, message;  // of the condition Evicted
  bool deactivates = false;     // and it waits no more, until somebody makes it active again
};

struct Record {
  WorkloadStatus status;
  Standing standing = Standing::kNone;
  OrderKey key;
  NextFlavors next_flavor;
  std::optional<Assignment> promised = {};  // for which others have been evicted
  int tries = 0;                            // with flavors that were left over from the one before
  uint64_t evicted_in = 0;                  // the epoch in which it last was, for others
  // Times: admission_times.cc.
  std::optional<Time> admitted = {};                // since when it is, in this term
  Duration ran = {};                                // in terms before this
  std::optional<EvictionReason> deactivation = {};  // what admission deactivated it for
  std::optional<Time> due = {};                     // when time alone may change something
};

struct Waiting {
  std::set<OrderKey> pending, parked;
};

// A queue's head in a cycle.
struct Entry {
  WorkloadId id;
  QuotaNode queue;
  const model::ClusterQueue* spec = nullptr;
  NextFlavors resume;  // flavors tried before
  Assignment assignment;
  std::vector<Victim> victims;
  bool admitted = false, preempts = false, passed_over = false;  // what became of it
};

}  // namespace berth::quota
