// Layouts as nvidia-mig-parted's configuration has them, which mig-manager applies to a node by its label
// nvidia.com/mig.config: https://github.com/NVIDIA/mig-parted
//
// It says how many instances of each profile a device has, not where: mig-parted clears the device and looks for an
// order in which the driver takes them. So a plan that keeps instances in use where they are, or counts on a start, is
// carried out through NVML (nvmlDeviceCreateGpuInstanceWithPlacement); this is for devices that are idle.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/mig.h"

namespace berth::packing {

// The map `mig-devices` of an entry, in the order of the model's profiles: {{"1g.5gb", 2}, {"3g.20gb", 1}}.
std::vector<std::pair<std::string, int>> mig_devices(const model::MigLayout& layout);

// A name for a device cut so, which a label can have: "2x1g.5gb-1x3g.20gb"; "all-enabled", as mig-parted calls it, for
// an empty layout.
std::string mig_config_name(const model::MigLayout& layout);

// An entry of `mig-configs` for a node, in YAML, as it stands in the file: devices by index, alike ones together.
std::string mig_config_entry(const std::string& name, std::span<const model::MigLayout> devices);

}  // namespace berth::packing
