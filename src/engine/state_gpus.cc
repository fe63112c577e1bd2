// State's accounts of the devices of nodes: those that pods share, those that they have whole where an agent lists the
// devices, and nodes whose GPUs are cut anew. A device that is shared counts as one in the node's use of the resource,
// whatever part of it is taken, so that whole devices and shares never meet.
#include <algorithm>
#include <bit>
#include <charconv>
#include <span>
#include <tuple>

#include "engine/node_guesses.h"
#include "engine/promised_shares.h"
#include "engine/state.h"
#include "model/gpu_limit.h"

namespace berth::engine {
namespace {

// The devices of the node, by number, that the agent says the pod has; of those that are not cut. Of a pod that is not
// bound yet, or only since the list was written, it can only mean another one of the same name.
model::DeviceSet told_by_agent(const model::NodeDevices& node, const PodState& pod) {
  model::DeviceSet out = 0;
  if (!may_be_listed(pod)) return out;
  const std::string name = pod.pod.full_name();
  for (size_t i = 0; i < node.devices.size(); ++i) {
    const std::vector<std::string>& pods = node.devices[i].pods;
    if (!node.devices[i].mig_enabled && std::find(pods.begin(), pods.end(), name) != pods.end())
      out |= model::DeviceSet{1} << i;
  }
  return out;
}

// How many devices have numbers: those that are listed, whatever of them kubelet counts.
int64_t device_count(const NodeState& node) { return node.listed ? node.listed.size() : node.node.gpu_devices(); }

// A device as an annotation names it; -1: the node has no such, or it is cut into MIG instances.
int32_t device_number(const NodeState& node, const std::string& name) {
  const std::vector<model::GpuDevice>& listed = node.node.devices.devices;
  int32_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) number = -1;
  for (size_t i = 0; node.listed && i < listed.size(); ++i)
    if (listed[i].uuid == name) number = static_cast<int32_t>(i);
  if (number < 0 || number >= device_count(node)) return -1;
  return node.listed && listed[static_cast<size_t>(number)].mig_enabled ? -1 : number;
}

model::DeviceSet told_by_pod(const NodeState& node, const model::Pod& pod) {
  model::DeviceSet out = 0;
  for (const std::string& name : pod.gpu_devices)
    if (const int32_t number = device_number(node, name); number >= 0) out |= model::DeviceSet{1} << number;
  return out;
}

// The agent names devices that the pod does not, so that others decide which of both is believed: told_of().
bool is_told_otherwise(const NodeState& node, const PodState& pod) {
  const model::DeviceSet named = told_by_pod(node, pod.pod);
  return named != 0 && (told_by_agent(node.node.devices, pod) & ~named) != 0;
}

// The devices that the agent says the pod has, but for those of an earlier pod of its name: one that is ill, or that
// another pod says it has and the agent does not contradict, where this one itself names others that are not.
model::DeviceSet told_of(const State& state, const NodeState& node, const PodState& pod) {
  const model::DeviceSet told = told_by_agent(node.node.devices, pod), named = told_by_pod(node, pod.pod);
  if (!is_told_otherwise(node, pod)) return told;
  const auto shares = [&](const PodState& one) { return state.pod_class(one.cls).shares_gpu; };
  model::DeviceSet others = ~model::whole_devices(node.node.devices);
  for (const PodSlot slot : node.pods)
    if (const PodState& other = state.pod(slot); &other != &pod && other.phase == PodPhase::kBound &&
                                                 told_by_agent(node.node.devices, other) == 0 &&
                                                 !(shares(other) && shares(pod)))
      others |= told_by_pod(node, other.pod);
  return (named & others) == 0 ? told & ~others : told;
}

// The number, beyond those that are listed, of a device that the pod names and that is no more there, or is cut now:
// one for all pods that name it. It is in use until they have left, and nobody else gets a share of it.
int32_t gone_device(const NodeState& node, const PodState& pod, const std::vector<PodState>& pods) {
  for (const PodSlot slot : node.pods)
    if (const PodState& other = pods[slot.value]; other.devices.gone && other.pod.gpu_devices == pod.pod.gpu_devices)
      return other.devices.device;
  return node.devices.next_closed(node.listed.size());
}

}  // namespace

