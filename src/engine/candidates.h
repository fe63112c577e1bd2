// Candidates: a pod class's view of the fleet: for every node why it does not fit, or how well; and the best of them.
//
// Kept up to date by re-examining only the nodes in State's change log since the last look, each at most once per
// generation. The best node stands at the root of a tournament tree over node slots: one changed node costs O(log n),
// and reading the winner O(1). Equal scores go to the first node by name.
//
// A class that inter-pod terms concern keeps its nodes in Groups instead of the tree.
//
// refresh() may run out of work units and go on where it stopped; until it has returned true, best() and counts() are
// of a state that is partly old and must not be used.
#pragma once

#include <memory>
#include <vector>

#include "engine/failure_sets.h"
#include "engine/groups.h"
#include "engine/policy_set.h"
#include "engine/state.h"
#include "engine/tournament.h"

namespace berth::engine {

// A bound on effort in candidates examined, never in milliseconds, so that a replay stops at the same point.
struct WorkBudget {
  int64_t left = 0;
  bool spend(int64_t units = 1) {
    left -= units;
    return left >= 0;
  }
};

class Candidates {
 public:
  // Brings the view up to the state; false when the budget ran out first.
  bool refresh(const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets, WorkBudget& work);

  // The best node that fits, or an invalid slot.
  NodeSlot best() const;
  FailureCounts counts() const;
  // Why no node can do, whichever it is; counts() is then of no use. Empty: nodes are looked at.
  const std::string& objection() const { return objection_; }
  // Why the node does not fit; kFits when it does, invalid when it does not exist.
  FailureSetId failure(NodeSlot slot) const;
  // How good a node is that fits, beside what the groups say of it.
  int64_t score(NodeSlot slot) const { return leaves_[slot.value].score; }
  // The groups that inter-pod terms make of the fleet; null when none concern the class.
  const Groups* groups() const { return groups_.get(); }
  // Grows whenever an examination changed what counts() or objection() says.
  uint64_t version() const { return version_ + (groups_ ? groups_->version() : 0); }
  // Grows when every conclusion about nodes was thrown away.
  uint64_t epoch() const { return epoch_; }
  size_t memory_bytes() const;

 private:
  static constexpr int64_t kUnfit = INT64_MIN;
  struct Leaf {
    int64_t score = kUnfit;
    uint32_t generation = 0;  // 0: never examined
    FailureSetId failure;     // invalid: the node does not exist
  };

  void examine(NodeSlot slot, const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets);
  void follow_terms(const State& state, const PolicySet& policies, const PodClass& cls);
  void start_over(const State& state, const PolicySet& policies, const PodClass& cls);
  void examine_all_again();
  void grow(const State& state);
  uint32_t better(uint32_t a, uint32_t b, const State& state) const;

  std::vector<Leaf> leaves_;  // by node slot; size is a power of two
  Tournament tournament_;     // of the leaves
  FailureCounts counts_;
  std::string objection_;
  size_t nodes_ = 0;          // that there were when objection_ was last told
  uint64_t generation_ = 0;   // of the class at the last look
  uint64_t mix_version_ = 0;  // of the requests that its scores go by
  Reasons scratch_;
  uint64_t version_ = 0;
  uint64_t epoch_ = 0;
  uint64_t cursor_ = 0;   // first unread entry of the change log
  uint32_t scan_ = 0;     // next slot of a full scan
  bool scanning_ = true;  // a full scan is under way: the log was too short to go by
  bool batch_ = false;    // the tournament is stale until it is rebuilt
  std::unique_ptr<Groups> groups_;
  // What `groups_` goes by: PeerIndex::terms_version(), Topology's versions, State::order_version().
  uint64_t terms_version_ = UINT64_MAX, presence_version_ = 0, reuse_version_ = 0, order_version_ = 0;
};

}  // namespace berth::engine
