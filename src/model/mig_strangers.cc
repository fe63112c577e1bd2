#include "model/mig_strangers.h"

#include <algorithm>
#include <set>

#include "model/mig.h"

namespace berth::model {
namespace {

constexpr std::string_view kShared = ".shared";  // what the device plugin calls replicas, if it is told to

bool names(const std::vector<std::string>& pods, const std::string& pod) {
  return std::ranges::find(pods, pod) != pods.end();
}

// As which one instance of the profile is advertised.
std::string resource_of(const Node& node, const std::string& profile) {
  return node.gpus.sharing == GpuSharing::kInstances ? std::string(kWholeGpuResource) : mig_resource_name(profile);
}

bool asks_for_instance(const Node& node, const std::string& profile, const SchedulingSpec& spec) {
  const std::string resource = resource_of(node, profile);
  return spec.requests.get(resource) > 0 || spec.requests.get(resource + std::string(kShared)) > 0;
}

// The agent says so of the device without saying which instance it is.
bool may_have_any(const Node& node, const GpuDevice& device, const SchedulingSpec& spec) {
  return std::ranges::any_of(device.mig_instances, [&](const MigDeviceInstance& instance) {
    return asks_for_instance(node, instance.profile, spec);
  });
}

}  // namespace

bool is_located(const Node& node, const std::string& pod, const SchedulingSpec& spec) {
  int64_t whole = 0;
  std::map<std::string, int64_t> instances;  // by resource
  for (const GpuDevice& device : node.cut_by_agent()) {
    if (!names(device.pods, pod)) continue;
    whole += device.mig_enabled ? 0 : 1;
    const bool told =
        std::ranges::any_of(device.mig_instances, [&](const auto& each) { return names(each.pods, pod); });
    for (const MigDeviceInstance& each : device.mig_instances)
      if (!told || names(each.pods, pod)) ++instances[resource_of(node, each.profile)];
  }
  bool asks = false, located = true;
  const auto count = [&](int64_t asked, int64_t has, bool in_replicas) {
    asks |= asked > 0;
    located &= asked <= 0 || has >= (in_replicas ? 1 : asked);
  };
  const auto of = [&](const std::string& resource) {
    const auto at = instances.find(resource);
    return at == instances.end() ? 0 : at->second;
  };
  const bool by_instance = node.gpus.sharing == GpuSharing::kInstances;
  if (spec.gpu_share.asked()) count(1, whole, true);
  for (const auto& [resource, amount] : spec.requests) {
    const bool sliced = std::ranges::find(node.gpus.time_sliced, resource) != node.gpus.time_sliced.end();
    const std::string plain =
        resource.ends_with(kShared) ? resource.substr(0, resource.size() - kShared.size()) : resource;
    if (plain == kWholeGpuResource) count(amount, by_instance ? of(plain) : whole, sliced || node.gpus.replicas != 1);
    else if (resource == node.gpus.resource) count(amount, whole, node.gpus.replicas != 1);
    else if (is_mig_resource(plain)) count(amount, of(plain), sliced);
  }
  return asks && located;
}

bool tells_instances(const Node& node) {
  return std::ranges::any_of(node.devices.devices, [](const GpuDevice& device) {
    const auto given = [](const MigDeviceInstance& instance) { return !instance.pods.empty(); };
    return device.mig_enabled && (!device.pods.empty() || std::ranges::any_of(device.mig_instances, given));
  });
}

ResourceList instances_beside(const Node& node, const ListedPods& known) {
  ResourceList out;
  // Of those that are known `may` says whether the list can mean them.
  const auto is_known = [&](const std::string& pod, const auto& may) {
    const auto at = known.find(pod);
    return at != known.end() && (at->second == nullptr || may(*at->second));
  };
  for (const GpuDevice& device : node.devices.devices) {
    if (!device.mig_enabled || !device.unhealthy.empty()) continue;
    struct Count {
      int64_t all = 0, taken = 0;
    };
    std::map<std::string, Count> profiles;
    std::set<std::string> located;  // pods of which is told which instance they have
    for (const MigDeviceInstance& instance : device.mig_instances) {
      const auto may = [&](const SchedulingSpec& spec) { return asks_for_instance(node, instance.profile, spec); };
      Count& count = profiles[instance.profile];
      ++count.all;
      located.insert(instance.pods.begin(), instance.pods.end());
      count.taken += std::ranges::all_of(instance.pods, [&](const auto& pod) { return is_known(pod, may); }) ? 0 : 1;
    }
    const auto may = [&](const SchedulingSpec& spec) { return may_have_any(node, device, spec); };
    const int64_t elsewhere = std::ranges::count_if(
        device.pods, [&](const std::string& pod) { return !is_known(pod, may) && !located.contains(pod); });
    for (const auto& [profile, count] : profiles)
      if (const int64_t taken = std::min(count.all, count.taken + elsewhere); taken > 0)
        out.add(resource_of(node, profile), taken);
  }
  return out;
}

}  // namespace berth::model
