// Ledger: the quota tree, and which workloads hold what of it.
//
// Who weighs a preemption takes holders out for a while and puts them back: that moves usage in the tree and nothing
// else. One thread.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <set>
#include <string>
#include <vector>

#include "base/time.h"
#include "quota/decision.h"
#include "quota/quota_tree.h"

namespace berth::quota {

// What preemption looks at, of those who hold quota and of those who want some.
struct Claimant {
  WorkloadId id;
  QuotaNode queue;
  int32_t priority = 0;
  Time created;
  std::string uid;
};

struct Holder : Claimant {
  std::string user;
  Amounts usage;
  Time reserved;
  std::optional<Time> began = {};       // was admitted
  model::Checkpoints checkpoints = {};  // `last` in the time of cycles
  int64_t gpu_micros = 0;               // millionths of GPUs that it has
  bool evicted = false;                 // is on its way out already
  uint64_t won_in = 0;                  // the epoch (Admission) in which others were evicted for it
};

class Ledger {
 public:
  explicit Ledger(QuotaTree tree) : tree_(std::move(tree)), by_queue_(tree_.nodes()), terms_(tree_.nodes()) {}

  QuotaTree& tree() { return tree_; }
  const QuotaTree& tree() const { return tree_; }
  const Holder* find(WorkloadId id) const;
  // Of a ClusterQueue, in the order of their reservations.
  const std::vector<WorkloadId>& holders(QuotaNode queue) const { return by_queue_[queue.value]; }
  const Holder& holder(WorkloadId id) const { return holders_.at(id.value); }

  // What a user's workloads have of a resource in a ClusterQueue, in all flavors. O(holders of the queue).
  int64_t used_by(const std::string& user, QuotaNode queue, const std::string& resource) const;

  void reserve(Holder holder);
  void release(WorkloadId id);
  void set_evicted(WorkloadId id);
  // The holders that are evicted.
  const std::set<WorkloadId>& leaving() const { return leaving_; }
  // Of a ClusterQueue; those of a new ledger are the default.
  void set_terms(QuotaNode queue, const model::VictimTerms& terms) { terms_[queue.value] = terms; }
  const model::VictimTerms& terms(QuotaNode queue) const { return terms_[queue.value]; }
  void set_began(WorkloadId id, Time began) { holders_.at(id.value).began = began; }
  // Other facts of a holder, its usage among them.
  void replace(Holder holder);

  void take_out(WorkloadId id) { tree_.remove_usage(holder(id).queue, holder(id).usage); }
  void put_back(WorkloadId id) { tree_.add_usage(holder(id).queue, holder(id).usage); }

 private:
  QuotaTree tree_;
  std::vector<std::vector<WorkloadId>> by_queue_;  // by QuotaNode
  std::vector<model::VictimTerms> terms_;          // by QuotaNode
  absl::flat_hash_map<uint32_t, Holder> holders_;  // by WorkloadId
  std::set<WorkloadId> leaving_;
};

}  // namespace berth::quota
