// plan_geometry(): how to cut a fleet's MIG devices anew for the slices that wait.
//
// Instances in use stay where they are; everything else on a device may go. The best plan
//   1. serves the most waiting slices, each counted with its memory slices,
//   2. of these changes the fewest devices, since a device that is cut anew serves nothing meanwhile,
//   3. of these leaves the most useful room (mig_room.h) beside what is used and what is served.
// From 2 it follows that no device changes unless something that waits gains from it, and that a plan made again of its
// own result, with the same slices waiting, changes nothing.
//
// The search goes through the devices and keeps, for each rest of what waits, the best way to come there: a dynamic
// program, exact while the rests are few (kGeometryWorkMax says how few), and beyond that a beam of the most
// promising ones. Deterministic; no state.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/mig.h"
#include "packing/mig_room.h"

namespace berth::packing {

struct MigDevice {
  model::MigLayout layout;  // all instances on it
  model::MigLayout used;    // those of them that something runs on
};

// Slices that wait, by NVIDIA's name of the profile ("1g.5gb+me").
using MigWaiting = std::map<std::string, int>;

struct GeometryPlan {
  std::vector<model::MigLayout> layouts;  // by device
  std::vector<uint32_t> changed;          // devices whose layout is another than before, ascending
  MigWaiting served;                      // how many of what waits find an instance that is not in use
  int64_t served_memory_slices = 0;
};

// Steps from one rest of what waits to another that a search looks at, at most; about a second's worth.
inline constexpr int64_t kGeometryWorkMax = 4'000'000;

// A search costs `work_max`, or a few steps for each device where that is more; a plan searches until it finds no more,
// which takes two searches, and another only where a beam serves more than the one before. Names that no device's model
// has are never served. Every used instance is one of its device's layout.
GeometryPlan plan_geometry(std::span<const MigDevice> devices, const MigWaiting& waiting, MigDemand& demand,
                           int64_t work_max = kGeometryWorkMax);

}  // namespace berth::packing
