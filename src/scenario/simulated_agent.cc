#include "scenario/simulated_agent.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "bridge/devices.h"
#include "bridge/mig.h"
#include "model/mig.h"

namespace berth::scenario {
namespace {

// "1g.5gb+me" of nvidia.com/mig-1g.5gb.me, as far as an instance's name is concerned.
bool is_instance_of(const model::MigDeviceInstance& instance, const std::string& resource) {
  std::string name = "nvidia.com/mig-" + instance.profile;
  std::ranges::replace(name, '+', '.');
  return name == resource;
}

// Cuts the device so.
void cut_into(model::GpuDevice& device, bool mig_enabled, std::vector<model::MigDeviceInstance> instances) {
  device.mig_enabled = mig_enabled;
  device.mig_instances = std::move(instances);
  for (model::MigDeviceInstance& instance : device.mig_instances)
    instance.uuid = fmt::format("MIG-{}-{}", device.uuid, instance.start);
}

}  // namespace

void SimulatedAgent::put(const api::Node& node) {
  nodes_.erase(node.metadata.name);
  auto told = bridge::devices_of(node);
  if (!told || !*told) return;
  const auto mig = bridge::mig_of(node, bridge::DeviceKnowledge::kExact);
  const bool cuts = mig && mig->model != nullptr && mig->hand == model::MigHand::kLayouts;
  nodes_[node.metadata.name] = {std::move((*told)->devices), cuts ? mig->model : nullptr, {}};
}

bool SimulatedAgent::has_one(const Node& node, size_t device, const std::string& resource) {
  const model::GpuDevice& one = node.devices.devices[device];
  if (!one.unhealthy.empty()) return false;
  const auto taken = std::ranges::count_if(
      node.taken, [&](const Taken& each) { return each.device == device && each.resource == resource; });
  if (!model::is_mig_resource(resource)) return !one.mig_enabled && one.pods.empty();
  const auto is_other = [&](const std::string& pod) {  // has not started here
    return std::ranges::none_of(node.taken,
                                [&](const Taken& each) { return each.device == device && each.pod == pod; });
  };
  // Those that the annotation names, and on none of the instances, could have any of them.
  const auto others = std::ranges::count_if(one.pods, [&](const std::string& pod) {
    return is_other(pod) && std::ranges::none_of(one.mig_instances, [&](const model::MigDeviceInstance& instance) {
             return std::ranges::find(instance.pods, pod) != instance.pods.end();
           });
  });
  const auto is_free = [&](const model::MigDeviceInstance& instance) {
    return is_instance_of(instance, resource) && std::ranges::none_of(instance.pods, is_other);
  };
  return std::ranges::count_if(one.mig_instances, is_free) > taken + others;
}

// Gives the pod one of the resource: of the first device of `order` that has one. The first `named` of them the pod
// names itself.
void SimulatedAgent::give_one(Node& node, const std::string& pod, const std::string& resource,
                              std::span<const size_t> order, size_t named) {
  const auto at = std::ranges::find_if(order, [&](size_t device) { return has_one(node, device, resource); });
  if (at == order.end()) return;
  const bool is_named = static_cast<size_t>(at - order.begin()) < named;
  node.taken.push_back({pod, resource, *at, !is_named && !model::is_mig_resource(resource)});
  std::vector<std::string>& pods = node.devices.devices[*at].pods;
  if (std::ranges::find(pods, pod) == pods.end()) pods.push_back(pod);
}

// Takes these devices from pods that are only thought to have them, and says from whom.
std::vector<std::string> SimulatedAgent::make_way(Node& node, std::span<const size_t> named) {
  std::vector<std::string> out;
  std::erase_if(node.taken, [&](const Taken& each) {
    if (!each.made_up || std::ranges::find(named, each.device) == named.end()) return false;
    std::erase(node.devices.devices[each.device].pods, each.pod);
    out.push_back(each.pod);
    return true;
  });
  return out;
}

void SimulatedAgent::start(const std::string& name, const std::string& pod, const model::ResourceList& asked,
                           const std::vector<std::string>& given) {
  Node& node = nodes_.at(name);
  std::vector<model::GpuDevice>& devices = node.devices.devices;
  const auto has = [&](const model::GpuDevice& device) {
    return std::ranges::find(device.pods, pod) != device.pods.end();
  };
  const model::ResourceList resources = mig::cut_resources(asked);
  if (std::ranges::any_of(devices, has)) {  // the manifest says where it is
    for (const auto& [resource, amount] : resources)
      for (size_t d = 0; d < devices.size(); ++d)
        if (has(devices[d])) node.taken.push_back({pod, resource, d});
    return;
  }
  std::vector<size_t> order(devices.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const std::vector<size_t> all = order;
  const auto others = std::stable_partition(order.begin(), order.end(), [&](size_t d) {
    const auto is_it = [&](const std::string& one) { return one == devices[d].uuid || one == std::to_string(d); };
    return std::ranges::any_of(given, is_it);
  });
  const auto named = static_cast<size_t>(others - order.begin());
  if (resources.empty() && named != 1) return;  // a share is of the one device that its pod names
  const std::vector<std::string> moved = make_way(node, std::span(order).first(named));
  if (resources.empty()) devices[order.front()].pods.push_back(pod);
  for (const auto& [resource, amount] : resources)
    for (int64_t one = 0; one < amount; ++one) give_one(node, pod, resource, order, named);
  for (const std::string& other : moved) give_one(node, other, std::string(model::kWholeGpuResource), all, 0);
}

bool SimulatedAgent::set_apart(const std::string& name, const std::string& pod) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return false;
  bool any = false;
  const auto rename = [&](std::vector<std::string>& pods) {
    const auto found = std::ranges::find(pods, pod);
    if (found == pods.end()) return;
    *found = pod + " (earlier)";  // no pod is called so
    any = true;
  };
  for (model::GpuDevice& device : at->second.devices.devices) {
    rename(device.pods);
    for (model::MigDeviceInstance& instance : device.mig_instances) rename(instance.pods);
  }
  return any;
}

bool SimulatedAgent::end(const std::string& name, const std::string& pod) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return false;
  std::erase_if(at->second.taken, [&](const Taken& each) { return each.pod == pod; });
  size_t gone = 0;
  for (model::GpuDevice& device : at->second.devices.devices) {
    gone += std::erase(device.pods, pod);
    for (model::MigDeviceInstance& instance : device.mig_instances) gone += std::erase(instance.pods, pod);
  }
  return gone > 0;
}