// The pods of the class have devices of their own on the node, or a part of one.
bool State::names_devices(const NodeState& node, const PodClass& cls) {
  return cls.shares_gpu || (node.listed && cls.requests_gpu);
}

// Where a share lies that comes to the node. `device`: the one that it is known to have; else the open one that fits it
// best, else another. A bound share that cannot be measured here takes a whole device. Nowhere if nothing keeps shares
// to their devices.
DeviceUse State::find_share(const NodeState& node, const PodState& pod, int32_t device) const {
  const model::NodeGpus& gpus = node.node.gpus;
  if (!node.share_resource.valid()) return {};
  const PodClass& cls = classes_[pod.cls.value];
  const int64_t asked = gpus.units_of(cls.spec->gpu_share);
  const bool measured = gpus.sharing != model::GpuSharing::kUnlike && asked > 0 && asked <= gpus.units();
  DeviceUse out;
  if (gpus.sharing == model::GpuSharing::kReplicas) {
    out.amount = measured ? node.replicas_beside_requests(cls) : std::max<int64_t>(1, gpus.replicas);
    out.replicas = std::max<int64_t>(1, measured ? gpus.replicas_of(cls.spec->gpu_share) : gpus.replicas);
  }
  if (gpus.sharing != model::GpuSharing::kDevices && gpus.sharing != model::GpuSharing::kUnlike) return out;
  out.amount = measured ? asked : gpus.units();
  if (const model::DeviceSet told = told_of(*this, node, pod); std::has_single_bit(told))
    device = std::countr_zero(told);
  else if (pod.pod.gpu_devices.size() == 1)
    if (const int32_t named = device_number(node, pod.pod.gpu_devices.front()); named >= 0 || node.listed) {
      out.gone = named < 0;
      device = out.gone ? gone_device(node, pod, pods_) : named;
    }
  out.guessed = device < 0 || device >= device_count(node) || is_told_otherwise(node, pod);
  if (device < 0 && pod.phase != PodPhase::kNominated) {
    device = NodeGuesses::place_beside_promised(*this, node, out.amount, pod.phase != PodPhase::kBound);
    if (device >= device_count(node)) device = -1;
  }
  if (device < 0) device = node.devices.best_fit(out.amount, node.listed.given());
  out.device = device < 0 ? device_to_open(node.listed, node.devices) : device;
  return out;
}

// Which of the node's devices a pod has that asks for whole ones: those that it is known to have, else those that go
// best together. Of more than it asks for, so many; where fewer are known, others beside them, but none in the place of
// those that the pod names and that are no more there. None where more are in use than there are, or where the pod has
// only the promise of room.
DeviceUse State::find_whole(const NodeState& node, const PodState& pod, model::DeviceSet own) const {
  const auto count = static_cast<int>(
      std::min<int64_t>(classes_[pod.cls.value].request(node.share_resource), model::kNodeDevicesMax + 1));
  DeviceUse out;
  if (count <= 0 || pod.phase == PodPhase::kNominated) return out;
  const model::DeviceSet agent = told_of(*this, node, pod), named = told_by_pod(node, pod.pod);
  const model::DeviceTopology& topology = node.listed.topology();
  out.whole = std::popcount(agent) >= count ? agent : agent | named;
  if (std::popcount(out.whole) > count) out.whole = topology.choose(out.whole, count);
  if (out.whole == 0 && std::popcount(own) == count && own >> node.listed.size() == 0) out.whole = own;
  const bool some_are_gone = std::ssize(pod.pod.gpu_devices) == count;
  out.guessed = is_told_otherwise(node, pod);
  if (std::popcount(out.whole) >= count || some_are_gone) return out;
  out.guessed = true;
  model::DeviceSet free = node.listed.free(node.devices.open()) & ~out.whole;
  if (out.whole == 0) {
    out.whole = topology.choose(free, count);
    return out;
  }
  while (std::popcount(out.whole) < count && free != 0) {
    model::DeviceSet best = free & -free;
    for (model::DeviceSet left = free; left != 0; left &= left - 1)
      if (topology.better(out.whole | (left & -left), out.whole | best)) best = left & -left;
    out.whole |= best;
    free &= ~best;
  }
  return out;
}

// `own`: what the pod was given before, unless somebody else knows better.
DeviceUse State::find_devices(const NodeState& node, const PodState& pod, const DeviceUse& own) const {
  if (!node.present || !names_devices(node, classes_[pod.cls.value])) return {};
  return classes_[pod.cls.value].shares_gpu ? find_share(node, pod, own.device) : find_whole(node, pod, own.whole);
}

