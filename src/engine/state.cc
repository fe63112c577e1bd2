#include "engine/state.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/node_guesses.h"

namespace berth::engine {
namespace {

constexpr uint64_t kOrderGap = uint64_t{1} << 32;

std::vector<int64_t> dense(const model::ResourceList& list, ResourceTable& resources) {
  std::vector<int64_t> out;
  for (const auto& [name, amount] : list) {
    const ResourceId id = resources.intern(name);
    if (out.size() <= id.value) out.resize(id.value + 1, 0);
    out[id.value] = std::clamp<int64_t>(amount, 0, kMaxAmount - 1);
  }
  return out;
}

ClassKey key_of(const PodClass& cls) {
  return {cls.spec.get(), &cls.seen_by, cls.priority, cls.preempts, cls.gave_up, cls.queue_weights};
}

}  // namespace

std::string_view to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kNotQueued: return "NotQueued";
    case PodPhase::kPending: return "Pending";
    case PodPhase::kBackoff: return "Backoff";
    case PodPhase::kNominated: return "Nominated";
    case PodPhase::kHeld: return "Held";
    case PodPhase::kReserved: return "Reserved";
    case PodPhase::kPreBinding: return "PreBinding";
    case PodPhase::kBinding: return "Binding";
    case PodPhase::kUnknown: return "Unknown";
    case PodPhase::kBound: return "Bound";
  }
  return "";
}

NodeSlot State::find_node(const std::string& name) const {
  const auto at = nodes_by_name_.find(name);
  return at == nodes_by_name_.end() || !nodes_[at->second.value].present ? NodeSlot{} : at->second;
}

NodeSlot State::node_or_placeholder(const std::string& name) {
  const auto at = nodes_by_name_.find(name);
  return at != nodes_by_name_.end() ? at->second : take_node_slot(name);
}

NodeSlot State::take_node_slot(const std::string& name) {
  NodeSlot slot{static_cast<uint32_t>(nodes_.size())};
  if (!free_nodes_.empty()) {
    slot = free_nodes_.back();
    free_nodes_.pop_back();
  } else {
    nodes_.emplace_back();
  }
  NodeState& node = nodes_[slot.value];
  const uint32_t generation = node.generation;
  node = NodeState{};
  node.generation = generation;
  node.in_use = true;
  node.node.name = name;
  give_order(nodes_by_name_.emplace(name, slot).first);
  touch(slot);
  return slot;
}

void State::give_order(absl::btree_map<std::string, NodeSlot>::iterator at) {
  const uint64_t before = at == nodes_by_name_.begin() ? 0 : nodes_[std::prev(at)->second.value].order;
  const auto next = std::next(at);
  NodeState& node = nodes_[at->second.value];
  if (next == nodes_by_name_.end()) {
    if (before > UINT64_MAX - kOrderGap) return renumber();
    node.order = before + kOrderGap;
    return;
  }
  const uint64_t after = nodes_[next->second.value].order;
  if (after - before < 2) return renumber();
  node.order = before + (after - before) / 2;
}

void State::renumber() {
  ++order_version_;
  uint64_t order = 0;
  for (const auto& [name, slot] : nodes_by_name_) nodes_[slot.value].order = order += kOrderGap;
}

