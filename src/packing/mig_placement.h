// Which device, and which of its memory slices, a MIG instance takes where devices may be cut freely.
//
// Two answers: most_room(), Berth's, places where the least useful room is lost (mig_room.h); first_fit(), to compare
// with, takes the lowest device and there the lowest start. Both see devices of any models, and look at each: what
// they cost grows with the devices. Deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "model/mig.h"
#include "packing/mig_room.h"

namespace berth::packing {

struct MigPlace {
  uint32_t device = 0;  // by its place in the fleet
  model::MigInstance instance;
};

// `profile` by either of its names; devices whose model has none of that name are passed over. None if it fits nowhere.
std::optional<MigPlace> first_fit(std::span<const model::MigLayout> devices, std::string_view profile);
// Of places that cost the same room, that on the lowest device, and there the last start.
std::optional<MigPlace> most_room(std::span<const model::MigLayout> devices, std::string_view profile,
                                  MigDemand& demand);

}  // namespace berth::packing
