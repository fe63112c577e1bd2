#include "model/mig_strangers.h"

#include <algorithm>
#include <map>

#include "model/mig.h"

namespace berth::model {

bool tells_instances(const Node& node) {
  return std::ranges::any_of(node.devices.devices, [](const GpuDevice& device) {
    const auto given = [](const MigDeviceInstance& instance) { return !instance.pods.empty(); };
    return device.mig_enabled && (!device.pods.empty() || std::ranges::any_of(device.mig_instances, given));
  });
}

ResourceList instances_beside(const Node& node, const std::set<std::string>& known) {
  ResourceList out;
  const bool single = node.gpus.sharing == GpuSharing::kInstances;
  for (const GpuDevice& device : node.devices.devices) {
    if (!device.mig_enabled || !device.unhealthy.empty()) continue;
    struct Count {
      int64_t all = 0, taken = 0;
    };
    std::map<std::string, Count> profiles;
    std::set<std::string> located;  // pods of which is told which instance they have
    for (const MigDeviceInstance& instance : device.mig_instances) {
      Count& count = profiles[instance.profile];
      ++count.all;
      located.insert(instance.pods.begin(), instance.pods.end());
      count.taken += std::ranges::any_of(instance.pods, [&](const auto& pod) { return !known.contains(pod); }) ? 1 : 0;
    }
    const int64_t elsewhere = std::ranges::count_if(
        device.pods, [&](const std::string& pod) { return !known.contains(pod) && !located.contains(pod); });
    for (const auto& [profile, count] : profiles)
      if (const int64_t taken = std::min(count.all, count.taken + elsewhere); taken > 0)
        out.add(single ? std::string(kWholeGpuResource) : mig_resource_name(profile), taken);
  }
  return out;
}

}  // namespace berth::model
