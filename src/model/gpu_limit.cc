#include "model/gpu_limit.h"

#include <algorithm>

#include "model/mig.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

bool has_gpu(const ResourceList& resources) {
  return std::ranges::any_of(resources,
                             [](const auto& each) { return each.second > 0 && is_gpu_resource(each.first); });
}

}  // namespace

std::string_view share_limit(const Node& node) {
  switch (node.gpus.sharing) {
    case GpuSharing::kReplicas: return node.gpus.mps ? "enforced: MPS" : "not enforced: time-slicing";
    case GpuSharing::kDevices: return node.devices.keeps_shares ? "enforced: berth-agent" : "enforced: simulation only";
    case GpuSharing::kNone:
    case GpuSharing::kUnlike:
    case GpuSharing::kInstances: break;
  }
  return "";
}

std::string_view gpu_limit(const Node& node, const GpuShare& share, const ResourceList& requests) {
  const bool whole = requests.get(node.gpus.resource) > 0;
  const bool replicas = whole && node.gpus.sharing == GpuSharing::kReplicas;
  if (share.asked() || replicas) return share_limit(node);
  bool instances = whole && node.gpus.sharing == GpuSharing::kInstances, turns = instances && node.gpus.replicas > 1;
  for (const auto& [resource, amount] : requests) {
    const bool there = node.mig || node.capacity.get(resource) > 0 || node.allocatable.get(resource) > 0;
    if (amount <= 0 || !there || !is_mig_resource(resource)) continue;
    instances = true;
    turns |= std::ranges::find(node.gpus.time_sliced, resource) != node.gpus.time_sliced.end();
  }
  if (turns) return "not enforced: time-slicing";
  return instances ? "enforced: MIG" : "";
}

std::optional<DeviceMode> device_mode(const Node& node) {
  const NodeGpus& gpus = node.gpus;
  const bool listed = !node.devices.devices.empty();
  if (!listed && gpus.resource.empty() && !has_gpu(node.capacity) && !has_gpu(node.allocatable)) return std::nullopt;
  if (!node.set_aside.empty()) return DeviceMode::kCounts;
  if (listed && gpus.sharing != GpuSharing::kReplicas) return DeviceMode::kAgent;
  return gpus.sharing == GpuSharing::kDevices ? DeviceMode::kExact : DeviceMode::kCounts;
}

std::optional<DeviceMode> device_mode(const Node& node, const SchedulingSpec& spec) {
  if (spec.resource_claims) return DeviceMode::kDra;
  if (!spec.gpu_share.asked() && !has_gpu(spec.requests)) return std::nullopt;
  const std::optional<DeviceMode> mode = device_mode(node);
  const auto asks_instance = [](const auto& each) { return each.second > 0 && is_mig_resource(each.first); };
  const bool counted = mode == DeviceMode::kExact && std::ranges::any_of(spec.requests, asks_instance);
  return counted ? DeviceMode::kCounts : mode;
}

}  // namespace berth::model
