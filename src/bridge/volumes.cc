#include "bridge/volumes.h"

#include <algorithm>

namespace berth::bridge {
namespace {

model::AccessModes access_modes(const std::vector<std::string>& names) {
  model::AccessModes out = 0;
  for (const std::string& name : names) {
    if (name == "ReadWriteOnce") out |= model::kReadWriteOnce;
    else if (name == "ReadOnlyMany") out |= model::kReadOnlyMany;
    else if (name == "ReadWriteMany") out |= model::kReadWriteMany;
    else if (name == "ReadWriteOncePod") out |= model::kReadWriteOncePod;
  }
  return out;
}

}  // namespace

model::VolumeClaim to_model(const api::PersistentVolumeClaim& claim) {
  model::VolumeClaim out;
  out.namespace_name = claim.metadata.namespace_name;
  out.name = claim.metadata.name;
  out.uid = claim.metadata.uid;
  out.storage_class = claim.storage_class();
  out.volume_name = claim.spec.volume_name;
  if (const std::string* node = claim.metadata.annotation(api::kSelectedNode)) out.selected_node = *node;
  if (const api::OwnerReference* owner = claim.metadata.controller()) out.owner_uid = owner->uid;
  out.attributes_class = claim.spec.volume_attributes_class_name;
  out.bytes = claim.spec.storage_bytes;
  out.access_modes = access_modes(claim.spec.access_modes);
  out.block = claim.spec.volume_mode == "Block";
  out.selector = claim.spec.selector;
  out.bind_completed = claim.metadata.annotation(api::kBindCompleted) != nullptr;
  out.lost = claim.phase == "Lost";
  out.terminating = claim.metadata.deleted.has_value();
  return out;
}

model::Volume to_model(const api::PersistentVolume& volume) {
  model::Volume out;
  out.name = volume.metadata.name;
  out.labels = volume.metadata.labels;
  out.storage_class = volume.storage_class();
  out.attributes_class = volume.volume_attributes_class_name;
  out.bytes = volume.storage_bytes.value_or(0);
  out.access_modes = access_modes(volume.access_modes);
  out.block = volume.volume_mode == "Block";
  out.available = volume.phase == "Available";
  out.terminating = volume.metadata.deleted.has_value();
  if (volume.claim) out.claim = {volume.claim->namespace_name + "/" + volume.claim->name, volume.claim->uid};
  out.affinity = volume.node_affinity;
  out.driver = volume.csi_driver;
  out.handle = volume.csi_handle;
  return out;
}

model::StorageClass to_model(const api::StorageClass& storage_class) {
  return {storage_class.metadata.name, storage_class.provisioner,
          storage_class.volume_binding_mode == "WaitForFirstConsumer", storage_class.allowed_topologies};
}

model::AttachLimits to_model(const api::CsiNode& node) {
  model::AttachLimits out{node.metadata.name, {}};
  for (const api::CsiNode::Driver& driver : node.drivers)
    if (driver.count) out.limits.emplace_back(driver.name, *driver.count);
  std::sort(out.limits.begin(), out.limits.end());
  return out;
}

model::StorageDriver to_model(const api::CsiDriver& driver) { return {driver.metadata.name, driver.storage_capacity}; }

model::StorageCapacity to_model(const api::CsiStorageCapacity& capacity) {
  return {capacity.metadata.namespace_name + "/" + capacity.metadata.name, capacity.storage_class_name,
          capacity.maximum_volume_bytes ? capacity.maximum_volume_bytes : capacity.capacity_bytes,
          capacity.node_topology};
}

std::vector<model::ClaimUse> claims_of(const api::Pod& pod) {
  std::vector<model::ClaimUse> out;
  const std::string folder = pod.metadata.namespace_name + "/";
  for (const api::ClaimVolume& volume : pod.spec.claim_volumes) {
    model::ClaimUse use;
    if (volume.made)
      use = {folder + pod.metadata.name + "-" + volume.name, folder + pod.metadata.name, pod.metadata.uid};
    else use.claim = folder + volume.claim_name;
    const auto same = [&](const model::ClaimUse& other) { return other.claim == use.claim; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(std::move(use));
  }
  return out;
}

}  // namespace berth::bridge