void State::count_share(NodeState& node, const DeviceUse& use, int sign) {
  if (use.replicas > 0 && sign > 0) node.devices.replicas().add(use.replicas);
  if (use.replicas > 0 && sign < 0) node.devices.replicas().remove(use.replicas);
  if (use.amount == 0) return;
  int64_t more = sign * use.amount;
  if (use.device >= 0)
    more = sign > 0 ? node.devices.take(use.device, use.amount, use.holder)
                    : node.devices.give_back(use.device, use.amount, use.holder);
  const uint32_t id = node.share_resource.value;
  if (node.used.size() <= id) node.used.resize(id + 1, 0);
  node.used[id] += more;
}

// Charges the pod's devices to its node.
void State::charge_devices(PodState& pod, const DeviceUse& own) {
  NodeState& node = nodes_[pod.node.value];
  const PodClass& cls = classes_[pod.cls.value];
  DeviceUse use = find_devices(node, pod, own);
  const bool there = cls.shares_gpu ? use.device < device_count(node) : use.whole != 0;
  if (pod.phase == PodPhase::kNominated) use.guessed = !use.none();      // it is promised room, not that of one device
  else if (pod.phase != PodPhase::kBound && there) use.guessed = false;  // Berth's own choice
  charge_use(pod, use);
}

void State::charge_use(PodState& pod, const DeviceUse& use) {
  NodeState& node = nodes_[pod.node.value];
  pod.devices = use;
  if (use.amount > 0) pod.devices.holder = holder_of(pod);
  count_share(node, pod.devices, +1);
  node.listed.take(use.whole);
  node.guesses += use.guessed ? 1 : 0;
  node.on_gone += use.gone ? 1 : 0;
}

DeviceUse State::release_devices(PodState& pod) {
  NodeState& node = nodes_[pod.node.value];
  const DeviceUse use = std::exchange(pod.devices, {});
  count_share(node, use, -1);
  node.listed.give_back(use.whole);
  node.guesses -= use.guessed ? 1 : 0;
  node.on_gone -= use.gone ? 1 : 0;
  return use;
}

void State::revise(PodSlot slot, const std::function<void(PodState&)>& change) {
  PodState& pod = pods_[slot.value];
  if (!holds_room(pod.phase)) return change(pod);
  Promises& promises = nodes_[pod.node.value].promises;
  const std::span<const ResourceAmount> requests = classes_[pod.cls.value].requests;
  const int64_t awaited = promises.awaited(), shares = promises.shares();
  promises.count(pod, requests, -1);
  change(pod);
  promises.count(pod, requests, +1);
  const bool holder_changes = pod.devices.amount > 0 && pod.devices.holder != holder_of(pod);
  if (holder_changes) charge_use(pod, release_devices(pod));
  if (holder_changes || awaited != promises.awaited() || shares != promises.shares()) touch(pod.node);
}

// Others may know better by now which devices the pod has that it was given.
void State::hear_devices(PodState& pod, const DeviceUse& own) {
  const bool guesses = nodes_[pod.node.value].guesses > 0;
  const DeviceUse before = release_devices(pod);
  charge_devices(pod, own);
  settle_guesses(pod.node);
  if (guesses || pod.devices != before) touch(pod.node);
}

DeviceNames State::devices_of(PodSlot slot) const {
  const PodState& pod = pods_[slot.value];
  DeviceNames out;
  if (!holds_room(pod.phase)) return out;
  const NodeState& node = nodes_[pod.node.value];
  out.limit = model::gpu_limit(node.node, pod.pod.spec->gpu_share, pod.pod.spec->requests);
  if (pod.devices.device >= 0 && pod.devices.device < device_count(node))
    out.numbers.push_back(pod.devices.device);  // there may be more shares than devices
  for (model::DeviceSet left = pod.devices.whole; left != 0; left &= left - 1)
    out.numbers.push_back(std::countr_zero(left));
  for (const int32_t number : out.numbers)
    if (static_cast<size_t>(number) < node.node.devices.devices.size())
      out.uuids.push_back(node.node.devices.devices[static_cast<size_t>(number)].uuid);
  if (std::popcount(pod.devices.whole) > 1) out.link = to_string(node.listed.topology().weakest(pod.devices.whole));
  return out;
}

