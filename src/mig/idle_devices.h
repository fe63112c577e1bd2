// IdleDevices: of nodes with dynamic MIG, the devices that could be cut anew now, and what they could be cut into.
//
// Where an agent tells the devices, idle are those that it has given to nobody, provided that it has located every pod
// which the engine knows to use GPUs there, on all that it asks for (a bind on its way keeps all of them), that what it
// tells is all that is in use (engine::tells_all_in_use), and that Berth knows nobody on what it gives to nobody.
// Elsewhere counts are all that is known, and the devices are idle while no GPU resource of the node is in use. What
// devices_of() answers is remembered by shape of the node, of which a fleet has few. Owner thread only; deterministic.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/fragmentation.h"
#include "mig/node_devices.h"

namespace berth::mig {

class IdleDevices {
 public:
  struct Known {
    std::string shape;               // the same for nodes whose GPUs are alike, and cut alike
    std::vector<GpuDevice> devices;  // all of the node
    engine::IdleGpus idle;           // of these
  };

  // Of a node that has dynamic MIG; null if no device is idle, as while the node is being repartitioned. Room that is
  // kept for workloads which wait (kept_room) keeps devices in use, but for who may have it. Valid until the next call.
  // O(1) for a node that has not changed since the last.
  const Known* find(const engine::State& state, engine::NodeSlot slot);
  const Known* find_beside_kept(const engine::State& state, engine::NodeSlot slot);
  // The same once nobody has any of them.
  const Known* find_when_left(const model::Node& node);

 private:
  struct Seen {
    std::optional<uint32_t> generation;  // of the node
    const Known* known = nullptr;
    const Known* beside_kept = nullptr;
  };

  const Seen& seen(const engine::State& state, engine::NodeSlot slot);
  const Known* known_of(const model::Node& node);
  const Known* look(const engine::State& state, const engine::NodeState& node, std::span<const engine::PodSlot> kept);

  std::map<std::string, Known> known_;  // by shape; without devices: refused by devices_of()
  std::vector<Seen> seen_;              // by slot
};

// engine::measure_fragmentation() with what could be cut, and what workloads in queues ask for.
std::vector<engine::ResourceRoom> measure_fragmentation(const engine::Engine& engine, IdleDevices& idle);

}  // namespace berth::mig
