// What Admission remembers: of each workload, of those that wait in a queue, and of one whose turn it is in a cycle.
//
// Plain values that Admission alone changes; its invariants hold between its calls.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quota/flavors.h"
#include "quota/spending.h"
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

// Reasons of evictions after which a workload is requeued later, at a place of its own.
inline constexpr std::string_view kPodsReadyTimeout = "PodsReadyTimeout", kCheckEviction = "AdmissionCheck";
inline constexpr std::string_view kBudgetSpent = "BudgetSpent";

// Why a workload that holds quota has to give it back.
struct EvictionReason {
  std::string reason, message;           // of the condition Evicted
  bool deactivates = false;              // and it waits no more, until somebody makes it active again
  std::optional<Time> requeue_at = {};   // it waits in no queue before
  std::optional<Time> ranks_since = {};  // it waits in its queue as if it had come then; none: when it was created
};

// Of an admitted workload: have its pods all been ready, and are they?
enum class Readiness : uint8_t { kStarting, kReady, kRecovering };

// What an admitted workload has in use for its LocalQueue (namespace and name).
struct UsedLocally {
  std::pair<std::string, std::string> local_queue;
  model::ResourceList amounts = {};
};

// What an admitted workload spends, of the budgets of its ClusterQueue and of its LocalQueue.
struct Charge {
  Spending::Queue cluster_queue, local_queue;
  Spending::Rate rate;
};

struct Record {
  WorkloadStatus status;
  Standing standing = Standing::kNone;
  OrderKey key;
  uint64_t likeness = 0;  // quota/alike.h
  NextFlavors next_flavor;
  std::optional<Assignment> promised = {};  // for which others have been evicted
  int tries = 0;                            // with flavors that were left over from the one before
  uint64_t evicted_in = 0;                  // the epoch in which it last was, for others
  // Times: admission_times.cc.
  std::optional<Time> admitted = {};            // since when it is, in this term
  Duration ran = {};                            // in terms before this
  Readiness readiness = Readiness::kStarting;   // of its pods, in this term
  Time recovers_since;                          // kRecovering
  std::optional<EvictionReason> eviction = {};  // the last, until it has quota again
  std::optional<Time> due = {};                 // when time alone may change something
  // AdmissionChecks, and usage of LocalQueues.
  Time checks_retry_at = {};                // the latest that a check that is to be retried has named
  bool placeless = false;                   // has quota and no place, for nodes are yet to be made for it
  std::optional<UsedLocally> counted = {};  // in the usage of its LocalQueue
  std::optional<Charge> charge = {};        // to budgets, since it was admitted

  bool deactivated() const { return eviction && eviction->deactivates; }  // by admission itself
};

struct Waiting {
  std::set<OrderKey> pending, parked;
  absl::flat_hash_map<uint64_t, absl::btree_set<WorkloadId>> alike;  // those pending, by Record::likeness

  void add(const OrderKey& key, uint64_t likeness) {
    pending.insert(key);
    alike[likeness].insert(key.id);
  }
  void take(const OrderKey& key, uint64_t likeness) {
    pending.erase(key);
    no_longer_alike(key.id, likeness);
  }
  // One that is pending is parked. Keys move, since thousands may do so in each cycle.
  void park(const OrderKey& key, uint64_t likeness) {
    parked.insert(pending.extract(key));
    no_longer_alike(key.id, likeness);
  }
  // All that are parked are pending; the caller adds them to those alike. O(1) where none is pending.
  void wake() {
    if (pending.empty()) pending.swap(parked);
    else pending.merge(parked);
  }

 private:
  void no_longer_alike(WorkloadId id, uint64_t likeness) {
    const auto of_it = alike.find(likeness);
    of_it->second.erase(id);
    if (of_it->second.empty()) alike.erase(of_it);
  }
};

// A queue's head in a cycle.
struct Entry {
  WorkloadId id;
  QuotaNode queue;
  const model::ClusterQueue* spec = nullptr;
  NextFlavors resume;  // flavors tried before
  Assignment assignment;
  std::vector<Victim> victims;
  bool admitted = false, preempts = false, passed_over = false, waits_for_pods = false;
  bool placeless = false;  // admitted, and has quota alone
};

}  // namespace berth::quota
