// GPUs that pods share, as plain values: what a pod asks of a device, and what a node says of its devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/labels.h"

namespace berth::model {

inline constexpr int64_t kWholeGpu = 1'000'000;  // micro-GPUs
// The resource of which one is a whole GPU, where the node does not advertise each several times.
inline constexpr std::string_view kWholeGpuResource = "nvidia.com/gpu";

inline constexpr int64_t kGpuMemoryMax = int64_t{8} << 40;  // bytes, so that every unit of a device fits 64 bits

// What a pod asks of one device that others may use beside it: a part of it, or so much of its memory.
struct GpuShare {
  int64_t micros = 0;        // of a device, 1 … kWholeGpu; 0: asks by memory
  int64_t memory_bytes = 0;  // 0: asks by micros
  std::string problem;       // why no node can serve what the pod asks for, as a sentence with the way out; empty: none

  bool asked() const { return micros > 0 || memory_bytes > 0 || !problem.empty(); }
  friend bool operator==(const GpuShare&, const GpuShare&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const GpuShare& s) {
    return H::combine(std::move(state), s.micros ^ s.memory_bytes);  // most pods ask for none
  }
};

// How much memory each GPU of nodes with these labels has, in bytes, by nvidia.com/gpu.memory (MiB, of NVIDIA's GPU
// feature discovery); 0: they do not tell, or what no GPU has.
int64_t gpu_memory(const Labels& labels);

// Of a share by memory, as a part of a GPU that has so much, in millionths: cut, so that shares which fill a GPU are no
// more than one; at least 1, and a whole one for more than it has.
int64_t part_of_memory(const GpuShare& share, int64_t gpu_memory_bytes);

// What keeps a share to its device on a node.
enum class GpuSharing : uint8_t {
  kNone,       // nothing: a device is given whole
  kReplicas,   // the device plugin advertises each device several times; kubelet chooses among them, and nobody knows
               // how
  kDevices,    // each device is known, and who uses it
  kUnlike,     // so it is, but they differ in memory, and shares are of devices that do not
  kInstances,  // nothing: what is given out as a device is a MIG instance (the device plugin's strategy `single`)
};

// How exactly the devices of a node are known, or those of a pod on it.
enum class DeviceMode : uint8_t {
  kCounts,  // how many there are, and how many are asked for; kubelet chooses
  kAgent,   // an agent lists them, with their health, how they are connected and who has them
  kDra,     // dynamic resource allocation: a pod's ResourceClaims name the devices
  kExact,   // a simulation, in which nobody else chooses
};
// "counts", "agent", "DRA", "exact".
std::string_view to_string(DeviceMode mode);

struct NodeGpus {
  GpuSharing sharing = GpuSharing::kNone;
  std::string resource;      // of which shares are a part: nvidia.com/gpu or nvidia.com/gpu.shared; empty: no GPUs
  int64_t memory_bytes = 0;  // of each device, at most kGpuMemoryMax; 0: not known
  int64_t replicas = 1;      // as which each device is advertised; 0: not known
  bool mps = false;          // CUDA MPS keeps pods to their replicas; else they take turns (time-slicing)
  std::vector<std::string> time_sliced = {};  // resources of MIG instances that are advertised several times each
  friend bool operator==(const NodeGpus&, const NodeGpus&) = default;

  // Shares of a device here are counted in units in which both fractions and amounts of memory are whole numbers, so
  // that thirds of its memory add up to one device and to no more: bytes × 10⁶, or 10⁻⁶ where the memory is not known.
  int64_t units() const { return memory_bytes > 0 ? memory_bytes * kWholeGpu : kWholeGpu; }  // of a whole device
  // Those of a share. 0: the memory of the devices is not known; more than units(): no device is that large.
  int64_t units_of(const GpuShare& share) const;
  // The share in replicas, rounded up.
  int64_t replicas_of(const GpuShare& share) const;
};

}  // namespace berth::model