NodeSlot State::upsert_node(model::Node object) {
  const NodeSlot slot = node_or_placeholder(object.name);
  NodeState& node = nodes_[slot.value];
  if (node.present && node.node == object) return slot;
  present_nodes_ += node.present ? 0 : 1;
  const bool same_list = node.present && node.node.devices == object.devices;
  const bool same_gpus = same_list && node.node.gpus == object.gpus && node.node.gpu_devices() == object.gpu_devices();
  for (const PodSlot pod : node.pods) pods_[pod.value].listed_before &= same_list;
  node.present = true;
  node.allocatable = dense(object.allocatable, resources_);
  node.has_gpus = false;
  for (uint32_t id = 0; id < node.allocatable.size(); ++id)
    node.has_gpus |= node.allocatable[id] > 0 && resources_.is_gpu(ResourceId{id});
  for (const auto& [name, amount] : object.capacity) node.has_gpus |= amount > 0 && model::is_gpu_resource(name);
  if (object.mig) mig_nodes_.insert(object.name);
  else mig_nodes_.erase(object.name);
  node.pool = catalog_.pool_of(object.labels);
  node.gpu_price_ppm = catalog_.gpu_price_ppm(object.labels);
  if (topology_.has_keys()) set_domains(slot, topology_.domains_for(object.labels));
  const auto replace = [&] {
    if (!same_gpus) set_strangers(node, true);
    if (!object.gpus.resource.empty()) node.share_resource = resources_.intern(object.gpus.resource);
    if (!same_gpus) {
      const bool listed = object.lists_whole_devices();
      const model::DeviceSet usable = listed ? model::whole_devices(object.devices) : 0;
      node.devices = SharedDevices(object.gpus.units(), listed ? ~usable : 0);
      node.listed = ListedDevices(listed ? device_topologies_.of(object.devices) : nullptr, usable);
    }
    node.node = std::move(object);
    if (same_gpus) return;
    std::erase_if(node.ended, [&](const std::string& pod) { return !node.lists(pod); });
    set_strangers(node, false);
  };
  if (same_gpus) replace();
  else with_devices_released(node, replace);
  NodeGuesses::settle_promised(*this, slot);
  touch(slot);
  return slot;
}

void State::remove_node(const std::string& name) {
  const NodeSlot slot = find_node(name);
  if (!slot.valid()) return;
  NodeState& node = nodes_[slot.value];
  set_domains(slot, {});
  mig_nodes_.erase(name);
  node.present = false;
  node.has_gpus = false;
  node.repartitioning = false;
  node.allocatable.clear();
  with_devices_released(node, [&] {
    set_strangers(node, true);
    node.ended.clear();
    node.listed = {};
    node.node = model::Node{};
    node.node.name = name;
  });
  --present_nodes_;
  touch(slot);
  free_placeholder(slot);
}

void State::free_placeholder(NodeSlot slot) {
  NodeState& node = nodes_[slot.value];
  if (node.present || !node.pods.empty()) return;
  nodes_by_name_.erase(node.node.name);
  node.in_use = false;
  free_nodes_.push_back(slot);
}

PodSlot State::find_pod(const std::string& uid) const {
  const auto at = pod_index_.find(uid);
  return at == pod_index_.end() ? PodSlot{} : *at;
}

void State::reserve_pods(size_t count) {
  pods_.reserve(count);
  pod_index_.reserve(count);
}

PodSlot State::add_pod(model::Pod&& pod) {
  PodSlot slot{static_cast<uint32_t>(pods_.size())};
  if (!free_pods_.empty()) {
    slot = free_pods_.back();
    free_pods_.pop_back();
  } else {
    pods_.emplace_back();
  }
  PodState& state = pods_[slot.value];
  state.in_use = true;
  const IdentityId identity = peers_.acquire_identity(pod.namespace_name, pod.labels, pod.terminating);
  state.cls = intern_class(pod, identity);
  pod.labels = peers_.identity(identity).labels;
  pod.spec = classes_[state.cls.value].spec;  // one copy for the whole class
  state.pod = std::move(pod);
  const bool added = pod_index_.insert(slot).second;
  check(added, "a pod record is created once per UID");
  join_identity(slot, identity);
  return slot;
}

