// Node: what the engine needs to know of a Kubernetes node, as a plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/devices.h"
#include "model/gpu.h"
#include "model/labels.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::model {

struct MigModel;  // model/mig.h

// Who cuts the GPUs of a node as Berth wants them.
enum class MigHand : uint8_t {
  kLayouts,  // an agent, which cuts each device into what it is told and leaves others alone
  kNamed,    // NVIDIA's MIG manager, which clears all devices and cuts them as a named configuration says
};

// The GPUs of a node whose MIG geometry Berth may choose.
struct DynamicMig {
  const MigModel* model = nullptr;  // of all of them, with the strategy `mixed`; none: the geometry is somebody else's
  int64_t devices = 0;              // GPUs, cut or whole
  MigHand hand = MigHand::kLayouts;
  explicit operator bool() const { return model != nullptr; }
  friend bool operator==(const DynamicMig&, const DynamicMig&) = default;
};

struct Node {
  std::string name;  // unique; the engine's key
  std::string uid;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;  // spec.unschedulable, "cordoned"
  ResourceList capacity;
  ResourceList allocatable;
  NodeGpus gpus;
  NodeDevices devices;  // as an agent lists them; empty: nobody does
  DynamicMig mig;
  bool cut_by_others = false;  // its GPUs are being cut anew, not by Berth, and take no new pods until that is over
  std::string set_aside;       // why it takes no new pods with GPUs, as a sentence with the way out; empty: it does
  std::string mig_problem;     // why its MIG instances take no new work, as a sentence with the way out; empty: they do
  std::vector<std::pair<std::string, int64_t>> images;  // status.images: every name, with its size in bytes; sorted
  // The listed devices that an agent cuts by layouts; empty: only their counts are known, or somebody else cuts them.
  std::span<const GpuDevice> cut_by_agent() const {
    return mig && mig.hand == MigHand::kLayouts ? std::span(devices.devices) : std::span<const GpuDevice>();
  }
  // Each listed device without MIG is one of `gpus`.
  bool lists_whole_devices() const {
    return !devices.devices.empty() && gpus.resource == kWholeGpuResource && gpus.sharing != GpuSharing::kReplicas &&
           gpus.sharing != GpuSharing::kInstances;
  }
  // How many devices shares are a part of: those that are not healthy now are numbered, too.
  int64_t gpu_devices() const { return std::max(capacity.get(gpus.resource), allocatable.get(gpus.resource)); }
  friend bool operator==(const Node&, const Node&) = default;
};

}  // namespace berth::model
