#include "api/volumes.h"

#include <algorithm>

#include "api/decoders.h"
#include "api/names.h"
#include "model/quantity.h"

namespace berth::api {
namespace {

using model::NodeSelectorRequirement;
using model::NodeSelectorTerm;

void read_bytes(const Reader& reader, std::optional<int64_t>& out) {
  std::string text = "0";  // which null is to the API server
  if (!reader.is_null() && !reader.read_string_or_number(text)) return;
  const Result<int64_t> bytes = model::parse_quantity(text);
  if (!bytes) reader.problem(bytes.error().message);
  else if (*bytes < 0) reader.problem(invalid_value(text, "must be greater than or equal to 0"));
  else out = *bytes;
}

// Claims and volumes may name other resources, too; these mean nothing.
void read_storage(const Reader& reader, std::optional<int64_t>& out) {
  if (!reader.expect(JsonType::kObject)) return;
  for (Members members(reader); members.next();)
    if (members.key() == "storage") read_bytes(members.value(), out);
}
struct VolumeResources {
  std::optional<int64_t>* out;
};
constexpr Field<VolumeResources> kVolumeResources[] = {
    {"limits"},
    {"requests", [](const Reader& r, VolumeResources& v) { read_storage(r, *v.out); }},
};

void read_choice(const Reader& reader, const std::vector<std::string_view>& allowed, std::string& out) {
  std::string_view text;
  if (!reader.is_null() && !reader.read(text)) return;
  if (std::find(allowed.begin(), allowed.end(), text) != allowed.end()) out.assign(text);
  else reader.problem(unsupported_value(text, allowed));
}

void read_access_modes(const Reader& reader, std::vector<std::string>& out) {
  reader.read(out);
  if (!reader.strict()) return;
  for (Items items(reader); items.next();) {
    std::string mode;
    if (items.value().is_null() || items.value().type() == JsonType::kString)
      read_choice(items.value(), {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"}, mode);
  }
  if (out.size() > 1 && std::find(out.begin(), out.end(), "ReadWriteOncePod") != out.end())
    reader.problem("Forbidden: may not use ReadWriteOncePod with other access modes");
}

void read_selector(const Reader& reader, std::optional<model::LabelSelector>& out) {
  read_label_selector(reader, out.emplace());
}

// ---- claims ---------------------------------------------------------------------------------------------------------

constexpr Field<ClaimSpec> kClaimSpec[] = {
    {"accessModes", [](const Reader& r, ClaimSpec& s) { read_access_modes(r, s.access_modes); }},
    {"selector", [](const Reader& r, ClaimSpec& s) { read_selector(r, s.selector); }},
    {"resources",
     [](const Reader& r, ClaimSpec& s) {
       VolumeResources resources{&s.storage_bytes};
       read_object(r, kVolumeResources, resources);
     }},
    {"volumeName", [](const Reader& r, ClaimSpec& s) { r.read(s.volume_name); }},
    {"storageClassName", [](const Reader& r, ClaimSpec& s) { r.read(s.storage_class_name); }},
    {"volumeMode",
     [](const Reader& r, ClaimSpec& s) {
       read_choice(r, {"Block", "Filesystem"}, s.volume_mode);
     }},
    {"dataSource"},
    {"dataSourceRef"},
    {"volumeAttributesClassName", [](const Reader& r, ClaimSpec& s) { r.read(s.volume_attributes_class_name); }},
};

constexpr Field<std::string> kPhase[] = {
    {"phase", [](const Reader& r, std::string& phase) { r.read(phase); }},
    {"accessModes"},
    {"capacity"},
    {"conditions"},
    {"allocatedResources"},
    {"allocatedResourceStatuses"},
    {"currentVolumeAttributesClassName"},
    {"modifyVolumeStatus"},
    {"message"},
    {"reason"},
    {"lastPhaseTransitionTime"},
};

constexpr Field<PersistentVolumeClaim> kClaim[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, PersistentVolumeClaim& c) { read_object_meta(r, c.metadata); }},
    {"spec", [](const Reader& r, PersistentVolumeClaim& c) { read_claim_spec(r, c.spec); }},
    {"status", [](const Reader& r, PersistentVolumeClaim& c) { read_object(r, kPhase, c.phase); }},
};

// ---- volumes --------------------------------------------------------------------------------------------------------

constexpr Field<VolumeClaimReference> kReference[] = {
    {"kind"},
    {"namespace", [](const Reader& r, VolumeClaimReference& c) { r.read(c.namespace_name); }},
    {"name", [](const Reader& r, VolumeClaimReference& c) { r.read(c.name); }},
    {"uid", [](const Reader& r, VolumeClaimReference& c) { r.read(c.uid); }},
    {"apiVersion"},
    {"resourceVersion"},
    {"fieldPath"},
};

constexpr Field<PersistentVolume> kCsi[] = {
    {"driver", [](const Reader& r, PersistentVolume& v) { r.read(v.csi_driver); }},
    {"volumeHandle", [](const Reader& r, PersistentVolume& v) { r.read(v.csi_handle); }},
    {"readOnly"},
    {"fsType"},
    {"volumeAttributes"},
    {"controllerPublishSecretRef"},
    {"nodeStageSecretRef"},
    {"nodePublishSecretRef"},
    {"controllerExpandSecretRef"},
    {"nodeExpandSecretRef"},
};

constexpr Field<PersistentVolume> kVolumeAffinity[] = {
    {"required", [](const Reader& r, PersistentVolume& v) { read_node_selector(r, v.node_affinity.emplace()); }},
};

void read_volume_affinity(const Reader& reader, PersistentVolume& out) {
  read_object(reader, kVolumeAffinity, out);
  if (reader.strict() && !out.node_affinity && reader.sound("required"))
    reader.problem_at("required", required_value("must specify required node constraints"));
}

constexpr Field<PersistentVolume> kVolumeSpec[] = {
    {"capacity", [](const Reader& r, PersistentVolume& v) { read_storage(r, v.storage_bytes); }},
    {"gcePersistentDisk"},
    {"awsElasticBlockStore"},
    {"hostPath"},
    {"glusterfs"},
    {"nfs"},
    {"rbd"},
    {"iscsi"},
    {"cinder"},
    {"cephfs"},
    {"fc"},
    {"flocker"},
    {"flexVolume"},
    {"azureFile"},
    {"vsphereVolume"},
    {"quobyte"},
    {"azureDisk"},
    {"photonPersistentDisk"},
    {"portworxVolume"},
    {"scaleIO"},
    {"local"},
    {"storageos"},
    {"csi", [](const Reader& r, PersistentVolume& v) { read_object(r, kCsi, v); }},
    {"accessModes", [](const Reader& r, PersistentVolume& v) { read_access_modes(r, v.access_modes); }},
    {"claimRef", [](const Reader& r, PersistentVolume& v) { read_object(r, kReference, v.claim.emplace()); }},
    {"persistentVolumeReclaimPolicy"},
    {"storageClassName", [](const Reader& r, PersistentVolume& v) { r.read(v.storage_class_name); }},
    {"mountOptions"},
    {"volumeMode",
     [](const Reader& r, PersistentVolume& v) {
       read_choice(r, {"Block", "Filesystem"}, v.volume_mode);
     }},
    {"nodeAffinity", &read_volume_affinity},
    {"volumeAttributesClassName", [](const Reader& r, PersistentVolume& v) { r.read(v.volume_attributes_class_name); }},
};

constexpr Field<PersistentVolume> kVolume[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, PersistentVolume& v) { read_object_meta(r, v.metadata); }},
    {"spec", [](const Reader& r, PersistentVolume& v) { read_object(r, kVolumeSpec, v); }},
    {"status", [](const Reader& r, PersistentVolume& v) { read_object(r, kPhase, v.phase); }},
};

