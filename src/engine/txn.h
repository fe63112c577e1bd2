// Txn: try placements and evictions on the live state, look at the result, keep it or undo it.
//
// Between "a workload is chosen" and "its decisions are emitted", everything happens inside one Txn. Undo costs what
// the transaction touched, never the size of the cluster. Owner thread only; at most one Txn is open at a time.
//
// Invariants: 1. after rollback() State::hash() equals that before the Txn was opened; 2. commit() reports the changes
// in the order in which they were tried; 3. a Txn that is destroyed without commit() has rolled back.
//
//   Txn txn(state);
//   for (PodSlot pod : gang) {
//     const NodeSlot node = best_node(state, pod);     // sees the places of the pods before it
//     if (!node.valid()) return false;                 // ~Txn undoes the whole gang
//     txn.place(pod, node);
//   }
//   changes = txn.commit();
#pragma once

#include <vector>

#include "engine/node_guesses.h"
#include "engine/state.h"

namespace berth::engine {

class Txn {
 public:
  struct Change {
    PodSlot pod;
    NodeSlot from;  // invalid: had no place
    NodeSlot to;    // invalid: evicted
    PodPhase phase_before = PodPhase::kPending;
    std::vector<std::pair<std::string, ClaimChoice>> choices;  // for its claims, before it was evicted
    DeviceUse devices;                                         // that it had then
    NodeGuesses guesses = {};                                  // of the node, before
  };

  explicit Txn(State& state) : state_(state) {}
  Txn(const Txn&) = delete;
  Txn& operator=(const Txn&) = delete;
  ~Txn() { rollback(); }

  // Reserves a place for a pod that holds none.
  void place(PodSlot pod, NodeSlot node);
  // Takes the place of a pod that holds one.
  void evict(PodSlot pod);

  // A point to come back to, and the way back: undoes what was tried since.
  size_t mark() const { return changes_.size(); }
  void rollback_to(size_t mark);
  void rollback() { rollback_to(0); }
  // Keeps everything; the Txn is empty afterwards.
  std::vector<Change> commit();

 private:
  State& state_;
  std::vector<Change> changes_;
};

}  // namespace berth::engine
