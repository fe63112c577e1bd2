#include "engine/node_without.h"

#include <algorithm>
#include <iterator>

namespace berth::engine {

std::vector<PodSlot> kept_room(const State& state, const NodeState& node) {
  std::vector<PodSlot> out;
  std::ranges::copy_if(node.pods, std::back_inserter(out), [&](PodSlot pod) { return has_room_kept(state.pod(pod)); });
  return out;
}

bool needs_who_runs_on(const State& state, NodeSlot node, std::span<const ResourceAmount> requests) {
  const NodeView view = state.view(node);
  std::vector<Int128> left;  // by request
  for (const ResourceAmount& request : requests) left.push_back(Int128{view.allocatable(request.id)} - request.amount);
  for (const PodSlot slot : state.node(node).pods) {
    const PodState& pod = state.pod(slot);
    const bool leaves = pod.pod.terminating || pod.evicting || pod.phase == PodPhase::kNominated;
    if (!pod.pod.daemon && (leaves || !pod.pod.runs_on())) continue;
    for (size_t i = 0; i < left.size(); ++i) left[i] -= state.pod_class(pod.cls).request(requests[i].id);
  }
  return std::ranges::any_of(left, [](Int128 amount) { return amount < 0; });
}

model::ResourceList asked_beside_gpus(const State& state, const PodClass& cls) {
  model::ResourceList out;
  for (const ResourceAmount& request : cls.requests)
    if (!state.resources().is_gpu(request.id)) out.set(state.resources().name(request.id), request.amount);
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