// ---- storage classes and CSI ----------------------------------------------------------------------------------------

constexpr Field<NodeSelectorRequirement> kTopologyRequirement[] = {
    {"key", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.key); }},
    {"values", [](const Reader& r, NodeSelectorRequirement& x) { r.read(x.values); }},
};
void read_topology_requirement(const Reader& reader, NodeSelectorRequirement& out) {
  read_object(reader, kTopologyRequirement, out);
}
constexpr Field<NodeSelectorTerm> kTopologyTerm[] = {
    {"matchLabelExpressions",
     [](const Reader& r, NodeSelectorTerm& t) { read_list(r, t.match_expressions, &read_topology_requirement); }},
};
void read_topology_term(const Reader& reader, NodeSelectorTerm& out) { read_object(reader, kTopologyTerm, out); }

constexpr Field<StorageClass> kStorageClass[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, StorageClass& c) { read_object_meta(r, c.metadata); }},
    {"provisioner", [](const Reader& r, StorageClass& c) { r.read(c.provisioner); }},
    {"parameters"},
    {"reclaimPolicy"},
    {"mountOptions"},
    {"allowVolumeExpansion"},
    {"volumeBindingMode",
     [](const Reader& r, StorageClass& c) {
       read_choice(r, {"Immediate", "WaitForFirstConsumer"}, c.volume_binding_mode);
     }},
    {"allowedTopologies",
     [](const Reader& r, StorageClass& c) { read_list(r, c.allowed_topologies, &read_topology_term); }},
};

constexpr Field<CsiNode::Driver> kAllocatable[] = {
    {"count", [](const Reader& r, CsiNode::Driver& d) { r.read(d.count); }},
};
constexpr Field<CsiNode::Driver> kNodeDriver[] = {
    {"name", [](const Reader& r, CsiNode::Driver& d) { r.read(d.name); }},
    {"nodeID"},
    {"topologyKeys"},
    {"allocatable", [](const Reader& r, CsiNode::Driver& d) { read_object(r, kAllocatable, d); }},
};
void read_node_driver(const Reader& reader, CsiNode::Driver& out) {
  read_object(reader, kNodeDriver, out);
  if (reader.strict() && out.name.empty()) reader.problem_at("name", required_value());
  if (reader.strict() && out.count.value_or(0) < 0)
    reader.problem_at("allocatable", invalid_value(std::to_string(*out.count), "must be greater than or equal to 0"));
}
constexpr Field<CsiNode> kCsiNodeSpec[] = {
    {"drivers", [](const Reader& r, CsiNode& n) { read_list(r, n.drivers, &read_node_driver); }},
};
constexpr Field<CsiNode> kCsiNode[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, CsiNode& n) { read_object_meta(r, n.metadata); }},
    {"spec", [](const Reader& r, CsiNode& n) { read_object(r, kCsiNodeSpec, n); }},
};

