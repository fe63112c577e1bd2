// Nodes as they would be without some of those who have room there.
//
// Room that is kept for workloads which wait (engine::QueuedWorkloads::keep) keeps no GPU from being cut for its owner,
// or for a workload that comes before: it is given back when the cut begins.
#pragma once

#include <span>
#include <vector>

#include "engine/state.h"

namespace berth::mig {

// The stand-ins on the node for which room is kept while nobody leaves for them; in no order.
std::vector<engine::PodSlot> kept_room(const engine::State& state, const engine::NodeState& node);

// Gives back the room of a pod that is on the node, in a copy of it: resources, its share of a GPU, host ports.
void take_out(const engine::State& state, engine::PodSlot pod, engine::NodeState& node);
// A copy of the node without those pods.
engine::NodeState node_without(const engine::State& state, engine::NodeSlot node,
                               std::span<const engine::PodSlot> pods);

}  // namespace berth::mig
