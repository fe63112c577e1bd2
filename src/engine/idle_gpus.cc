#include "engine/idle_gpus.h"

#include <algorithm>
#include <bit>

#include "model/devices.h"
#include "model/gpu.h"
#include "packing/mig_config.h"

namespace berth::engine {
namespace {

// How much of the resource a device has as it is.
int64_t amount_on(const model::GpuDevice& device, const std::string& resource) {
  if (resource == model::kWholeGpuResource) return device.mig_enabled ? 0 : 1;
  return std::ranges::count_if(device.mig_instances, [&](const model::MigDeviceInstance& instance) {
    return resource == model::mig_resource_name(instance.profile);
  });
}

}  // namespace

bool uses_gpus(const NodeView& node) {
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value)
    if (node.resources().is_gpu(id) && node.used(id) > 0) return true;
  return false;
}

model::DeviceSet idle_devices(const NodeView& node) {
  const auto devices = node.node().cut_by_agent();
  model::DeviceSet out = 0;
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].pods.empty() && devices[i].unhealthy.empty()) out |= model::DeviceSet{1} << i;
  return node.listed() ? out & ~(node.listed().given() | node.devices().open()) : out;
}

bool tells_all_in_use(const NodeView& node) {
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value) {
    if (!node.resources().is_gpu(id) || node.used(id) <= 0) continue;
    const std::string& resource = node.resources().name(id);
    int64_t named = 0, others = 0;
    for (const model::GpuDevice& device : node.node().cut_by_agent())
      (device.pods.empty() ? others : named) += amount_on(device, resource);
    if (others > 0 && node.used(id) > named) return false;
  }
  return true;
}

int64_t free_beside_idle(const NodeView& node, ResourceId resource) {
  const auto devices = node.node().cut_by_agent();
  if (devices.empty()) return 0;
  const std::string& name = node.resources().name(resource);
  int64_t free = node.free(resource);
  for (model::DeviceSet left = idle_devices(node); left != 0; left &= left - 1)
    free -= amount_on(devices[static_cast<size_t>(std::countr_zero(left))], name);
  return free;
}

bool lists_what_is_there(const NodeView& node) {
  const auto devices = node.node().cut_by_agent();
  if (devices.empty()) return true;
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value) {
    const std::string& resource = node.resources().name(id);
    if (resource != model::kWholeGpuResource && !model::is_mig_resource(resource)) continue;
    int64_t listed = 0;
    for (const model::GpuDevice& device : devices)
      if (device.unhealthy.empty()) listed += amount_on(device, resource);
    if (listed != node.allocatable(id)) return false;
  }
  return true;
}

model::ResourceList asked_of_idle(const PodClass& pod, const NodeView& node) {
  model::ResourceList out;
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value) {
    const std::string& resource = node.resources().name(id);
    const bool shares = pod.shares_gpu && resource == model::kWholeGpuResource;
    const int64_t asked = node.resources().is_gpu(id) ? pod.request(id) + (shares ? 1 : 0) : 0;
    if (asked > 0 && asked > free_beside_idle(node, id)) out.set(resource, asked - free_beside_idle(node, id));
  }
  return out;
}

bool idle_could_be_cut_for(const PodClass& pod, const NodeView& node) {
  model::DynamicMig idle = node.node().mig;
  const bool told = !node.node().cut_by_agent().empty();
  idle.devices = told ? std::popcount(idle_devices(node)) : uses_gpus(node) ? 0 : idle.devices;
  return idle.devices > 0 && packing::can_be_cut_for(idle, asked_of_idle(pod, node));
}

int64_t most_on_device(const model::MigModel& model, const std::string& resource) {
  if (resource == model::kWholeGpuResource) return 1;
  const auto profile = model::parse_mig_resource(model, resource);
  return profile ? model.profiles[*profile].instances_max : 0;
}

}  // namespace berth::engine
