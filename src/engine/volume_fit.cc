// Whether a node can have a pod's volumes, and which ones: kube-scheduler's FindPodVolumes and FindMatchingVolume.
#include <algorithm>

#include "engine/volume_state.h"

namespace berth::engine {
namespace {

constexpr std::string_view kHostname = "kubernetes.io/hostname";

bool serves(const model::Volume& volume, const model::VolumeClaim& claim) {
  return volume.bytes >= claim.bytes.value_or(0) && volume.block == claim.block &&
         volume.attributes_class == claim.attributes_class && !volume.terminating;
}

}  // namespace

VolumeState::Fit VolumeState::fit(const std::vector<ClaimRecord*>& claims, const model::Node& node) const {
  Fit out;
  std::vector<std::pair<int64_t, uint32_t>> unbound;  // by size: the smallest claim takes its volume first
  for (uint32_t i = 0; i < claims.size(); ++i) {
    const auto& object = claims[i]->object;
    if (!object) continue;  // objection() has said so
    if (!object->bound()) {
      unbound.emplace_back(object->bytes.value_or(0), i);
      continue;
    }
    const model::Volume* bound = volume_of(*claims[i]);
    if (bound == nullptr || bound->reachable_from(node.labels)) continue;
    if (out.ok()) out.claim = i;
    out.reachable = false;
  }
  std::sort(unbound.begin(), unbound.end());
  for (const auto& [bytes, i] : unbound) {
    const bool before = out.ok();
    fit_unbound(*claims[i], node, out);
    if (before && !out.ok()) out.claim = i;
    if (!out.found || !out.space) break;
  }
  return out;
}

void VolumeState::fit_unbound(ClaimRecord& claim, const model::Node& node, Fit& out) const {
  const model::VolumeClaim& object = *claim.object;
  std::string selected = object.selected_node;
  if (selected.empty() && claim.choice && claim.choice->volume.empty()) selected = claim.choice->node;
  if (!selected.empty() && selected != node.name) {
    out.found = false;
    return;
  }
  bool settled = false;
  const model::Volume* match = selected.empty() ? find_volume(claim, node, out, settled) : nullptr;
  if (match != nullptr) return out.choices.push_back({&claim, {object.uid, match->name, node.name}}), void();
  const model::StorageClass* cls = class_of(object);
  if (settled || cls == nullptr || !cls->provisions_on(node.labels)) {
    out.found = false;
    return;
  }
  if (!has_capacity(object, *cls, node)) out.space = false;
  else out.choices.push_back({&claim, {object.uid, "", node.name}});
}

// The volume that the claim would get on the node; null without one. `settled`: it is reserved for the claim, and no
// other may be taken instead.
const model::Volume* VolumeState::find_volume(const ClaimRecord& claim, const model::Node& node, const Fit& so_far,
                                              bool& settled) const {
  const model::VolumeClaim& object = *claim.object;
  if (claim.choice && !claim.choice->volume.empty()) {
    settled = true;
    const model::Volume* chosen = volume(claim.choice->volume);
    return chosen != nullptr && chosen->reachable_from(node.labels) ? chosen : nullptr;
  }
  if (const auto at = reserved_.find(claim.key); at != reserved_.end())
    for (const std::string& name : at->second) {
      const model::Volume& reserved = *volume(name);
      if (reserved.storage_class != object.storage_class || !reserved.reserved_for(object) || !serves(reserved, object))
        continue;
      settled = !reserved.reachable_from(node.labels);
      return settled ? nullptr : &reserved;
    }
  const auto pool = pools_.find(object.storage_class);
  if (pool == pools_.end()) return nullptr;
  const model::Volume* best = smallest(pool->second.anywhere, claim, node, so_far);
  const std::string* host = node.labels.find(kHostname);
  const auto on_host = host == nullptr ? pool->second.on_host.end() : pool->second.on_host.find(*host);
  if (on_host == pool->second.on_host.end()) return best;
  const model::Volume* local = smallest(on_host->second, claim, node, so_far);
  if (best == nullptr || local == nullptr) return best == nullptr ? local : best;
  return std::pair(local->bytes, local->name) < std::pair(best->bytes, best->name) ? local : best;
}

const model::Volume* VolumeState::smallest(const BySize& volumes, const ClaimRecord& claim, const model::Node& node,
                                           const Fit& so_far) const {
  const model::VolumeClaim& object = *claim.object;
  for (auto at = volumes.lower_bound({object.bytes.value_or(0), ""}); at != volumes.end(); ++at) {
    const model::Volume& volume = *at->second;
    if (chosen_.contains(volume.name) || !serves(volume, object)) continue;
    if ((object.access_modes & ~volume.access_modes) != 0) continue;
    if (object.selector && !object.selector->matches(volume.labels)) continue;
    if (std::any_of(so_far.choices.begin(), so_far.choices.end(),
                    [&](const auto& taken) { return taken.second.volume == volume.name; }))
      continue;
    if (volume.reachable_from(node.labels)) return &volume;
  }
  return nullptr;
}

bool VolumeState::has_capacity(const model::VolumeClaim& claim, const model::StorageClass& cls,
                               const model::Node& node) const {
  const auto driver = drivers_.find(cls.provisioner);
  if (!claim.bytes || driver == drivers_.end() || !driver->second.reports_capacity) return true;
  return std::any_of(capacities_.begin(), capacities_.end(), [&](const auto& entry) {
    const model::StorageCapacity& capacity = entry.second;
    return capacity.storage_class == cls.name && capacity.largest_bytes.value_or(-1) >= *claim.bytes &&
           capacity.nodes && capacity.nodes->matches(node.labels);
  });
}

}  // namespace berth::engine