constexpr Field<CsiDriver> kCsiDriverSpec[] = {
    {"attachRequired"},
    {"podInfoOnMount"},
    {"volumeLifecycleModes"},
    {"storageCapacity", [](const Reader& r, CsiDriver& d) { r.read(d.storage_capacity); }},
    {"fsGroupPolicy"},
    {"tokenRequests"},
    {"requiresRepublish"},
    {"seLinuxMount"},
    {"nodeAllocatableUpdatePeriodSeconds"},
    {"serviceAccountTokenInSecrets"},
};
constexpr Field<CsiDriver> kCsiDriver[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, CsiDriver& d) { read_object_meta(r, d.metadata); }},
    {"spec", [](const Reader& r, CsiDriver& d) { read_object(r, kCsiDriverSpec, d); }},
};

constexpr Field<CsiStorageCapacity> kCapacity[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, CsiStorageCapacity& c) { read_object_meta(r, c.metadata); }},
    {"nodeTopology", [](const Reader& r, CsiStorageCapacity& c) { read_selector(r, c.node_topology); }},
    {"storageClassName", [](const Reader& r, CsiStorageCapacity& c) { r.read(c.storage_class_name); }},
    {"capacity", [](const Reader& r, CsiStorageCapacity& c) { read_bytes(r, c.capacity_bytes); }},
    {"maximumVolumeSize", [](const Reader& r, CsiStorageCapacity& c) { read_bytes(r, c.maximum_volume_bytes); }},
};

std::string class_name(const ObjectMeta& metadata, const std::string& field) {
  const std::string* beta = metadata.annotation(kBetaStorageClass);
  return beta == nullptr ? field : *beta;
}

}  // namespace

std::string PersistentVolumeClaim::storage_class() const {
  return class_name(metadata, spec.storage_class_name.value_or(""));
}
std::string PersistentVolume::storage_class() const { return class_name(metadata, storage_class_name); }
bool StorageClass::is_default() const {
  const std::string* value = metadata.annotation(kDefaultStorageClass);
  return value != nullptr && *value == "true";
}

void read_claim_spec(const Reader& reader, ClaimSpec& out) {
  read_object(reader, kClaimSpec, out);
  if (!reader.strict()) return;
  if (out.access_modes.empty() && reader.sound("accessModes"))
    reader.problem_at("accessModes", required_value("at least 1 access mode is required"));
  if (!reader.sound("resources")) return;
  if (!out.storage_bytes) reader.problem_at("resources", required_value("say how much: requests: {storage: 10Gi}"));
  else if (*out.storage_bytes == 0) reader.problem_at("resources", invalid_value("0", "must be greater than zero"));
}

void read_value(const Reader& reader, PersistentVolumeClaim& out) {
  read_object(reader, kClaim, out);
  check_object_meta(reader, out.metadata);
  require_spec(reader);
}

void read_value(const Reader& reader, PersistentVolume& out) {
  read_object(reader, kVolume, out);
  check_object_meta(reader, out.metadata);
  if (!reader.strict()) return;
  if (!has_member(reader, "spec")) return require_spec(reader);
  const bool capacity = reader.sound({"spec", "capacity"}), modes = reader.sound({"spec", "accessModes"});
  if (capacity && !out.storage_bytes)
    reader.problem_at("spec", required_value("say how much: capacity: {storage: 10Gi}"));
  if (capacity && out.storage_bytes == 0)
    reader.problem_below({"spec", "capacity", "storage"}, invalid_value("0", "must be greater than zero"));
  if (modes && out.access_modes.empty())
    reader.problem_at("spec", required_value("at least 1 access mode is required"));
}

void read_value(const Reader& reader, StorageClass& out) {
  read_object(reader, kStorageClass, out);
  check_object_meta(reader, out.metadata);
  if (reader.strict() && out.provisioner.empty() && reader.sound("provisioner"))
    reader.problem_at("provisioner", required_value("use kubernetes.io/no-provisioner for volumes made by hand"));
}

void read_value(const Reader& reader, CsiNode& out) {
  read_object(reader, kCsiNode, out);
  check_object_meta(reader, out.metadata);
}

void read_value(const Reader& reader, CsiDriver& out) {
  read_object(reader, kCsiDriver, out);
  check_object_meta(reader, out.metadata);
}

void read_value(const Reader& reader, CsiStorageCapacity& out) {
  read_object(reader, kCapacity, out);
  check_object_meta(reader, out.metadata);
  if (reader.strict() && out.storage_class_name.empty() && reader.sound("storageClassName"))
    reader.problem_at("storageClassName", required_value());
}

}  // namespace berth::api
