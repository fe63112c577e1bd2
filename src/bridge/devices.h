// What an agent on a node says of its devices: the annotation berth.dev/devices of the node, JSON by a versioned schema
// (docs/devices.md). Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/cluster.h"
#include "base/result.h"
#include "model/devices.h"
#include "model/gpu.h"

namespace berth::bridge {

inline constexpr std::string_view kDevicesAnnotation = "berth.dev/devices";

// Reads the annotation's value. An Error that names the field and the way out where it is no JSON, of another version,
// or breaks what model::NodeDevices promises. Fields that this version does not know pass, so that an agent may be
// newer than the scheduler.
Result<model::NodeDevices> read_devices(std::string_view json);

// The annotation's value for these devices, as read_devices() reads it.
std::string devices_json(const model::NodeDevices& devices);

// How many devices may be given whole where kubelet counts `allocatable` of them: never more than it counts, nor more
// than are healthy and not cut into instances. An Error where both cannot be true: kubelet counts more than the node
// has that are not cut, healthy or not.
Result<int64_t> whole_device_count(const model::NodeDevices& devices, int64_t allocatable);

// What the annotation and the node's allocatable say together: nothing without the annotation; else its devices, and
// of which GPU resources how many may be given: of whole ones what whole_device_count() gives, of MIG instances and
// replicas no more than kubelet counts, nor more than those of healthy devices. An Error, too, where kubelet counts
// more instances of a profile than are listed. Of replicas no contradiction can be told: what is less stands.
struct ToldDevices {
  model::NodeDevices devices;
  model::ResourceList allocatable;  // of the resources that the devices speak of
};
Result<std::optional<ToldDevices>> devices_of(const api::Node& node);

// Its GPUs are being cut anew, as Berth has written on it or NVIDIA's MIG manager says, so that kubelet and agent tell
// of it one after the other.
bool is_being_cut(const api::Node& node);

// What the devices mean for shares: whether they can be kept to them, and the memory of a device where no label tells
// it. They cannot where those that are healthy and whole are not of one memory, the label's among them.
void bound_shares(const model::NodeDevices& devices, model::NodeGpus& gpus);

}  // namespace berth::bridge