std::vector<int64_t> State::used_without_nominees(NodeSlot slot) const {
  const NodeState& node = nodes_[slot.value];
  std::vector<Int128> used = node.used;
  std::vector<int64_t> shared = node.devices.all();
  for (const PodSlot on_node : node.pods) {
    const PodState& pod = pods_[on_node.value];
    if (pod.phase != PodPhase::kNominated) continue;
    for (const ResourceAmount& request : classes_[pod.cls.value].requests) used[request.id.value] -= request.amount;
    const DeviceUse& share = pod.devices;
    if (share.amount == 0) continue;
    Int128& gpus = used[node.share_resource.value];
    if (share.device < 0) gpus -= share.amount;
    else if ((shared[static_cast<size_t>(share.device)] -= share.amount) == 0) gpus -= 1;
  }
  std::vector<int64_t> out(used.size());
  std::transform(used.begin(), used.end(), out.begin(), &NodeView::narrow);
  return out;
}

// Calls `change`, if any, after which the devices of the node's pods are charged anew: those that are known to these,
// then Berth's own that are on their way, then the others, the largest first, and last of all those that are only
// promised room. After a change of the node only others know which devices its bound pods have.
void State::with_devices_released(NodeState& node, const std::function<void()>& change) {
  struct Use {
    PodState* pod = nullptr;
    DeviceUse before;
    int rank = 0;  // the first have their turn first
    Int128 size = 0;
  };
  std::vector<Use> uses;
  for (const PodSlot slot : node.pods) {
    PodState& pod = pods_[slot.value];
    if (!classes_[pod.cls.value].requests_gpu) continue;
    const DeviceUse before = release_devices(pod);
    const bool known =
        !before.guessed && pod.phase != PodPhase::kNominated && (!change || pod.phase != PodPhase::kBound);
    uses.push_back({&pod, known ? before : DeviceUse{}, 0, 0});
  }
  if (change) change();
  const auto rank = [&](const PodState& pod, const DeviceUse& before) {
    if (pod.phase == PodPhase::kNominated) return 3;
    if (!find_devices(node, pod, before).guessed) return 0;
    const bool some_known =
        told_by_agent(node.node.devices, pod) != 0 || (node.listed && told_by_pod(node, pod.pod) != 0);
    return pod.phase == PodPhase::kBound && !some_known ? 2 : 1;  // what Berth chooses for its own stays so
  };
  for (Use& use : uses) {
    const PodClass& cls = classes_[use.pod->cls.value];
    use.rank = rank(*use.pod, use.before);
    use.size = cls.shares_gpu ? Int128{node.node.gpus.units_of(cls.spec->gpu_share)}
                              : Int128{cls.request(node.share_resource)} * (Int128{1} << 63);
  }
  const auto key = [](const Use& use) { return std::tuple(use.rank, -use.size, std::string_view(use.pod->pod.uid)); };
  std::sort(uses.begin(), uses.end(), [&](const Use& a, const Use& b) { return key(a) < key(b); });
  for (const Use& use : uses) charge_devices(*use.pod, use.before);
}

// After the devices of the node's pods have become others: those that are only guessed lie beside these as they would
// in whatever order all had come; unless they would need more devices so than there are, and do not now. What is
// promised moves in any case.
void State::settle_guesses(NodeSlot slot) {
  NodeState& node = nodes_[slot.value];
  if (NodeGuesses::settle_promised(*this, slot) == node.guesses || node.guesses_stay) return;
  const NodeGuesses before(*this, slot);
  const NodeView view(node, resources_, volumes_, mix_);
  const auto enough = [&] { return view.free(view.share_resource()) >= 0; };
  const bool enough_before = enough();
  const int64_t over_before = node.devices.over();
  with_devices_released(node, nullptr);
  NodeGuesses::settle_promised(*this, slot);
  if (!enough() && enough_before && over_before <= node.devices.over()) before.restore(*this);
}

void State::set_repartitioning(const std::string& name, bool under_way) {
  const NodeSlot slot = find_node(name);
  if (!slot.valid() || nodes_[slot.value].repartitioning == under_way) return;
  nodes_[slot.value].repartitioning = under_way;
  touch(slot);
}

}  // namespace berth::engine
