// What a node's GPUs are cut into, device by device, and how to cut the idle ones for more.
//
// A device is whole (MIG is off, it is one nvidia.com/gpu) or cut (its instances are nvidia.com/mig-<profile>). Amounts
// are ResourceLists of these resources and of no others. Plain values; deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/mig.h"
#include "model/node.h"
#include "model/resources.h"
#include "packing/mig_geometry.h"

namespace berth::mig {

struct GpuDevice {
  packing::MigDevice mig;  // no instances where the device is whole
  bool whole = false;
  bool whole_in_use = false;

  bool idle() const { return !whole_in_use && mig.used.empty(); }
};

// nvidia.com/gpu or nvidia.com/mig-*: what repartitioning turns into one another.
bool is_cut_resource(std::string_view name);

// The devices of a node that allows dynamic MIG, all idle, as its capacity counts them: which instance lies on which
// device is made up, evenly if that comes out. kInvalidInput where the counts cannot be (a profile that the model has
// not, more than the devices hold) or may not last (the node's allocatable says something else than its capacity).
Result<std::vector<GpuDevice>> devices_of(const model::Node& node);

// What the devices are advertised as.
model::ResourceList advertised(std::span<const GpuDevice> devices);

// The devices cut so that as much as `needs` says is free beside what is in use, changing idle devices only, and no
// more of them than it takes: first within those that are cut already, then of whole ones. None where that cannot be.
// A device is made whole again only if a whole one is needed.
std::optional<std::vector<GpuDevice>> cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs,
                                              packing::MigDemand& demand);

// Fills what is free of the devices that are no longer as they were `before` with instances of what is asked for most,
// by memory slices: while anything of a device is in use, it is not cut again.
void fill_up(std::span<const GpuDevice> before, std::vector<GpuDevice>& devices, packing::MigDemand& demand);

}  // namespace berth::mig
