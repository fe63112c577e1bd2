// Volumes: what the engine needs to know of claims, volumes and where storage can be had, as plain values.
//
// src/bridge makes them from the API's objects: beta annotations and labels are already resolved, amounts are bytes.
// Source: k8s.io/api/core/v1, storage/v1 (1.35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "model/labels.h"
#include "model/node_affinity.h"
#include "model/peers.h"

namespace berth::model {

// A set of access modes, as bits.
using AccessModes = uint8_t;
inline constexpr AccessModes kReadWriteOnce = 1, kReadOnlyMany = 2, kReadWriteMany = 4, kReadWriteOncePod = 8;

// PersistentVolumeClaim.
struct VolumeClaim {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string storage_class;     // empty: none
  std::string volume_name;       // spec.volumeName
  std::string selected_node;     // annotation volume.kubernetes.io/selected-node: provisioned for this node
  std::string owner_uid;         // controller's UID; of a pod: made for its ephemeral volume
  std::string attributes_class;  // spec.volumeAttributesClassName
  std::optional<int64_t> bytes;  // asked for
  AccessModes access_modes = 0;
  bool block = false;                     // volumeMode: Block
  std::optional<LabelSelector> selector;  // which volumes; none: all
  bool bind_completed = false;            // the volume controller has finished binding it
  bool lost = false;                      // phase Lost
  bool terminating = false;

  bool bound() const { return bind_completed && !volume_name.empty(); }
  bool one_pod_only() const { return (access_modes & kReadWriteOncePod) != 0; }
  // "namespace/name".
  std::string key() const { return namespace_name + "/" + name; }
  friend bool operator==(const VolumeClaim&, const VolumeClaim&) = default;
};

// The claim that a volume is bound to or reserved for.
struct ClaimReference {
  std::string claim;  // "namespace/name"
  std::string uid;    // empty: any claim of this name
  friend bool operator==(const ClaimReference&, const ClaimReference&) = default;
};

// PersistentVolume.
struct Volume {
  std::string name;
  Labels labels;
  std::string storage_class;  // empty: none
  std::string attributes_class;
  int64_t bytes = 0;
  AccessModes access_modes = 0;
  bool block = false;
  bool available = false;  // phase Available
  bool terminating = false;
  std::optional<ClaimReference> claim;
  std::optional<std::vector<NodeSelectorTerm>> affinity;  // nodes that can reach it; none: all
  std::string driver;                                     // CSI driver; empty: not a CSI volume
  std::string handle;                                     // its name at the driver

  bool reserved_for(const VolumeClaim& c) const {
    return claim && claim->claim == c.key() && (claim->uid.empty() || claim->uid == c.uid);
  }
  bool reachable_from(const Labels& node) const;
  friend bool operator==(const Volume&, const Volume&) = default;
};

struct StorageClass {
  std::string name;
  std::string provisioner;
  bool waits_for_consumer = false;                   // volumeBindingMode: WaitForFirstConsumer
  std::vector<NodeSelectorTerm> allowed_topologies;  // on node labels; empty: everywhere

  bool provisions() const { return !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner"; }
  bool provisions_on(const Labels& node) const;
  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

// CSINode: how many volumes of each driver a node can attach.
struct AttachLimits {
  std::string node;
  std::vector<std::pair<std::string, int64_t>> limits;  // by driver; drivers without a limit are left out
  friend bool operator==(const AttachLimits&, const AttachLimits&) = default;
};

// CSIDriver.
struct StorageDriver {
  std::string name;
  bool reports_capacity = false;  // spec.storageCapacity: a place needs a StorageCapacity with room
  friend bool operator==(const StorageDriver&, const StorageDriver&) = default;
};

// CSIStorageCapacity: how large a volume of a class can be made on some nodes.
struct StorageCapacity {
  std::string name;  // "namespace/name"
  std::string storage_class;
  std::optional<int64_t> largest_bytes;  // maximumVolumeSize, else capacity
  std::optional<LabelSelector> nodes;    // none: no node
  friend bool operator==(const StorageCapacity&, const StorageCapacity&) = default;
};

// In the order of StorageObject.
enum class StorageKind : uint8_t { kClaim, kVolume, kClass, kAttachLimits, kDriver, kCapacity };
using StorageObject = std::variant<VolumeClaim, Volume, StorageClass, AttachLimits, StorageDriver, StorageCapacity>;
inline StorageKind kind_of(const StorageObject& object) { return static_cast<StorageKind>(object.index()); }
// Its name, with the namespace where the kind has one; unique within the kind.
std::string key_of(const StorageObject& object);

}  // namespace berth::model
