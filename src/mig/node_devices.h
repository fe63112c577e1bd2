// What a node's GPUs are cut into, device by device, and how to cut the idle ones for more.
//
// A device is whole (MIG is off, it is one nvidia.com/gpu) or cut (its instances are nvidia.com/mig-<profile>). Amounts
// are ResourceLists of these resources and of no others. Plain values; deterministic.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/devices.h"
#include "model/mig.h"
#include "model/node.h"
#include "model/resources.h"
#include "packing/mig_geometry.h"

namespace berth::mig {

struct GpuDevice {
  packing::MigDevice mig;  // no instances where the device is whole
  bool whole = false;
  bool fixed = false;  // in use as a whole, or ill: it stays as it is
  bool ill = false;    // nothing of it is given out; it is fixed, too
  int32_t ties = 0;    // of a whole one, what its links to other whole ones are worth

  bool idle() const { return !fixed && mig.used.empty(); }
};

// The instances that lie on the device, without UUIDs.
std::vector<model::MigDeviceInstance> instances_of(const GpuDevice& device);

// nvidia.com/gpu or nvidia.com/mig-*: what repartitioning turns into one another.
bool is_cut_resource(std::string_view name);

// Those of the amounts, above 0.
model::ResourceList cut_resources(const model::ResourceList& amounts);

// The devices of a node that allows dynamic MIG. As an agent tells them, if there is one: those that it has given to
// pods are in use, the others idle. Else as allocatable counts them, all idle: which instance lies on which device is
// made up, evenly if that comes out. kInvalidInput where the counts cannot be (a profile that the model has not, more
// than the devices hold), or where the agent tells something else than kubelet counts: one of both is out of date.
Result<std::vector<GpuDevice>> devices_of(const model::Node& node);

// What the devices are advertised as; those that are ill are not.
model::ResourceList advertised(std::span<const GpuDevice> devices);

// Whether cut_for() finds a way, with as many devices cut as may be; mostly microseconds.
bool can_cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs, packing::MigDemand& demand);

// Why the change of a node that an agent cuts can arrive no more, as a sentence without its end: of the devices that
// are not as `wanted` says, by UUID, somebody has come to use one, or the node has it no more; or others are healthy
// than those that `resources` counts on; or the node is not to be cut any more. Empty: it can, or nothing is `wanted`
// of an agent.
std::string why_it_cannot_arrive(const model::Node& node, std::span<const model::GpuDevice> wanted,
                                 const model::ResourceList& resources);

// The devices cut so that as much as `needs` says is free beside what is in use, changing idle devices only, and no
// more of them than it takes: first within those that are cut already, then of whole ones, of which those that are
// connected the least come first. None where that cannot be. A device is made whole again only if a whole one is
// needed. Of a device that is in use, what is not used counts.
std::optional<std::vector<GpuDevice>> cut_for(std::span<const GpuDevice> devices, const model::ResourceList& needs,
                                              packing::MigDemand& demand);

// One of packing::named_layouts() on all devices of a node.
struct NamedConfig {
  std::string name;
  std::vector<GpuDevice> devices;
};

// The first with as much as `needs` says, the devices being idle.
std::optional<NamedConfig> named_for(std::span<const GpuDevice> devices, const model::ResourceList& needs);

// Fills what is free of the devices that are no longer as they were `before`, since while anything of a device is in
// use it is not cut again: with instances of what is asked for most, by memory slices, and where none of these fits
// with the largest that does (of those without +me, by memory slices, then by compute slices).
void fill_up(std::span<const GpuDevice> before, std::vector<GpuDevice>& devices, packing::MigDemand& demand);

}  // namespace berth::mig
