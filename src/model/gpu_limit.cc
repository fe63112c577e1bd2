#include "model/gpu_limit.h"

#include <algorithm>

#include "model/mig.h"

namespace berth::model {

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
  const bool instances =
      std::ranges::any_of(requests, [](const auto& each) { return each.second > 0 && is_mig_resource(each.first); });
  return instances || (whole && node.gpus.sharing == GpuSharing::kInstances) ? "enforced: MIG" : "";
}

}  // namespace berth::model
