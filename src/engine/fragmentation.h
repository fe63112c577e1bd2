// How much of what is free on a fleet's GPUs is of use, and to whom: a measure that people can read.
//
// For each GPU resource and each shape of request (1, 2, 4 and 8 devices; one of a MIG profile or of a device that is
// advertised several times): how many more would fit now, and what strands the other free devices. A request of a shape
// asks, beside its devices, for the cpu and memory that known pods ask for per device in the median, and tolerates what
// any of them tolerates; those that workloads in queues are yet to have count, too. Nodes whose GPUs can be cut into
// MIG instances have a row for every profile of their model, also for those that no device is cut into now.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/state.h"

namespace berth::engine {

class QueuedWorkloads;

// What keeps a free device from a shape. A node's devices that are too few for another request of the shape are
// stranded by shape; of the others those that the node's free cpu, memory or pods do not suffice for by these.
enum class Stranding : uint8_t { kByTaint, kByCpu, kByMemory, kByPods, kByShape };
inline constexpr std::array<std::string_view, 5> kStrandings = {"taint", "cpu", "memory", "pods", "shape"};

struct ShapeRoom {
  int64_t size = 1;  // devices
  int64_t fit = 0;   // requests that fit beside one another
  // How many would fit if on nodes with dynamic MIG all idle GPUs were cut for this shape, or made whole for it: `fit`
  // where nothing is gained. None where no node with dynamic MIG could have the resource.
  std::optional<int64_t> fit_if_cut;
  std::array<int64_t, kStrandings.size()> stranded =
      {};  // devices, by Stranding; with fit × size they are all that are free
};

// What one of a resource is on a node: nodes of another kind have rows of their own.
enum class GpuUnit : uint8_t {
  kDevice,    // or, of a resource nvidia.com/mig-*, an instance of that profile
  kReplica,   // of a device, or of a MIG instance, that is advertised several times
  kInstance,  // a MIG instance under the name of a device, by the device plugin's strategy `single`
};
inline constexpr std::array<std::string_view, 3> kGpuUnits = {"device", "replica", "instance"};
std::string_view to_string(GpuUnit unit);

struct ResourceRoom {
  std::string resource;
  GpuUnit unit = GpuUnit::kDevice;
  int64_t allocatable = 0, free = 0;         // devices; free: of nodes that are not over-used
  int64_t cpu_millis = 0, memory_bytes = 0;  // that a request asks for per device
  std::vector<ShapeRoom> shapes;             // by size
};

// Of all nodes; what is over-used counts in full, what is only promised not at all. GPUs are all GPU resources but
// instances of MIG, which are parts of one and stand apart, whatever they are called.
struct GpuTotals {
  int64_t allocatable = 0, used = 0;
  int64_t mig_allocatable = 0, mig_used = 0;  // instances, of any profile
};
GpuTotals sum_gpus(const State& state);

// The GPUs of a node with dynamic MIG that could be cut anew now, all of them idle.
struct IdleGpus {
  int64_t count = 0;
  model::ResourceList advertised;  // what they are as they are cut
  // How many of each resource they can be where some have to make up for what is in use on GPUs that are ill; none: as
  // many as there are on so many GPUs of the model.
  std::optional<model::ResourceList> most = {};
};
// Null where there are none. Asked once for each resource, of nodes with dynamic MIG.
using FindIdleGpus = std::function<const IdleGpus*(NodeSlot)>;

// Pods that have not come yet.
struct QueuedPods {
  int64_t pods = 0;
  model::ResourceList requests;  // of each
  bool shares_gpu = false;
  std::vector<model::Toleration> tolerations;  // with those of the flavors that it may get
};
// Of the first thousand workloads that wait to be admitted, by pod set.
std::vector<QueuedPods> queued_pods(const QueuedWorkloads& workloads);

// By name of the resource, then by unit; those that some node has, and the profiles of nodes that are
// advertised by profile (the label nvidia.com/mig.strategy says `mixed`, an instance is there, or an agent lists a GPU
// with MIG) or have dynamic MIG.
// Without `find_idle` nothing is said of cutting. O(nodes × resources + classes).
std::vector<ResourceRoom> measure_fragmentation(const State& state, const FindIdleGpus& find_idle = {},
                                                std::span<const QueuedPods> queued = {});

}  // namespace berth::engine
