// SetSearch: in which order the waiting pods of one priority take their turns, so that most GPUs are allocated.
//
// One pod at a time, in the order of the queue, can strand GPUs: pods of 3, 3, 5 and 5 GPUs, in this order, leave five
// of two nodes of 8 free. A search gives pods their turns in a Txn, each on the best node of its class, undoes that,
// and does it again in other orders; what is kept are the places of the best one. It tries the order of
// the queue first, then large requests first, then those that fit on the fewest nodes; from the best of them it goes on
// by small steps: a pod that was left out is moved to the front (Joslin and Clements, "Squeaky Wheel" Optimization,
// 1999), or two pods change places. Where the order of the queue places every pod, nothing else is tried.
//
// An order is better that allocates more GPUs; of equals, the one that leaves fewer pods without GPUs; then the one
// that leaves free GPUs closer together; then the one tried first. How many pods have the GPUs does not count (run()).
//
// Pods that are due have waited too long to be passed over: they come first in every order, as the queue has them. Pods
// of one class are alike and keep their order. A pod that fits nowhere at its turn gets another when one is placed that
// it hoped for, as in PendingQueue::wake_friends(). Nobody is told to leave: who fits only in the place of others has
// to take an ordinary turn.
//
// Owner thread only; deterministic: what it does is bounded by candidates examined and by a number of orders, and
// draws come from a fixed seed. After run() State::hash() is what it was; the candidates of classes() are of no one
// state until they are refreshed.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/time.h"
#include "engine/engine_options.h"
#include "engine/placement_context.h"
#include "engine/txn.h"

namespace berth::engine {

class SetSearch {
 public:
  struct Place {
    PodSlot pod;
    NodeSlot node;
  };
  // What an order is worth; greater is better.
  struct Worth {
    int64_t gpu_micros = 0;  // allocated
    int64_t pods = 0;        // placed that ask for no GPU
    Int128 together = 0;     // growth of the sum, over nodes, of the square of the whole GPUs that are free
    friend auto operator<=>(const Worth&, const Worth&) = default;
  };

  // Of the pods of a priority that wait, those that could be placed now. Those created at `due` or before it are due.
  SetSearch(const PlacementContext& context, int32_t priority, Time due);

  // The classes of these pods, by their first pods in the order of the queue.
  const std::vector<ClassId>& classes() const { return ids_; }
  // The places of the best order, in that order; nothing when the work did not suffice for the order of the queue.
  std::optional<std::vector<Place>> run(int32_t orders_max, WorkBudget& work);
  // What run() found that order to be worth, and that of the queue, and how many orders it tried.
  Worth best() const { return best_.worth; }
  Worth of_queue() const { return of_queue_; }
  int32_t orders() const { return orders_; }

 private:
  using Order = std::vector<uint32_t>;  // of turns: each names a class, by its place in classes()
  struct Outcome {
    Worth worth;
    std::vector<Place> places;
    std::vector<uint32_t> left;  // turns that placed nobody
  };
  struct Class {
    std::vector<PodSlot> pods;  // in the order of the queue, as many as free resources could hold at most
    int64_t gpu_micros = 0;     // that one of them asks for, on a node whose GPUs are advertised once each
    int64_t cpu_millis = 0;
    int64_t fits = 0;  // nodes on which one fits at first
  };

  const std::vector<PodSlot>& list(ClassId id, const std::vector<Int128>& free);
  Order by_size() const;
  Order by_nodes() const;
  std::vector<uint32_t> left_out() const;
  void improve(int32_t orders_max, WorkBudget& work);
  bool try_order(Order order, WorkBudget& work);
  std::optional<Outcome> play(const Order& order, WorkBudget& work);
  void place(const Place& place, Txn& txn, Outcome& out) const;

  const PlacementContext context_;
  std::vector<ClassId> ids_;
  std::vector<Class> classes_;
  Order queue_order_;
  size_t due_ = 0;  // turns at the front of every order
  Order best_order_;
  Outcome best_;
  Worth of_queue_;
  std::set<Order> tried_;
  int32_t orders_ = 0;
};

}  // namespace berth::engine
