// The devices of one node as an agent on it reports them: which GPUs there are, how they are connected, which of them
// are healthy, and who has them.
//
// A plain value, read from the node's annotation berth.dev/devices (bridge/devices.h, docs/devices.md). Devices are
// known by their place in the list. Invariants of a NodeDevices that was read: 1. UUIDs are unique and not empty;
// 2. NVLink peers are places of other devices of the node, and links are the same from both ends; 3. there are at most
// kNodeDevicesMax.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace berth::model {

inline constexpr size_t kNodeDevicesMax = 16;

// Devices of one node; bit i: device i.
using DeviceSet = uint32_t;

inline constexpr int32_t kNvlinksMax = 18;  // of one device: those of Hopper and Blackwell

struct MigDeviceInstance {
  std::string uuid;
  std::string profile;                 // NVIDIA's name: "1g.10gb"
  int32_t start = 0;                   // its first memory slice
  std::vector<std::string> pods = {};  // that kubelet has given it to: "namespace/name"
  friend bool operator==(const MigDeviceInstance&, const MigDeviceInstance&) = default;
};

struct GpuDevice {
  std::string uuid;
  std::string model;         // as the label nvidia.com/gpu.product says it; empty: not told
  int64_t memory_bytes = 0;  // 0: not told
  int32_t numa_node = -1;    // −1: not told
  // The way to the device from the CPU: the PCI domain and bus of its root port, and the switch under it; empty: not
  // told, or there is no switch.
  std::string pcie_root, pcie_switch;
  std::vector<std::pair<uint32_t, int32_t>> nvlinks;  // to which device, by how many links; sorted. Through NVSwitches,
                                                      // too, which connect each device to every other
  bool mig_enabled = false;                           // it is given in instances, never whole
  std::vector<MigDeviceInstance> mig_instances;
  std::string unhealthy;          // why it takes no new work; empty: it is healthy
  std::vector<std::string> pods;  // that kubelet has given it to, in whole, in part or in instances: "namespace/name"
  friend bool operator==(const GpuDevice&, const GpuDevice&) = default;
};

struct NodeDevices {
  std::vector<GpuDevice> devices;
  bool keeps_shares = false;  // the agent keeps a pod to the device that its bind names, and to its part of it
  friend bool operator==(const NodeDevices&, const NodeDevices&) = default;
};

}  // namespace berth::model
