// Decoders: one function per API type, composed by those above it. Internal to src/api.
//
// Each reads `reader`'s object into `out` and reports problems as it goes; when strict it also checks what the API
// server would. Tables hold every field of Kubernetes 1.35; those without a function are known and not read.
#pragma once

#include "api/cluster.h"
#include "api/controllers.h"
#include "api/disruption_budget.h"
#include "api/kueue.h"
#include "api/limits.h"
#include "api/names.h"
#include "api/pod.h"
#include "api/reader.h"
#include "api/volumes.h"

namespace berth::api {

// Calls `use` with the reader of a member, where there is one.
template <typename Use>
void with_member(const Reader& object, std::string_view key, const Use& use) {
  for (Members members(object); members.next();)
    if (members.key() == key) use(members.value());
}

void read_object_meta(const Reader& reader, ObjectMeta& out);
// An object of a kind that is_kueue_kind() knows.
KueueObject read_kueue_object(const Reader& reader, const Document& document);
// When strict: the object has metadata with a name (or generateName) that the API server would take. `check_name`: the
// rule for names of its kind, one of api/names.h.
using NameCheck = std::string (*)(std::string_view name);
void check_object_meta(const Reader& object, const ObjectMeta& metadata,
                       NameCheck check_name = &check_dns1123_subdomain);

void read_condition(const Reader& reader, Condition& out);

// Amounts by resource name. `what` chooses the rules for names: of containers, pod level, overhead or nodes.
enum class ResourceScope { kContainer, kPod, kNode };
void read_resource_list(const Reader& reader, ResourceScope scope, model::ResourceList& out);
// That huge pages come with cpu or memory, which may be among the `defaults` of the requests.
void check_huge_pages(const Reader& reader, const ResourceRequirements& requirements,
                      const model::ResourceList& defaults);
// requests and limits; requests default to limits, as the API server does.
void read_container_resources(const Reader& reader, ResourceRequirements& out);
void read_pod_resources(const Reader& reader, ResourceRequirements& out);

// Labels, or matchLabels: keys and values are checked when strict.
void read_label_map(const Reader& reader, model::Labels& out);
void read_label_selector(const Reader& reader, model::LabelSelector& out);
// Requirements of node selectors, on labels and on fields. The API server checks the values in required terms only.
void read_node_expression(const Reader& reader, model::NodeSelectorRequirement& out);
void read_field_requirement(const Reader& reader, model::NodeSelectorRequirement& out);
void check_label_values(const Reader& reader, const model::NodeSelectorRequirement& requirement);
void read_pod_affinity(const Reader& reader, PodAffinity& out);
void read_topology_spread(const Reader& reader, std::vector<TopologySpreadConstraint>& out);
void read_node_selector(const Reader& reader, std::vector<model::NodeSelectorTerm>& out);
void read_node_affinity(const Reader& reader, model::NodeAffinity& out);
void read_toleration(const Reader& reader, model::Toleration& out);
void read_taint(const Reader& reader, model::Taint& out);
void check_taints(const Reader& spec, const std::vector<model::Taint>& taints);

void read_container(const Reader& reader, Container& out);
// What the API server checks across a pod's fields: names, host ports, pod-level resources. For strict readers.
void check_pod_spec(const Reader& reader, const PodSpec& spec);
// No key of matchLabelKeys twice in the selector that the API server makes with the labels of `pod`, a Pod or a
// template, which it does as it stores a pod.
void check_match_label_keys(const Reader& pod, const PodSpec& spec, const model::Labels& labels);
void read_pod_spec(const Reader& reader, PodSpec& out);
// The names of all fields of a pod's spec, and of the spec of a kind that makes pods; none for other kinds.
std::vector<std::string_view> pod_spec_fields();
std::vector<std::string_view> workload_spec_fields(std::string_view kind);
void read_pod_status(const Reader& reader, PodStatus& out);
void read_pod_template(const Reader& reader, PodTemplate& out);

// Reports, when strict, an object without a spec.
void require_spec(const Reader& object);

// Whole objects.
void read_value(const Reader& reader, Pod& out);
void read_value(const Reader& reader, Node& out);
void read_value(const Reader& reader, Namespace& out);
void read_value(const Reader& reader, PriorityClass& out);
void read_value(const Reader& reader, RuntimeClass& out);
void read_value(const Reader& reader, Job& out);
void read_value(const Reader& reader, CronJob& out);
void read_value(const Reader& reader, Deployment& out);
void read_value(const Reader& reader, ReplicaSet& out);
void read_value(const Reader& reader, StatefulSet& out);
void read_value(const Reader& reader, DaemonSet& out);
void read_value(const Reader& reader, PersistentVolumeClaim& out);
void read_value(const Reader& reader, PersistentVolume& out);
void read_value(const Reader& reader, StorageClass& out);
void read_value(const Reader& reader, CsiNode& out);
void read_value(const Reader& reader, CsiDriver& out);
void read_value(const Reader& reader, CsiStorageCapacity& out);
void read_value(const Reader& reader, PodDisruptionBudget& out);
void read_value(const Reader& reader, ResourceQuota& out);
void read_value(const Reader& reader, LimitRange& out);

// spec of a PersistentVolumeClaim, also in an ephemeral volume's template.
void read_claim_spec(const Reader& reader, ClaimSpec& out);

}  // namespace berth::api
