// Residents: the pods of each node as a preemptor sees them, made once for all classes.
//
// Whoever looks for victims goes through the pods of every node in order of importance, and asks of each what it
// requests, whether it may go and which budgets speak for it. That is the same for every class, so it stands here, node
// by node in a row of memory, and is made again only when the node's generation has grown. A table costs what its
// node's pods ask for; nodes on which nobody looks for victims have none. Owner thread only.
#pragma once

#include <span>
#include <vector>

#include "engine/disruption_rules.h"
#include "engine/state.h"

namespace berth::engine {

// When the pod started; one without a start time has just been bound.
int64_t start_of(const model::Pod& pod);

struct Resident {
  PodSlot pod;
  IdentityId identity;
  int32_t priority = 0;
  int64_t start = 0;  // start_of()
  uint32_t first_amount = 0, amounts = 0;
  bool nominated = false;
  bool yields = false;  // may go, whatever the time: nothing protects it, and the server has never refused
  bool heard = false;   // some selector may see it, or it keeps others away
};

class Residents {
 public:
  class Table {
   public:
    // The most important first, as kube-scheduler's MoreImportantPod has it; equals by name.
    const std::vector<Resident>& pods() const { return pods_; }
    std::span<const ResourceAmount> requests(const Resident& pod) const {
      return {amounts_.data() + pod.first_amount, pod.amounts};
    }
    // The pods from here on have a lower priority.
    size_t first_below(int32_t priority) const;

   private:
    friend class Residents;
    uint32_t generation_ = 0;  // 0: never made
    std::vector<Resident> pods_;
    std::vector<ResourceAmount> amounts_;
    size_t judged_from_ = SIZE_MAX;  // the pods that `judged_` is about; SIZE_MAX: none
    std::vector<bool> judged_;
  };

  // Valid until the node changes or another one is asked for.
  const Table& of(NodeSlot node, const State& state, const DisruptionRules& rules);
  // DisruptionRules::violations() of these pods of the node, by index, which of() has just given; valid as that is.
  const std::vector<bool>& violations(NodeSlot node, const std::vector<uint32_t>& pods, const State& state,
                                      DisruptionRules& rules);
  size_t memory_bytes() const;

 private:
  void make(Table& table, const NodeState& node, const State& state, const DisruptionRules& rules);

  std::vector<Table> tables_;     // by node slot
  std::vector<PodSlot> slots_;    // scratch
  std::vector<bool> violations_;  // scratch
};

}  // namespace berth::engine
