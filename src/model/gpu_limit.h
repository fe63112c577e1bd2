// What is to be told of a pod's GPUs on a certain node: how exactly they are known, and whether anything keeps a pod
// that uses a GPU beside others to its part of it.
#pragma once

#include <optional>
#include <string_view>

#include "model/gpu.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/resources.h"

namespace berth::model {

// For people and programs, of a pod that asks for the share and the requests: "enforced: MIG", "not enforced:
// time-slicing". Empty for a pod that has its devices for itself there, or none, and where a share could not go. What
// is enforced where says docs/devices.md.
std::string_view gpu_limit(const Node& node, const GpuShare& share, const ResourceList& requests);
// Of a share that goes there.
std::string_view share_limit(const Node& node);

// How exactly the node's devices are known; none: it has no GPUs.
std::optional<DeviceMode> device_mode(const Node& node);
// The same of such a pod's devices there; none, too, if it asks for no GPU. Of a pod with ResourceClaims it
// is always their mode, whatever they claim: only the claims tell.
std::optional<DeviceMode> device_mode(const Node& node, const SchedulingSpec& spec);

}  // namespace berth::model
