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
#include "model/node.h"

namespace berth::packing {

// The map `mig-devices` of an entry, in the order of the model's profiles: {{"1g.5gb", 2}, {"3g.20gb", 1}}.
std::vector<std::pair<std::string, int>> mig_devices(const model::MigLayout& layout);

// A name for a device cut so, which a label can have: "2x1g.5gb-1x3g.20gb"; "all-enabled", as mig-parted calls it, for
// an empty layout.
std::string mig_config_name(const model::MigLayout& layout);

// An entry of `mig-configs` for a node, in YAML, as it stands in the file: devices by index, alike ones together.
std::string mig_config_entry(const std::string& name, std::span<const model::MigLayout> devices);

// A configuration of NVIDIA's MIG manager, which cuts all devices of a node alike.
struct NamedLayout {
  std::string name;
  model::MigLayout layout;  // of each device
  bool whole = false;       // MIG is off, each device is one nvidia.com/gpu
};

// Those that every node of the model knows, in the order in which they are to be tried: all-disabled, all-<profile>
// with as many of it as a device takes, and all-balanced (two 1g, a 2g and a 3g). The GPU operator's
// default-mig-parted-config has them for every model; newer MIG managers make the same ones from what the driver says.
// https://github.com/NVIDIA/gpu-operator/blob/main/assets/state-mig-manager/0400_configmap.yaml
const std::vector<NamedLayout>& named_layouts(const model::MigModel& model);

// What a device that is cut so is advertised as: nvidia.com/gpu and nvidia.com/mig-*.
model::ResourceList advertised(const NamedLayout& device);

// False where no way to cut the node's GPUs gives `asked` of nvidia.com/gpu and nvidia.com/mig-* at once, were all of
// them idle. Exact but for +me; see may_fit().
bool can_be_cut_for(const model::DynamicMig& mig, const model::ResourceList& asked);

}  // namespace berth::packing
