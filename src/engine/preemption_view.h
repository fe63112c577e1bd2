// PreemptionView: a pod class's view of the fleet by what it would take to make room: for every node that could be
// cleared, who would have to leave, or why even that would not help; and the cheapest plan of all.
//
// It stands beside the class's Candidates and is kept up to date in the same way: only nodes that changed are tried
// again (engine/victims.h), or all of them for a class that inter-pod terms concern, since to it any change anywhere
// may matter. A view that found no plan is not looked at again before `retry` has passed, then twice as long, up to
// eight times; until then the plan that is carried out is merely sure to hold. While nothing with a place is less
// important than the class, the view is empty and costs nothing.
//
// refresh() may run out of work units and go on where it stopped, as that of Candidates.
//
// Equal plans go to the first node by name. Source: kube-scheduler's pickOneNodeForPreemption.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <string>

#include "engine/candidates.h"
#include "engine/victims.h"

namespace berth::engine {

class PreemptionView {
 public:
  explicit PreemptionView(const State& state) : ranking_(Cheaper{this, &state}) {}
  PreemptionView(const PreemptionView&) = delete;
  PreemptionView& operator=(const PreemptionView&) = delete;

  struct Context {
    State& state;
    const PolicySet& policies;
    const DisruptionRules& rules;
    FailureSets& sets;
    Time now;
    Duration retry;
  };
  // Brings the view up to the state; the class's candidates are up to date. False when the budget ran out first; it
  // then goes on from there.
  bool refresh(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);

  // The node whose plan costs least; invalid when there is no plan.
  NodeSlot best() const { return ranking_.empty() ? NodeSlot{} : *ranking_.begin(); }
  const VictimPlan& plan(NodeSlot node) const { return entries_.at(node).plan; }
  // The plan has been carried out, or cannot be: it is made anew at the next refresh().
  void forget(NodeSlot node);
  // "preemption: 0/3 nodes are available: …": why no node can be cleared.
  std::string why_not(const PodClass& cls, const Candidates& candidates, const FailureSets& sets) const;
  // Grows whenever what why_not() says may have changed.
  uint64_t version() const { return version_; }
  // When a view that waits for `retry` is to be looked at again; INT64_MAX: it does not wait.
  Time stale_until() const { return stale_until_; }

 private:
  struct Entry {
    uint32_t generation = 0;
    FailureSetId failure;  // of the node without the less important pods; kFits: there is a plan
    VictimPlan plan;
  };
  struct Cheaper {
    const PreemptionView* view;
    const State* state;
    bool operator()(NodeSlot a, NodeSlot b) const;
  };

  void start_over(const State& state);
  bool try_changed(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);
  bool confirm_best(const Context& context, const PodClass& cls, const Candidates& candidates, WorkBudget& work);
  bool try_node(const Context& context, const PodClass& cls, const Candidates& candidates, NodeSlot node,
                WorkBudget& work);

  absl::btree_map<NodeSlot, Entry> entries_;    // of nodes that hold less important pods and could be cleared
  absl::btree_set<NodeSlot, Cheaper> ranking_;  // of those with a plan
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
