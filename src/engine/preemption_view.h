// PreemptionView: a pod class's view of the fleet by what it would take to make room: for every node that could be
// cleared, what that would cost, or why even that would not help; and the cheapest plan of all. Who would have to leave
// a node is found out again when a plan is carried out (engine/victims.h).
//
// It stands beside the class's Candidates and is kept up to date in the same way: only nodes that changed are tried
// again. For a class that inter-pod terms concern, a change anywhere may matter: then all nodes are gone through, and
// those are tried again whose verdict depended on more than the node, or whose group's verdict is another one. A view
// that found no plan is not looked at again before `retry` has passed, then twice as long, up to eight times; until
// then the plan that is carried out is merely sure to hold. While nothing with a place is less important than the
// class, the view is empty and costs nothing.
//
// refresh() may run out of work units and go on where it stopped, as that of Candidates.
//
// Equal plans go to the first node by name. Source: kube-scheduler's pickOneNodeForPreemption.
#pragma once

#include <string>
#include <vector>

#include "engine/candidates.h"
#include "engine/tournament.h"
#include "engine/victims.h"

namespace berth::engine {

class PreemptionView {
 public:
  struct Context {
    VictimSearch::Context search;
    FailureSets& sets;
    Duration retry;
  };
  // Brings the view up to the state; the class's candidates are up to date. False when the budget ran out first; it
  // then goes on from there.
  bool refresh(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);

  // The node whose plan costs least; invalid when there is no plan.
  NodeSlot best() const;
  // The plan has been carried out, or cannot be: it is made anew at the next refresh().
  void forget(NodeSlot node, const State& state);
  // "preemption: 0/3 nodes are available: …": why no node can be cleared.
  std::string why_not(const PodClass& cls, const Candidates& candidates, const FailureSets& sets) const;
  // Grows whenever what why_not() says may have changed.
  uint64_t version() const { return version_; }
  // When a view that waits for `retry` is to be looked at again; INT64_MAX: it does not wait.
  Time stale_until() const { return stale_until_; }
  size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry) + tournament_.memory_bytes(); }

 private:
  // Without the less important pods that may go.
  struct Entry {
    uint32_t generation = 0;     // 0: not tried
    FailureSetId failure;        // kFits: there is a plan; invalid: preemption does not help, or nobody may go
    FailureSetId group = kFits;  // of the node's group at that time
    bool looked_around = false;  // it depended on other nodes, too
    PlanCost cost;
    bool planned() const { return failure == kFits; }
  };

  void start_over(const State& state);
  bool try_changed(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);
  bool try_all(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);
  bool confirm_best(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);
  bool try_node(VictimSearch& search, const Context& context, const Candidates& candidates, NodeSlot node,
                WorkBudget& work);
  bool holds(NodeSlot node, const State& state, const Candidates& candidates) const;
  void grow(const State& state);
  void settle(const State& state);
  uint32_t better(uint32_t a, uint32_t b, const State& state) const;

  std::vector<Entry> entries_;  // by node slot; empty, or of the tournament's size
  Tournament tournament_;       // of the entries with a plan
  bool batch_ = false;          // the tournament is stale until settle()
  uint64_t version_ = 0;
  uint64_t epoch_ = UINT64_MAX;  // Candidates::epoch() that the entries go by
  uint64_t cursor_ = 0;          // first unread entry of the change log
  uint32_t scan_ = 0;            // next slot of a scan of all nodes
  bool scanning_ = true;
  Time stale_until_{INT64_MAX};
  Time next_look_{INT64_MIN};
  uint32_t fruitless_ = 0;  // looks in a row that found no plan
};

}  // namespace berth::engine
