#include "mig/idle_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/idle_gpus.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"
#include "model/device_ties.h"
#include "model/mig_strangers.h"

namespace berth::mig {
namespace {

using engine::NodeState;
using engine::NodeView;
using engine::PodSlot;
using engine::ResourceId;
using engine::State;

constexpr size_t kShapesMax = 10'000;

// What `say` says of the node without those.
template <typename Say>
auto without(const State& state, const NodeState& node, std::span<const PodSlot> kept, const Say& say) {
  const auto of = [&](const NodeState& known) {
    return say(engine::NodeView(known, state.resources(), state.volumes(), state.mix()));
  };
  return of(kept.empty() ? node : engine::node_without(state, state.find_node(node.node.name), kept));
}

// The agent has said of every pod that uses GPUs of the node, or will, where it is, but for those.
bool all_located(const State& state, const NodeState& node, std::span<const PodSlot> kept) {
  return std::ranges::all_of(node.pods, [&](PodSlot slot) {
    const engine::PodState& pod = state.pod(slot);
    const engine::PodClass& cls = state.pod_class(pod.cls);
    if ((!cls.requests_gpu && !cls.shares_gpu) || std::ranges::find(kept, slot) != kept.end()) return true;
    if (!engine::may_be_listed(pod)) return false;
    return model::is_located(node.node, pod.pod.full_name(), *pod.pod.spec);
  });
}

// No device is somebody's that the list says is nobody's: a pod may say itself where it is.
bool agrees(const NodeView& node) {
  const auto devices = node.node().cut_by_agent();
  const model::DeviceSet idle = engine::idle_devices(node);
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].pods.empty() && devices[i].unhealthy.empty() && (idle >> i & 1) == 0) return false;
  return true;
}

// All that is in use of the node's GPUs is where the agent says.
bool tells_all(const NodeView& node) { return engine::tells_all_in_use(node) && agrees(node); }

// What devices_of() goes by, and with it whether something can be cut of them.
std::string shape_of(const model::Node& node) {
  std::string out = fmt::format("{} {} {}", node.mig.model->name, node.mig.devices, static_cast<int>(node.mig.hand));
  for (const auto& [name, amount] : cut_resources(node.allocatable)) out += fmt::format(" {} {},", amount, name);
  const std::vector<int32_t> ties =
      node.cut_by_agent().empty() ? std::vector<int32_t>() : model::ties_to_whole(node.devices);
  for (size_t i = 0; i < ties.size(); ++i) {
    const model::GpuDevice& device = node.devices.devices[i];
    const bool fixed = !device.pods.empty() || !device.unhealthy.empty();
    out += fmt::format("|{}{}{}", device.mig_enabled ? "m" : fmt::format("w{}", ties[i]), fixed ? "f" : "",
                       device.unhealthy.empty() ? "" : "i");
    for (const model::MigDeviceInstance& instance : device.mig_instances)
      out += fmt::format(" {}@{}", instance.profile, instance.start);
  }
  return out;
}

// How many of each resource so many devices of the node can be beside what of it is to be made up for; nothing where
// none is.
std::optional<model::ResourceList> most_beside_owed(const NodeView& node, int64_t count) {
  model::DynamicMig devices = node.node().mig;
  devices.devices = count;
  model::ResourceList owed;
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value)
    if (const std::string& name = node.resources().name(id); is_cut_resource(name))
      owed.set(name, std::max<int64_t>(0, -engine::free_beside_idle(node, id)));
  if (std::ranges::all_of(owed, [](const auto& each) { return each.second == 0; })) return std::nullopt;
  std::vector<std::string> resources{std::string(model::kWholeGpuResource)};
  for (const model::MigProfile& profile : devices.model->profiles)
    resources.push_back(model::mig_resource_name(profile));
  model::ResourceList out;
  for (const std::string& resource : resources) {
    const int64_t all = count * engine::most_on_device(*devices.model, resource);
    out.set(resource, std::max<int64_t>(0, all - owed.get(resource)));
  }
  return out;
}

}  // namespace

const IdleDevices::Known* IdleDevices::look(const State& state, const NodeState& node, std::span<const PodSlot> kept) {
  const bool told = !node.node.cut_by_agent().empty();
  if (told ? !all_located(state, node, kept) || !without(state, node, kept, tells_all)
           : without(state, node, kept, engine::uses_gpus))
    return nullptr;
  return known_of(node.node);
}

const IdleDevices::Known* IdleDevices::known_of(const model::Node& node) {
  const std::string shape = shape_of(node);
  const auto [at, fresh] = known_.try_emplace(shape);
  Known& known = at->second;
  if (fresh) {
    known.shape = shape;
    if (auto devices = devices_of(node)) known.devices = std::move(*devices);
    std::vector<GpuDevice> idle;
    std::ranges::copy_if(known.devices, std::back_inserter(idle), &GpuDevice::idle);
    known.idle = {std::ssize(idle), advertised(idle)};
  }
  return known.idle.count > 0 ? &known : nullptr;
}

const IdleDevices::Seen& IdleDevices::seen(const State& state, engine::NodeSlot slot) {
  static const Seen k_nothing;
  const NodeState& node = state.node(slot);
  if (node.is_being_cut()) return k_nothing;
  if (known_.size() > kShapesMax) known_.clear(), seen_.clear();
  if (seen_.size() <= slot.value) seen_.resize(slot.value + 1);
  Seen& seen = seen_[slot.value];
  if (seen.generation == node.generation) return seen;
  const std::vector<PodSlot> kept = engine::kept_room(state, node);
  seen = {node.generation, look(state, node, {}), nullptr};
  seen.beside_kept = kept.empty() ? seen.known : look(state, node, kept);
  return seen;
}

const IdleDevices::Known* IdleDevices::find(const State& state, engine::NodeSlot slot) {
  return seen(state, slot).known;
}

const IdleDevices::Known* IdleDevices::find_when_left(const model::Node& node) {
  if (known_.size() > kShapesMax) known_.clear(), seen_.clear();
  model::Node left = node;
  for (model::GpuDevice& device : left.devices.devices) {
    device.pods.clear();
    for (model::MigDeviceInstance& instance : device.mig_instances) instance.pods.clear();
  }
  return known_of(left);
}

const IdleDevices::Known* IdleDevices::find_beside_kept(const State& state, engine::NodeSlot slot) {
  return seen(state, slot).beside_kept;
}

std::vector<engine::ResourceRoom> measure_fragmentation(const engine::Engine& engine, IdleDevices& idle) {
  engine::IdleGpus beside_owed;
  const auto find_idle = [&](engine::NodeSlot slot) -> const engine::IdleGpus* {
    const IdleDevices::Known* known = idle.find(engine.state(), slot);
    if (known == nullptr) return nullptr;
    const NodeView node = engine.state().view(slot);
    auto most = most_beside_owed(node, known->idle.count);
    if (!most) return &known->idle;
    beside_owed = known->idle;
    beside_owed.most = std::move(most);
    return &beside_owed;
  };
  return engine::measure_fragmentation(engine.state(), find_idle, engine::queued_pods(engine.workloads()));
}

}  // namespace berth::mig
