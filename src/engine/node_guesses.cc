#include "engine/node_guesses.h"

#include <algorithm>
#include <tuple>

#include "engine/promised_shares.h"

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

uint32_t NodeGuesses::settle_promised(State& state, NodeSlot node) {
  if (state.node(node).guesses == 0) return 0;
  std::vector<PodState*> pods;
  for (const PodSlot slot : state.node(node).pods)
    if (PodState& pod = state.mutable_pod(slot); pod.phase == PodPhase::kNominated && pod.devices.device >= 0)
      pods.push_back(&pod);
  const auto key = [](const PodState* pod) { return std::tuple(-pod->devices.amount, std::string_view(pod->pod.uid)); };
  std::ranges::sort(pods, {}, key);
  std::vector<DeviceUse> uses;
  std::vector<int64_t> amounts;
  for (PodState* pod : pods) uses.push_back(state.release_devices(*pod)), amounts.push_back(uses.back().amount);
  const NodeState& there = state.node(node);
  const std::vector<int32_t> places = places_of_shares(amounts, there.node.gpus.units(), there.devices, there.listed);
  for (size_t i = 0; i < pods.size(); ++i) {
    uses[i].device = places[i];
    state.charge_use(*pods[i], uses[i]);
  }
  return static_cast<uint32_t>(pods.size());
}

int32_t NodeGuesses::place_beside_promised(const State& state, const NodeState& node, int64_t amount, bool joins) {
  joins &= node.gpus_used() > node.gpus_allocatable();
  if (const int32_t joined = joins ? node.best_shared(amount) : -1; joined >= 0) return joined;
  if (node.guesses == 0) return -1;
  SharedDevices shared = node.devices;
  std::vector<int64_t> amounts;
  for (const PodSlot slot : node.pods) {
    const PodState& pod = state.pod(slot);
    if (pod.phase != PodPhase::kNominated || pod.devices.device < 0) continue;
    shared.give_back(pod.devices.device, pod.devices.amount, pod.devices.holder);
    amounts.push_back(pod.devices.amount);
  }
  if (amounts.empty()) return -1;
  amounts.push_back(amount);
  std::ranges::sort(amounts, std::greater<>());
  const auto own = static_cast<size_t>(std::ranges::find(amounts, amount) - amounts.begin());
  const std::vector<int32_t> places = places_of_shares(amounts, node.node.gpus.units(), shared, node.listed);
  if (!joins) return places[own];
  for (size_t i = 0; i < places.size(); ++i)
    if (i != own) shared.take(places[i], amounts[i], ShareHolder::kPromised);
  const int32_t joined = node.best_shared(amount, shared);
  return joined >= 0 ? joined : places[own];
}

void NodeGuesses::let_settle(State& state, NodeSlot node, bool settle) {
  NodeState& there = state.nodes_[node.value];
  there.guesses_stay = !settle;
  if (settle) state.settle_guesses(node);
}

}  // namespace berth::engine
