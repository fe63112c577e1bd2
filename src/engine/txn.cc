#include "engine/txn.h"

#include <utility>

#include "base/check.h"

namespace berth::engine {

void Txn::place(PodSlot pod, NodeSlot node) {
  const PodState& state = state_.pod(pod);
  check(!holds_room(state.phase), "a pod is placed once");
  check(state_.node(node).present, "pods are placed on nodes that exist");
  changes_.push_back({pod, NodeSlot{}, node, state.phase, {}, {}, NodeGuesses(state_, node)});
  state_.assign(pod, node, PodPhase::kReserved);
  state_.mutable_pod(pod).listed_before = state_.node(node).lists(state.pod.full_name());
  state_.choose_volumes(pod);
}

void Txn::evict(PodSlot pod) {
  const PodState& state = state_.pod(pod);
  check(holds_room(state.phase), "only a placed pod can be evicted");
  check(state_.node(state.node).present, "a pod is evicted from a node that exists");
  changes_.push_back({pod, state.node, NodeSlot{}, state.phase, state_.volume_choices(pod), state.devices,
                      NodeGuesses(state_, state.node)});
  state_.unassign(pod, PodPhase::kNotQueued);
}

void Txn::rollback_to(size_t mark) {
  check(mark <= changes_.size(), "a mark is used once");
  for (; changes_.size() > mark; changes_.pop_back()) {
    const Change& change = changes_.back();
    if (change.to.valid()) {
      state_.unassign(change.pod, change.phase_before);
    } else {
      state_.assign(change.pod, change.from, change.phase_before, change.devices);
      state_.restore_choices(change.choices);
    }
    change.guesses.restore(state_);
  }
}

std::vector<Txn::Change> Txn::commit() { return std::exchange(changes_, {}); }

}  // namespace berth::engine