void State::replace_pod(PodSlot slot, model::Pod&& pod) {
  PodState& state = pods_[slot.value];
  check(state.pod.uid == pod.uid, "a pod record keeps its UID");
  if (holds_room(state.phase) && state.pod.daemon != pod.daemon) {
    nodes_[state.node.value].working_pods += pod.daemon ? -1 : +1;
    touch(state.node);
  }
  const bool same_class_key = (state.pod.spec == pod.spec || *state.pod.spec == *pod.spec) &&
                              state.pod.priority == pod.priority && state.pod.preempts == pod.preempts &&
                              state.pod.gave_up == pod.gave_up;
  const IdentityId identity = peers_.acquire_identity(pod.namespace_name, pod.labels, pod.terminating);
  pod.labels = peers_.identity(identity).labels;
  if (same_class_key && identity == state.identity) {
    pod.spec = state.pod.spec;
    const bool another_victim =
        state.pod.preemptible != pod.preemptible || state.pod.started != pod.started || state.pod.name != pod.name;
    const bool other_devices = state.pod.gpu_devices != pod.gpu_devices;
    state.pod = std::move(pod);
    if (another_victim && holds_room(state.phase)) touch(state.node);
    if (other_devices && holds_room(state.phase)) hear_devices(state, {});
    return;
  }
  const PodPhase phase = state.phase;
  DeviceUse devices;
  if (holds_room(phase)) {
    devices = release_devices(state);
    if (devices.guessed || state.pod.gpu_devices != pod.gpu_devices) devices = {};
    charge(state, -1);
    count_peers(slot, state.node, -1);
    state.phase = PodPhase::kNotQueued;  // nobody counts it on the way
  }
  const ClassId before = state.cls;
  state.cls = intern_class(pod, identity);
  if (identity != state.identity) leave_identity(slot);
  join_identity(slot, identity);
  if (holds_room(phase)) {  // the new claims first: what is chosen for one that stays must not be dropped
    use_claims(state.node, classes_[state.cls.value], phase, +1);
    use_claims(state.node, classes_[before.value], phase, -1);
  }
  release_class(before);
  pod.spec = classes_[state.cls.value].spec;
  state.pod = std::move(pod);
  state.phase = phase;
  if (!holds_room(phase)) return;
  charge(state, +1);
  charge_devices(state, devices);
  settle_guesses(state.node);
  count_peers(slot, state.node, +1);
  touch(state.node);
}

void State::remove_pod(PodSlot slot) {
  PodState& state = pods_[slot.value];
  check(!holds_room(state.phase), "a pod that holds room is unassigned before it is removed");
  pod_index_.erase(slot);
  leave_identity(slot);
  release_class(state.cls);
  state = PodState{};
  free_pods_.push_back(slot);
}

void State::assign(PodSlot pod, NodeSlot node, PodPhase phase, const DeviceUse& own) {
  PodState& state = pods_[pod.value];
  check(holds_room(phase), "a place goes with a phase that holds room");
  if (holds_room(state.phase) && state.node == node) {
    check(state.phase != PodPhase::kBound || phase == PodPhase::kBound, "what is bound stays so on its node");
    const PodPhase before = state.phase;
    revise(pod, [&](PodState& changed) { changed.phase = phase; });
    if (before == PodPhase::kBound || phase != PodPhase::kBound) return;
    VolumeState::arrive(classes_[state.cls.value].claims);
    const bool chosen = before != PodPhase::kNominated && !state.devices.guessed;  // by Berth, for the bind
    if (names_devices(nodes_[node.value], classes_[state.cls.value]))
      hear_devices(state, chosen ? state.devices : DeviceUse{});
    return;
  }
  if (holds_room(state.phase)) unassign(pod, PodPhase::kNotQueued);
  NodeState& target = nodes_[node.value];
  check(target.in_use, "pods are placed on nodes that exist");
  state.phase = phase;
  state.node = node;
  state.index_on_node = static_cast<uint32_t>(target.pods.size());
  target.pods.push_back(pod);
  target.working_pods += state.pod.daemon ? 0 : 1;
  charge(state, +1);
  if (names_devices(target, classes_[state.cls.value])) charge_devices(state, own), settle_guesses(node);
  count_peers(pod, node, +1);
  use_claims(node, classes_[state.cls.value], phase, +1);
  touch(node);
}

