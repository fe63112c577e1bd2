// IdleDevices: of nodes with dynamic MIG, the devices that could be cut anew now, and what they could be cut into.
//
// Where an agent tells the devices, idle are those that it has given to nobody, provided that it has located every pod
// which the engine knows to use GPUs there: a bind on its way keeps all of them. Elsewhere counts are all that is
// known, and the devices are idle while no GPU resource of the node is in use. What devices_of() answers is remembered
// by shape of the node, of which a fleet has few. Owner thread only; deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/fragmentation.h"
#include "engine/state.h"
#include "mig/node_devices.h"

namespace berth::mig {

class IdleDevices {
 public:
  using ByShape = std::map<std::string, std::vector<GpuDevice>>;

  // The shape of a node that has dynamic MIG, and all its devices, if some are idle; else null, as while the node is
  // being repartitioned. Valid until the next call.
  const ByShape::value_type* find(const engine::State& state, const engine::NodeState& node);

  // engine::FreeIfCut of such a node: what its devices in use leave free of the resource, and what the idle ones would
  // have if all of them were cut for it alone, or made whole for it.
  std::optional<int64_t> free_if_cut(const engine::State& state, const engine::NodeState& node,
                                     const std::string& resource);

 private:
  ByShape known_;  // devices_of(); empty: refused
};

// engine::measure_fragmentation() with what could be cut.
std::vector<engine::ResourceRoom> measure_fragmentation(const engine::State& state, IdleDevices& idle);

}  // namespace berth::mig
