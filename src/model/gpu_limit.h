// Whether anything keeps a pod that uses a GPU beside others to its part of it, on a certain node.
#pragma once

#include <string_view>

#include "model/gpu.h"
#include "model/node.h"
#include "model/resources.h"

namespace berth::model {

// For people and programs, of a pod that asks for the share and the requests: "enforced: MIG", "not enforced:
// time-slicing". Empty for a pod that has its devices for itself there, or none, and where a share could not go. What
// is enforced where says docs/devices.md.
std::string_view gpu_limit(const Node& node, const GpuShare& share, const ResourceList& requests);
// Of a share that goes there.
std::string_view share_limit(const Node& node);

}  // namespace berth::model
