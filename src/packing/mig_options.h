// GeometryOptions: what one MIG device could give to slices that wait, and at what price. For plan_geometry().
//
// An option is a multiset of the wanted profiles that fits beside the instances in use; of all ways to place it, the
// best one. Devices that look alike share their options. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/mig.h"
#include "packing/mig_room.h"

namespace berth::packing {

// By wanted profile, in the order of the wish list.
using SliceCounts = std::vector<int32_t>;

struct GeometryOption {
  SliceCounts serves;
  bool changes = false;                       // needs instances that the device has not
  int64_t room = 0;                           // beside what is used and what serves
  std::vector<model::MigInstance> instances;  // those that serve, by start
};

// `wanted`: names of profiles; `most`: how many of each are of use. The first option serves nothing. Instances of
// `used` are in `layout`.
std::vector<GeometryOption> geometry_options(const model::MigLayout& layout, const model::MigLayout& used,
                                             const std::vector<std::string>& wanted, const SliceCounts& most,
                                             const MigRoom& room);

// The layout that a device has after the option: what is used, what serves, and of the rest what has room still.
model::MigLayout apply_option(const model::MigLayout& layout, const model::MigLayout& used,
                              const GeometryOption& option);

}  // namespace berth::packing
