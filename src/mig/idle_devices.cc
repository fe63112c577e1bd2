#include "mig/idle_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "engine/queued_workloads.h"
#include "model/device_ties.h"

namespace berth::mig {
namespace {

using engine::NodeState;
using engine::PodSlot;
using engine::ResourceId;
using engine::State;

constexpr size_t kShapesMax = 10'000;

bool uses_gpus(const State& state, const NodeState& node) {
  for (uint32_t id = 0; id < node.used.size(); ++id)
    if (node.used[id] > 0 && state.resources().is_gpu(ResourceId{id})) return true;
  return false;
}

// The agent has said of every pod that uses GPUs of the node, or will, where it is.
bool all_located(const State& state, const NodeState& node) {
  std::set<std::string_view> located;
  for (const model::GpuDevice& device : node.node.cut_by_agent())
    located.insert(device.pods.begin(), device.pods.end());
  return std::ranges::all_of(node.pods, [&](PodSlot slot) {
    const engine::PodState& pod = state.pod(slot);
    const engine::PodClass& cls = state.pod_class(pod.cls);
    if (!cls.requests_gpu && !cls.shares_gpu) return true;
    return located.contains(pod.pod.full_name());
  });
}

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

}  // namespace

const IdleDevices::Known* IdleDevices::look(const State& state, const NodeState& node) {
  const bool told = !node.node.cut_by_agent().empty();
  if (told ? !all_located(state, node) : uses_gpus(state, node)) return nullptr;
  const std::string shape = shape_of(node.node);
  const auto [at, fresh] = known_.try_emplace(shape);
  Known& known = at->second;
  if (fresh) {
    known.shape = shape;
    if (auto devices = devices_of(node.node)) known.devices = std::move(*devices);
    std::vector<GpuDevice> idle;
    std::ranges::copy_if(known.devices, std::back_inserter(idle), &GpuDevice::idle);
    known.idle = {std::ssize(idle), advertised(idle)};
  }
  return known.idle.count > 0 ? &known : nullptr;
}

const IdleDevices::Known* IdleDevices::find(const State& state, engine::NodeSlot slot) {
  const NodeState& node = state.node(slot);
  if (node.repartitioning) return nullptr;
  if (known_.size() > kShapesMax) known_.clear(), seen_.clear();
  if (seen_.size() <= slot.value) seen_.resize(slot.value + 1);
  Seen& seen = seen_[slot.value];
  if (seen.generation != node.generation) seen = {node.generation, look(state, node)};
  return seen.known;
}

std::vector<engine::ResourceRoom> measure_fragmentation(const engine::Engine& engine, IdleDevices& idle) {
  const auto find_idle = [&](engine::NodeSlot slot) {
    const IdleDevices::Known* known = idle.find(engine.state(), slot);
    return known == nullptr ? nullptr : &known->idle;
  };
  return engine::measure_fragmentation(engine.state(), find_idle, engine::queued_pods(engine.workloads()));
}

}  // namespace berth::mig
