// State's accounts of shared GPUs, and of nodes whose GPUs are cut anew. A device that is shared counts as one in the
// node's use of the resource, whatever part of it is taken, so that whole devices and shares never meet.
#include <algorithm>
#include <tuple>

#include "engine/state.h"

namespace berth::engine {

// Where a share lies that comes to the node. `device`: the one that it is known to have; else the open one that fits it
// best, else another. A bound share that cannot be measured here takes a whole device. Nowhere if nothing keeps shares
// to their devices.
ShareUse State::find_share_use(const NodeState& node, const PodState& pod, int32_t device) const {
  const model::NodeGpus& gpus = node.node.gpus;
  const PodClass& cls = classes_[pod.cls.value];
  const int64_t asked = gpus.units_of(cls.spec->gpu_share);
  const bool measured = asked > 0 && asked <= gpus.units();
  ShareUse out;
  if (!node.present) return out;
  if (gpus.sharing == model::GpuSharing::kReplicas)
    out.amount = measured ? node.replicas_beside_requests(cls) : std::max<int64_t>(1, gpus.replicas);
  if (gpus.sharing != model::GpuSharing::kDevices) return out;
  out.amount = measured ? asked : gpus.units();
  out.guessed = device < 0 || device >= node.node.gpu_devices();
  if (out.guessed) device = node.devices.best_fit(out.amount);
  out.device = device < 0 ? node.devices.next_closed() : device;
  return out;
}

void State::count_share(NodeState& node, const ShareUse& use, int sign) {
  if (use == ShareUse{}) return;
  int64_t more = sign * use.amount;
  if (use.device >= 0)
    more = sign > 0 ? node.devices.take(use.device, use.amount) : node.devices.give_back(use.device, use.amount);
  const uint32_t id = node.share_resource.value;
  if (node.used.size() <= id) node.used.resize(id + 1, 0);
  node.used[id] += more;
}

// Charges the pod's share to its node. `device`: the one that it is known to have; -1: none.
void State::charge_share(PodState& pod, int32_t device) {
  if (!classes_[pod.cls.value].shares_gpu) return;
  NodeState& node = nodes_[pod.node.value];
  pod.share = find_share_use(node, pod, device >= 0 ? device : pod.pod.gpu_device);
  if (pod.phase != PodPhase::kBound && pod.share.device < node.node.gpu_devices())
    pod.share.guessed = false;  // Berth's own choice
  count_share(node, pod.share, +1);
}

void State::release_share(PodState& pod) {
  if (classes_[pod.cls.value].shares_gpu) count_share(nodes_[pod.node.value], std::exchange(pod.share, {}), -1);
}

std::vector<int64_t> State::used_without_nominees(NodeSlot slot) const {
  const NodeState& node = nodes_[slot.value];
  std::vector<Int128> used = node.used;
  std::vector<int64_t> shared = node.devices.all();
  for (const PodSlot on_node : node.pods) {
    const PodState& pod = pods_[on_node.value];
    if (pod.phase != PodPhase::kNominated) continue;
    for (const ResourceAmount& request : classes_[pod.cls.value].requests) used[request.id.value] -= request.amount;
    if (pod.share == ShareUse{}) continue;
    Int128& gpus = used[node.share_resource.value];
    if (pod.share.device < 0) gpus -= pod.share.amount;
    else if ((shared[static_cast<size_t>(pod.share.device)] -= pod.share.amount) == 0) gpus -= 1;
  }
  std::vector<int64_t> out(used.size());
  std::transform(used.begin(), used.end(), out.begin(), &NodeView::narrow);
  return out;
}

// Calls `change`, after which the node's shares are charged anew: those whose devices are known to these, then Berth's
// own that are on their way, then the others, the largest first, and last of all those that are only promised room.
void State::with_shares_released(NodeState& node, const std::function<void()>& change) {
  struct Share {
    PodState* pod = nullptr;
    int32_t device = -1;
  };
  std::vector<Share> shares;
  for (const PodSlot slot : node.pods) {
    PodState& pod = pods_[slot.value];
    if (!classes_[pod.cls.value].shares_gpu) continue;
    const bool kept = pod.share.device >= 0 && !pod.share.guessed && pod.phase != PodPhase::kNominated;
    shares.push_back({&pod, kept ? pod.share.device : pod.pod.gpu_device});
  }
  for (const Share& share : shares) release_share(*share.pod);
  change();
  const auto rank = [&](const Share& share) {
    if (share.pod->phase == PodPhase::kNominated) return 3;
    if (share.device >= 0 && share.device < node.node.gpu_devices()) return 0;
    return share.pod->phase == PodPhase::kBound ? 2 : 1;  // what Berth chooses for its own stays so
  };
  const auto key = [&](const Share& share) {
    const int64_t units = node.node.gpus.units_of(classes_[share.pod->cls.value].spec->gpu_share);
    return std::tuple(rank(share), -units, std::string_view(share.pod->pod.uid));
  };
  std::sort(shares.begin(), shares.end(), [&](const Share& a, const Share& b) { return key(a) < key(b); });
  for (const Share& share : shares) charge_share(*share.pod, share.device);
}

// After the shares of the node have become others: those whose devices are only guessed lie beside these as they would
// in whatever order all had come.
void State::settle_guesses(NodeState& node) {
  const bool any = !node.devices.all().empty() && std::any_of(node.pods.begin(), node.pods.end(), [this](PodSlot pod) {
    return pods_[pod.value].share.guessed;
  });
  if (any) with_shares_released(node, [] {});
}

void State::set_repartitioning(const std::string& name, bool under_way) {
  const NodeSlot slot = find_node(name);
  if (!slot.valid() || nodes_[slot.value].repartitioning == under_way) return;
  nodes_[slot.value].repartitioning = under_way;
  touch(slot);
}

}  // namespace berth::engine
