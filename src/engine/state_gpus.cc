// State's accounts of shared GPUs. A device that is shared counts as one in the node's use of the resource, whatever
// part of it is taken, so that whole devices and shares never meet.
#include <algorithm>
#include <tuple>

#include "engine/state.h"

namespace berth::engine {

// Where a share lies that comes to the node: on the device that it is known to have, if that has the room, else on the
// open one that fits it best, else on another. Nowhere if nothing keeps shares to their devices there.
ShareUse State::find_share_use(const NodeState& node, const PodState& pod, int32_t device) const {
  const model::NodeGpus& gpus = node.node.gpus;
  const PodClass& cls = classes_[pod.cls.value];
  const model::GpuShare& share = cls.spec->gpu_share;
  const int64_t units = gpus.units_of(share);
  if (units <= 0 || units > gpus.units() || !node.present) return {};
  if (gpus.sharing == model::GpuSharing::kReplicas) return {.replicas = node.replicas_beside_requests(cls)};
  if (gpus.sharing != model::GpuSharing::kDevices) return {};
  if (device < 0 || !node.devices.has_room(device, units)) device = node.devices.best_fit(units);
  return {.device = device < 0 ? node.devices.next_closed() : device, .units = units};
}

void State::count_share(NodeState& node, const ShareUse& use, int sign) {
  if (use == ShareUse{}) return;
  int64_t more = sign * use.replicas;
  if (use.device >= 0)
    more = sign > 0 ? node.devices.take(use.device, use.units) : node.devices.give_back(use.device, use.units);
  const uint32_t id = node.share_resource.value;
  if (node.used.size() <= id) node.used.resize(id + 1, 0);
  node.used[id] += more;
}

// Charges the pod's share to its node. `device`: the one that it is known to have; -1: none.
void State::charge_share(PodState& pod, int32_t device) {
  if (!classes_[pod.cls.value].spec->gpu_share.asked()) return;
  NodeState& node = nodes_[pod.node.value];
  pod.share = find_share_use(node, pod, device >= 0 ? device : pod.pod.gpu_device);
  count_share(node, pod.share, +1);
}

void State::release_share(PodState& pod) { count_share(nodes_[pod.node.value], std::exchange(pod.share, {}), -1); }

// Calls `change`, after which the node's shares are charged anew: those whose devices are known to these, then the
// largest first.
void State::with_shares_released(NodeState& node, const std::function<void()>& change) {
  std::vector<std::pair<PodState*, int32_t>> shares;
  for (const PodSlot slot : node.pods)
    if (PodState& pod = pods_[slot.value]; classes_[pod.cls.value].spec->gpu_share.asked())
      shares.emplace_back(&pod, pod.share.device >= 0 ? pod.share.device : pod.pod.gpu_device);
  for (const auto& [pod, device] : shares) release_share(*pod);
  change();
  std::sort(shares.begin(), shares.end(), [&](const auto& a, const auto& b) {
    const auto key = [&](const auto& share) {
      const int64_t units = node.node.gpus.units_of(classes_[share.first->cls.value].spec->gpu_share);
      return std::tuple(share.second < 0, -units, share.first->pod.uid);
    };
    return key(a) < key(b);
  });
  for (const auto& [pod, device] : shares) charge_share(*pod, device);
}

}  // namespace berth::engine
