// What Kubernetes objects say of GPUs that pods share: annotations of pods, labels and resources of nodes.
//
// Sources: NVIDIA GPU feature discovery's labels (nvidia.com/gpu.memory, .replicas, .count, .product), the NVIDIA
// device plugin's time-slicing and MPS (resources nvidia.com/gpu and nvidia.com/gpu.shared), KAI-Scheduler's
// annotations gpu-fraction and gpu-memory.
#pragma once

#include <string>
#include <vector>

#include "api/cluster.h"
#include "api/meta.h"
#include "engine/decision.h"
#include "model/gpu.h"
#include "model/resources.h"

namespace berth::bridge {

// A part of one GPU, as a decimal number above 0 and at most 1; or so much of its memory, as a quantity of bytes.
inline constexpr std::string_view kGpuFractionAnnotation = "berth.dev/gpu-fraction";
inline constexpr std::string_view kGpuMemoryAnnotation = "berth.dev/gpu-memory";
// The same in KAI-Scheduler's words; memory in MiB, and of how many devices, which is always one.
inline constexpr std::string_view kKaiFraction = "gpu-fraction", kKaiMemory = "gpu-memory";
inline constexpr std::string_view kKaiDevices = "gpu-fraction-num-devices";
inline constexpr std::string_view kGpuResource = model::kWholeGpuResource;
// Which devices of its node a pod has or shares, with commas between them: UUIDs, or numbers from 0 on where nobody
// lists the devices; written with the bind where devices are known.
inline constexpr std::string_view kGpuDevicesAnnotation = "berth.dev/gpu-devices";

// How much of a node's devices can be known beyond what its labels and resources tell.
enum class DeviceKnowledge : uint8_t {
  kCounts,  // a cluster, where kubelet and a foreign device plugin choose devices
  kExact,   // a simulation, which has no kubelet: each device is known
};

// The share that the pod's annotations ask for, Berth's before KAI's; with `problem` where they cannot be read or do
// not go with `requests`.
model::GpuShare gpu_share_of(const api::ObjectMeta& metadata, const model::ResourceList& requests);
// Empty where the annotation is missing or cannot be read.
std::vector<std::string> gpu_devices_of(const api::ObjectMeta& metadata);
// The annotation's value; empty for none.
std::string gpu_devices_text(const engine::DeviceNames& devices);
// For people: "0,1 (NVLink)"; empty for none.
std::string told_devices(const engine::DeviceNames& devices);
// What is added to "Successfully assigned … to node": " with GPUs 0,1 (NVLink)", " with GPU 0; GPU limit enforced:
// berth-agent"; empty for none.
std::string with_gpus_text(const engine::DeviceNames& devices);
// `may_be_whole`: its GPUs may be cut anew, so that there may be whole ones where all are cut into MIG instances now.
model::NodeGpus gpus_of(const api::Node& node, DeviceKnowledge knowledge, bool may_be_whole = false);

// What the device plugin adds to the name of a resource of which each is advertised several times.
inline constexpr std::string_view kSharedSuffix = ".shared";
// As how many each of the resource is advertised, by the label "<resource>.replicas"; `otherwise` where it is missing.
int64_t replicas_of_resource(const api::Node& node, std::string_view resource, int64_t otherwise);

// Of a label by which NVIDIA's GPU feature discovery counts the node's GPUs, and which is no number; empty: all are.
std::string gpu_label_problem(const api::Node& node);

// What is wrong with the value of an annotation that asks for a share, and the way out; empty: nothing, or another one.
std::string gpu_annotation_problem(std::string_view key, const std::string& value);

}  // namespace berth::bridge
