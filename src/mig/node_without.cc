#include "mig/node_without.h"

#include <algorithm>
#include <iterator>

namespace berth::mig {

using engine::PodSlot;
using engine::PodState;

std::vector<PodSlot> kept_room(const engine::State& state, const engine::NodeState& node) {
  std::vector<PodSlot> out;
  std::ranges::copy_if(node.pods, std::back_inserter(out), [&](PodSlot slot) {
    const PodState& pod = state.pod(slot);
    return pod.pod.stand_in && pod.node_kept && pod.phase == engine::PodPhase::kNominated;
  });
  return out;
}

void take_out(const engine::State& state, PodSlot slot, engine::NodeState& node) {
  const PodState& pod = state.pod(slot);
  const engine::PodClass& cls = state.pod_class(pod.cls);
  for (const engine::ResourceAmount& request : cls.requests) node.used[request.id.value] -= request.amount;
  node.promises.count(pod, cls.requests, -1);
  engine::State::count_share(node, pod.devices, -1);
  engine::State::charge_ports(node, cls, -1);
}

engine::NodeState node_without(const engine::State& state, engine::NodeSlot node, std::span<const PodSlot> pods) {
  engine::NodeState out = state.node(node);
  for (const PodSlot pod : pods) take_out(state, pod, out);
  return out;
}

}  // namespace berth::mig