void State::unassign(PodSlot pod, PodPhase phase) {
  PodState& state = pods_[pod.value];
  check(holds_room(state.phase) && !holds_room(phase), "only a placed pod can lose its place");
  const NodeSlot slot = state.node;
  NodeState& node = nodes_[slot.value];
  const bool devices = state.devices != DeviceUse{};
  if (devices) release_devices(state);
  charge(state, -1);
  count_peers(pod, slot, -1);
  use_claims(slot, classes_[state.cls.value], state.phase, -1);
  const PodSlot moved = node.pods.back();
  node.pods[state.index_on_node] = moved;
  pods_[moved.value].index_on_node = state.index_on_node;
  node.pods.pop_back();
  node.working_pods -= state.pod.daemon ? 0 : 1;
  if (devices) settle_guesses(slot);
  state.phase = phase;
  state.node = NodeSlot{};
  touch(slot);
  free_placeholder(slot);
}

void State::charge(const PodState& pod, int64_t sign) {
  NodeState& node = nodes_[pod.node.value];
  const PodClass& cls = classes_[pod.cls.value];
  if (const auto at = placed_priorities_.try_emplace(cls.priority, 0).first; sign > 0) ++at->second;
  else if (--at->second == 0) placed_priorities_.erase(at);
  for (const ResourceAmount& request : cls.requests) {
    if (node.used.size() <= request.id.value) node.used.resize(request.id.value + 1, 0);
    node.used[request.id.value] += Int128{sign} * request.amount;
  }
  node.promises.count(pod, cls.requests, sign > 0 ? +1 : -1);
  node.scored_cpu_millis += sign * cls.scored_cpu_millis;
  node.scored_memory_bytes += sign * cls.scored_memory_bytes;
  charge_ports(node, cls, sign);
}

void State::charge_ports(NodeState& node, const PodClass& cls, int64_t sign) {
  for (const model::HostPort& port : cls.spec->host_ports) {
    if (sign > 0) {
      node.host_ports.push_back(port);
    } else {
      const auto at = std::find(node.host_ports.begin(), node.host_ports.end(), port);
      check(at != node.host_ports.end(), "a pod's host ports are on its node");
      node.host_ports.erase(at);
    }
  }
}

void State::touch(NodeSlot slot) {
  if (in_trial_) return;
  ++nodes_[slot.value].generation;
  changes_.push_back(slot);
  const size_t keep = 1024 + 4 * nodes_.size();
  for (; changes_.size() > keep; ++change_base_) changes_.pop_front();
}

ClassId State::intern_class(const model::Pod& pod, IdentityId identity) {
  const std::shared_ptr<const model::SchedulingSpec>& spec = pod.spec;
  check(spec != nullptr, "every pod has a scheduling spec");
  const std::vector<SelectorId>& seen_by = peers_.identity(identity).matches;
  const uint32_t weights = queues_.weights_of(pod);
  const ClassKey wanted{spec.get(), &seen_by, pod.priority, pod.preempts, pod.gave_up, weights};
  if (const auto at = classes_by_key_.find(wanted); at != classes_by_key_.end()) {
    ++classes_[at->second.value].pods;
    return at->second;
  }
  ClassId id{static_cast<uint32_t>(classes_.size())};
  if (!free_classes_.empty()) {
    id = free_classes_.back();
    free_classes_.pop_back();
  } else {
    classes_.emplace_back();
  }
  PodClass& cls = classes_[id.value];
  cls = compile_class(spec, resources_);
  cls.priority = pod.priority;
  cls.preempts = pod.preempts;
  cls.gave_up = pod.gave_up;
  cls.queue_weights = weights;
  cls.seen_by = seen_by;
  cls.pods = 1;
  cls.serial = ++class_serial_;
  cls.claims = volumes_.join(id, spec->claims);
  classes_by_key_.emplace(key_of(cls), id);
  if (!cls.spec->peers.empty()) hold_peers(cls);
  return id;
}

void State::release_class(ClassId id) {
  PodClass& cls = classes_[id.value];
  if (--cls.pods > 0) return;
  classes_by_key_.erase(key_of(cls));
  if (!cls.spec->peers.empty()) release_peers(cls);
  volumes_.leave(id, cls.claims);
  cls = PodClass{};
  free_classes_.push_back(id);
}

}  // namespace berth::engine
