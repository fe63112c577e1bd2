// What the pods of one set ask of each other's domains: to be together in one, or each in another.
#pragma once

#include <vector>

#include "engine/state.h"
#include "model/peers.h"

namespace berth::engine {

// Those that required affinity to one another makes: all pods are in one domain of each.
std::vector<model::SliceLayer> shared_layers(const State& state, PodSlot pod);

// No two of the class may be on one node.
bool stand_apart(const State& state, const PodClass& cls);

}  // namespace berth::engine
