// State's accounts of what an agent says is given to pods that the engine does not know there.
#include <algorithm>
#include <bit>
#include <set>

#include "engine/state.h"
#include "model/mig_strangers.h"

namespace berth::engine {
namespace {

// Counts the MIG instances, by resource, that pods have which the engine does not know on the node. True if they have
// become others.
bool count_stranger_instances(NodeState& node, const model::ResourceList& taken, ResourceTable& resources) {
  std::vector<std::pair<ResourceId, int64_t>> now;
  for (const auto& [name, amount] : taken) now.emplace_back(resources.intern(name), amount);
  std::sort(now.begin(), now.end());
  if (now == node.stranger_instances) return false;
  const auto count = [&](int64_t sign) {
    for (const auto& [id, amount] : node.stranger_instances) {
      if (node.used.size() <= id.value) node.used.resize(id.value + 1, 0);
      node.used[id.value] += sign * amount;
    }
  };
  count(-1);
  node.stranger_instances = std::move(now);
  count(+1);
  return true;
}

}  // namespace

// Counts what the agent says is given to pods none of which is bound to the node and asks for such: these devices are
// in use until the agent says otherwise, and so are MIG instances; what such a pod leaves of a device that others share
// nobody knows, so that it takes no more. `gone`: the node is, or becomes another. True if they have become others.
bool State::set_strangers(NodeState& node, bool gone) {
  if (!node.ended.empty())
    for (const PodSlot slot : node.pods)  // one of the same name
      if (const PodState& pod = pods_[slot.value]; may_be_listed(pod)) node.ended.erase(pod.pod.full_name());
  model::ResourceList taken;
  if (!gone && model::tells_instances(node.node)) {
    model::ListedPods known;
    for (const std::string& pod : node.ended) known.emplace(pod, nullptr);
    for (const PodSlot slot : node.pods)
      if (const PodState& pod = pods_[slot.value]; may_be_listed(pod) && classes_[pod.cls.value].requests_gpu)
        known.emplace(pod.pod.full_name(), pod.pod.spec.get());
    taken = model::instances_beside(node.node, known);
  }
  const bool instances = count_stranger_instances(node, taken, resources_);
  const std::vector<model::GpuDevice>& devices = node.node.devices.devices;
  model::DeviceSet set = !gone && node.listed ? model::whole_devices(node.node.devices) : 0;
  std::set<std::string> known;  // pods that are there
  for (size_t p = 0; p < node.pods.size() && set != 0; ++p)
    if (const PodState& pod = pods_[node.pods[p].value]; may_be_listed(pod))
      if (const PodClass& cls = classes_[pod.cls.value]; cls.shares_gpu || cls.request(node.share_resource) > 0)
        known.insert(pod.pod.full_name());
  model::DeviceSet with_others = 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const model::DeviceSet device = model::DeviceSet{1} << i;
    if ((set & device) == 0) continue;
    const bool some_known =
        std::ranges::any_of(devices[i].pods, [&](const std::string& pod) { return known.contains(pod); });
    const bool all_explained = std::ranges::all_of(
        devices[i].pods, [&](const std::string& pod) { return known.contains(pod) || node.ended.contains(pod); });
    if (some_known || all_explained) set &= ~device;
    if (some_known && !all_explained) with_others |= device;
  }
  if (set == node.listed.strangers() && with_others == node.listed.with_strangers()) return instances;
  const uint32_t id = node.share_resource.value;
  if (node.used.size() <= id) node.used.resize(id + 1, 0);
  node.used[id] += std::popcount(set) - std::popcount(node.listed.strangers());
  node.listed.set_strangers(set, with_others);
  return true;
}

void State::settle_strangers(NodeSlot slot, const std::string& ended) {
  NodeState& node = nodes_[slot.value];
  if (!ended.empty() && !node.node.devices.devices.empty()) node.ended.insert(ended);
  if (!set_strangers(node, !node.present)) return;
  settle_guesses(slot);
  touch(slot);
}

}  // namespace berth::engine
