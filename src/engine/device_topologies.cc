#include "engine/device_topologies.h"

#include <algorithm>
#include <map>

namespace berth::engine {
namespace {

// The same for devices that are connected alike: names are told by where they first stand.
std::string shape_of(const model::NodeDevices& devices) {
  std::string out;
  const auto number = [&out](int64_t value) { out += std::to_string(value) + ","; };
  std::map<std::string, size_t> names;
  const auto name = [&](const std::string& text) {
    number(text.empty() ? -1 : static_cast<int64_t>(names.try_emplace(text, names.size()).first->second));
  };
  for (const model::GpuDevice& device : devices.devices) {
    number(device.numa_node);
    name(device.pcie_root);
    name(device.pcie_switch.empty() ? "" : device.pcie_root + "\n" + device.pcie_switch);
    for (const auto& [peer, links] : device.nvlinks) number(peer), number(links);
    out += ';';
  }
  return out;
}

}  // namespace

std::shared_ptr<const model::DeviceTopology> DeviceTopologies::of(const model::NodeDevices& devices) {
  if (devices.devices.empty()) return nullptr;
  std::weak_ptr<const model::DeviceTopology>& known = known_[shape_of(devices)];
  std::shared_ptr<const model::DeviceTopology> out = known.lock();
  if (out == nullptr) known = out = std::make_shared<const model::DeviceTopology>(devices);
  if (known_.size() >= sweep_at_) {
    for (auto at = known_.begin(); at != known_.end();)
      if (at->second.expired()) at = known_.erase(at);
      else ++at;
    sweep_at_ = std::max<size_t>(64, 2 * known_.size());
  }
  return out;
}

}  // namespace berth::engine