std::vector<std::string> SimulatedAgent::cut(const std::string& name, std::span<const model::GpuDevice> wanted) {
  std::vector<std::string> wrong;
  std::vector<model::GpuDevice>& devices = nodes_.at(name).devices.devices;
  std::vector<model::GpuDevice> after = devices;
  for (const model::GpuDevice& as_wanted : wanted) {
    const auto device = std::ranges::find(after, as_wanted.uuid, &model::GpuDevice::uuid);
    if (device == after.end()) {
      wrong.push_back(fmt::format("device {} of node {} is to be cut anew, and it is gone", as_wanted.uuid, name));
      continue;
    }
    const auto alike = [](const auto& a, const auto& b) { return a.profile == b.profile && a.start == b.start; };
    if (device->mig_enabled == as_wanted.mig_enabled &&
        std::ranges::is_permutation(device->mig_instances, as_wanted.mig_instances, alike))
      continue;
    if (!device->pods.empty() || !device->unhealthy.empty()) {
      wrong.push_back(fmt::format("device {} of node {} is cut anew, and {}", device->uuid, name,
                                  device->pods.empty() ? "it is ill" : device->pods.front() + " is on it"));
      continue;
    }
    if (const auto layout = model::MigLayout::from_report(*nodes_.at(name).model, as_wanted); !layout) {
      wrong.push_back(
          fmt::format("device {} of node {} cannot be cut so: {}", device->uuid, name, layout.error().message));
      continue;
    }
    cut_into(*device, as_wanted.mig_enabled, as_wanted.mig_instances);
  }
  if (wrong.empty()) devices = std::move(after);
  return wrong;
}

void SimulatedAgent::find_cut(const std::string& name, std::span<const mig::GpuDevice> cut) {
  const auto at = nodes_.find(name);
  if (at == nodes_.end()) return;
  std::vector<model::GpuDevice>& devices = at->second.devices.devices;
  for (size_t d = 0; d < std::min(cut.size(), devices.size()); ++d)
    cut_into(devices[d], !cut[d].whole, mig::instances_of(cut[d]));
}

std::string SimulatedAgent::annotation(const std::string& node) const {
  return bridge::devices_json(nodes_.at(node).devices);
}

}  // namespace berth::scenario
