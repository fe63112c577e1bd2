#include "engine/node_guesses.h"

#include <algorithm>

namespace berth::engine {

NodeGuesses::NodeGuesses(const State& state, NodeSlot node) : node_(node) {
  if (state.node(node).guesses == 0) return;
  for (const PodSlot slot : state.node(node).pods)
    if (const PodState& pod = state.pod(slot); pod.devices.guessed) guesses_.push_back({slot, pod.phase, pod.devices});
  std::ranges::sort(guesses_, {}, &Guess::pod);
}

void NodeGuesses::restore(State& state) const {
  if (guesses_.empty()) return;
  const auto is_there = [&](const Guess& guess) {
    const PodState& pod = state.pod(guess.pod);
    return pod.in_use && pod.phase == guess.phase && pod.node == node_;
  };
  const auto is_known = [&](const Guess& guess) {
    return std::ranges::binary_search(guesses_, guess.pod, {}, &Guess::pod);
  };
  if (!std::ranges::all_of(guesses_, is_there) || !std::ranges::all_of(NodeGuesses(state, node_).guesses_, is_known))
    return;
  for (const Guess& guess : guesses_) state.release_devices(state.mutable_pod(guess.pod));
  for (const Guess& guess : guesses_) state.charge_use(state.mutable_pod(guess.pod), guess.devices);
}

void NodeGuesses::let_settle(State& state, NodeSlot node, bool settle) {
  NodeState& there = state.nodes_[node.value];
  there.guesses_stay = !settle;
  if (settle) state.settle_guesses(node);
}

}  // namespace berth::engine
