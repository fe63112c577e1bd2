// Nodes as they would be without some of those who have room there.
//
// Room that is kept for who waits (QueuedWorkloads::keep, Engine::Reserve, KeptGpus) keeps no GPU from being cut for
// its owner, or for a workload or a pod that comes before: it is given back when the cut begins.
#pragma once

#include <span>
#include <vector>

#include "engine/state.h"

namespace berth::engine {

// One for which room is kept on its node while nobody leaves for it.
inline bool has_room_kept(const PodState& pod) { return pod.node_kept && pod.phase == PodPhase::kNominated; }
// The same of stand-ins alone.
inline bool is_kept_room(const PodState& pod) { return pod.pod.stand_in && has_room_kept(pod); }
// Those on the node that have room kept; in no order.
std::vector<PodSlot> kept_room(const State& state, const NodeState& node);

// Whether so much is there only once some have left that run until they are deleted; who is nominated counts nowhere.
bool needs_who_runs_on(const State& state, NodeSlot node, std::span<const ResourceAmount> requests);

// What a pod of the class asks for beside GPUs of whatever form.
model::ResourceList asked_beside_gpus(const State& state, const PodClass& cls);

// Gives back the room of a pod that is on the node, in a copy of it: resources, its share of a GPU, host ports.
void take_out(const State& state, PodSlot pod, NodeState& node);
// A copy of the node without those pods.
NodeState node_without(const State& state, NodeSlot node, std::span<const PodSlot> pods);

}  // namespace berth::engine
