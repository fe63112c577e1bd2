// Whether slices fit on MIG devices that are empty, and a good way to place them there; for many questions in a row,
// where plan_geometry() would take too long.
//
// The memory slices of all known models divide alike: halves at 0 and 4, of which only the lower takes a 4g, pairs at
// 0, 2, 4 and 6, of which the last takes no 2g, and single ones, of which the last takes no 1g. So a count for each
// size tells what fits: the largest first, each where it is least in the way of the smaller ones. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "packing/mig_geometry.h"

namespace berth::packing {

// False only where the slices do not fit on so many devices. Exact but for +me, of which it is only known that no
// device has two, and for profiles of another shape than those above, which it does not count. O(profiles).
bool may_fit(const model::MigModel& model, const MigWaiting& slices, int64_t devices);

// The slices on so many empty devices, the largest first, each where it costs the least room of the places that leave
// enough for the others, by the same count; none where they do not find places so. Microseconds.
std::optional<std::vector<model::MigLayout>> place_largest_first(const model::MigModel& model, const MigWaiting& slices,
                                                                 int64_t devices, MigDemand& demand);

}  // namespace berth::packing
