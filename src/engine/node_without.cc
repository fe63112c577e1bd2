#include "engine/node_without.h"

#include <algorithm>
#include <iterator>

namespace berth::engine {

std::vector<PodSlot> kept_room(const State& state, const NodeState& node) {
  std::vector<PodSlot> out;
  std::ranges::copy_if(node.pods, std::back_inserter(out), [&](PodSlot pod) { return has_room_kept(state.pod(pod)); });
  return out;
}

void take_out(const State& state, PodSlot slot, NodeState& node) {
  const PodState& pod = state.pod(slot);
  const PodClass& cls = state.pod_class(pod.cls);
  for (const ResourceAmount& request : cls.requests) node.used[request.id.value] -= request.amount;
  node.promises.count(pod, cls.requests, -1);
  State::count_share(node, pod.devices, -1);
  State::charge_ports(node, cls, -1);
}

NodeState node_without(const State& state, NodeSlot node, std::span<const PodSlot> pods) {
  NodeState out = state.node(node);
  for (const PodSlot pod : pods) take_out(state, pod, out);
  return out;
}

}  // namespace berth::engine
