#include "mig/idle_devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

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
  for (const model::GpuDevice& device : node.cut_by_agent()) {
    const bool fixed = !device.pods.empty() || !device.unhealthy.empty();
    out +=
        fmt::format("|{}{}{}", device.mig_enabled ? "m" : "w", fixed ? "f" : "", device.unhealthy.empty() ? "" : "i");
    for (const model::MigDeviceInstance& instance : device.mig_instances)
      out += fmt::format(" {}@{}", instance.profile, instance.start);
  }
  return out;
}

int64_t free_of(const State& state, const NodeState& node, const std::string& resource) {
  for (uint32_t id = 0; id < node.used.size(); ++id)
    if (state.resources().name(ResourceId{id}) == resource)
      return std::max<int64_t>(0, node.node.allocatable.get(resource) - engine::NodeView::narrow(node.used[id]));
  return node.node.allocatable.get(resource);
}

}  // namespace

const IdleDevices::ByShape::value_type* IdleDevices::find(const State& state, const NodeState& node) {
  const bool told = !node.node.cut_by_agent().empty();
  if (node.repartitioning || (told ? !all_located(state, node) : uses_gpus(state, node))) return nullptr;
  if (known_.size() > kShapesMax) known_.clear();
  const auto [known, fresh] = known_.try_emplace(shape_of(node.node));
  if (fresh) {
    if (auto devices = devices_of(node.node)) known->second = std::move(*devices);
  }
  return std::ranges::any_of(known->second, &GpuDevice::idle) ? &*known : nullptr;
}

std::optional<int64_t> IdleDevices::free_if_cut(const State& state, const NodeState& node,
                                                const std::string& resource) {
  if (!is_cut_resource(resource)) return std::nullopt;
  int64_t each = 1;  // of the resource, on a device that has nothing else
  if (model::is_mig_resource(resource)) {
    const auto profile = model::parse_mig_resource(*node.node.mig.model, resource);
    if (!profile) return std::nullopt;
    each = model::MigLayout(*node.node.mig.model).room_for(*profile);
  }
  const ByShape::value_type* found = find(state, node);
  if (found == nullptr) return std::nullopt;
  std::vector<GpuDevice> idle;
  std::ranges::copy_if(found->second, std::back_inserter(idle), &GpuDevice::idle);
  const int64_t in_use = std::max<int64_t>(0, free_of(state, node, resource) - advertised(idle).get(resource));
  return in_use + each * std::ssize(idle);
}

std::vector<engine::ResourceRoom> measure_fragmentation(const State& state, IdleDevices& idle) {
  return engine::measure_fragmentation(state, [&](const NodeState& node, const std::string& resource) {
    return idle.free_if_cut(state, node, resource);
  });
}

}  // namespace berth::mig
