// PersistentVolumeClaim, PersistentVolume, StorageClass and what CSI drivers say of nodes and storage: what a pod's
// volumes meet. Source: k8s.io/api/core/v1 and storage/v1 (1.35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "model/node_affinity.h"
#include "model/peers.h"

namespace berth::api {

inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kDefaultStorageClass = "storageclass.kubernetes.io/is-default-class";
// On claims and volumes, before there was a field; it still goes first.
inline constexpr std::string_view kBetaStorageClass = "volume.beta.kubernetes.io/storage-class";

struct ClaimSpec {
  std::vector<std::string> access_modes;
  std::optional<model::LabelSelector> selector;
  std::optional<int64_t> storage_bytes;  // resources.requests.storage
  std::string volume_name;
  std::optional<std::string> storage_class_name;  // absent: the cluster's default class; "": none
  std::string volume_mode = "Filesystem";
  std::string volume_attributes_class_name;
  friend bool operator==(const ClaimSpec&, const ClaimSpec&) = default;
};

struct PersistentVolumeClaim {
  ObjectMeta metadata;
  ClaimSpec spec;
  std::string phase;

  // The annotation goes before the field.
  std::string storage_class() const;
};

struct VolumeClaimReference {
  std::string namespace_name, name, uid;
};

struct PersistentVolume {
  ObjectMeta metadata;
  std::optional<int64_t> storage_bytes;  // capacity
  std::vector<std::string> access_modes;
  std::optional<VolumeClaimReference> claim;
  std::string storage_class_name;
  std::string volume_mode = "Filesystem";
  std::string volume_attributes_class_name;
  std::optional<std::vector<model::NodeSelectorTerm>> node_affinity;  // required
  std::string csi_driver, csi_handle;
  std::string phase;

  std::string storage_class() const;
};

struct StorageClass {
  ObjectMeta metadata;
  std::string provisioner;
  std::string volume_binding_mode = "Immediate";
  std::vector<model::NodeSelectorTerm> allowed_topologies;

  bool is_default() const;
};

struct CsiNode {
  ObjectMeta metadata;
  struct Driver {
    std::string name;
    std::optional<int32_t> count;  // allocatable.count
  };
  std::vector<Driver> drivers;
};

struct CsiDriver {
  ObjectMeta metadata;
  bool storage_capacity = false;
};

struct CsiStorageCapacity {
  ObjectMeta metadata;
  std::optional<model::LabelSelector> node_topology;
  std::string storage_class_name;
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> maximum_volume_bytes;
};

}  // namespace berth::api
