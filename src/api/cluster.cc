#include "api/cluster.h"

#include <fmt/format.h>

#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

constexpr Field<Node> kNodeSpec[] = {
    {"podCIDR"},
    {"podCIDRs"},
    {"providerID", [](const Reader& r, Node& n) { r.read(n.provider_id); }},
    {"unschedulable", [](const Reader& r, Node& n) { r.read(n.unschedulable); }},
    {"taints", [](const Reader& r, Node& n) { read_list(r, n.taints, &read_taint); }},
    {"configSource"},
    {"externalID"},
};

void read_node_spec(const Reader& reader, Node& out) {
  read_object(reader, kNodeSpec, out);
  if (reader.strict()) check_taints(reader, out.taints);
}

constexpr Field<ContainerImage> kImage[] = {
    {"names", [](const Reader& r, ContainerImage& i) { r.read(i.names); }},
    {"sizeBytes", [](const Reader& r, ContainerImage& i) { r.read(i.size_bytes); }},
};

void read_image(const Reader& reader, ContainerImage& out) { read_object(reader, kImage, out); }

constexpr Field<Node> kNodeStatus[] = {
    {"capacity", [](const Reader& r, Node& n) { read_resource_list(r, ResourceScope::kNode, n.capacity); }},
    {"allocatable", [](const Reader& r, Node& n) { read_resource_list(r, ResourceScope::kNode, n.allocatable); }},
    {"phase"},
    {"conditions", [](const Reader& r, Node& n) { read_list(r, n.conditions, &read_condition); }},
    {"addresses"},
    {"daemonEndpoints"},
    {"nodeInfo"},
    {"images", [](const Reader& r, Node& n) { read_list(r, n.images, &read_image); }},
    {"volumesInUse"},
    {"volumesAttached"},
    {"config"},
    {"runtimeHandlers"},
    {"features"},
    {"declaredFeatures"},
};

constexpr Field<Node> kNode[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, Node& n) { read_object_meta(r, n.metadata); }},
    {"spec", &read_node_spec},
    {"status", [](const Reader& r, Node& n) { read_object(r, kNodeStatus, n); }},
};

constexpr Field<Namespace> kNamespace[] = {
    {"kind"}, {"apiVersion"}, {"metadata", [](const Reader& r, Namespace& n) { read_object_meta(r, n.metadata); }},
    {"spec"}, {"status"},
};

void read_preemption_policy(const Reader& reader, PriorityClass& out) {
  std::string_view text;
  if (!reader.read(text) || text.empty()) return;
  if (text == "PreemptLowerPriority" || text == "Never") out.preemption_policy.assign(text);
  else reader.problem(unsupported_value(text, {"Never", "PreemptLowerPriority"}));
}

constexpr Field<PriorityClass> kPriorityClass[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, PriorityClass& p) { read_object_meta(r, p.metadata); }},
    {"value", [](const Reader& r, PriorityClass& p) { r.read(p.value); }},
    {"globalDefault", [](const Reader& r, PriorityClass& p) { r.read(p.global_default); }},
    {"description"},
    {"preemptionPolicy", &read_preemption_policy},
};

constexpr Field<RuntimeClass> kOverhead[] = {
    {"podFixed",
     [](const Reader& r, RuntimeClass& c) { read_resource_list(r, ResourceScope::kContainer, c.overhead); }},
};
constexpr Field<RuntimeClass> kScheduling[] = {
    {"nodeSelector", [](const Reader& r, RuntimeClass& c) { read_label_map(r, c.node_selector); }},
    {"tolerations", [](const Reader& r, RuntimeClass& c) { read_list(r, c.tolerations, &read_toleration); }},
};
constexpr Field<RuntimeClass> kRuntimeClass[] = {
    {"kind"},
    {"apiVersion"},
    {"metadata", [](const Reader& r, RuntimeClass& c) { read_object_meta(r, c.metadata); }},
    {"handler"},
    {"overhead", [](const Reader& r, RuntimeClass& c) { read_object(r, kOverhead, c); }},
    {"scheduling", [](const Reader& r, RuntimeClass& c) { read_object(r, kScheduling, c); }},
};

}  // namespace

void read_value(const Reader& reader, Node& out) {
  read_object(reader, kNode, out);
  if (out.allocatable.empty()) out.allocatable = out.capacity;
  check_object_meta(reader, out.metadata);
}

void read_value(const Reader& reader, Namespace& out) {
  read_object(reader, kNamespace, out);
  check_object_meta(reader, out.metadata, &check_dns1123_label);
}

void read_value(const Reader& reader, RuntimeClass& out) {
  read_object(reader, kRuntimeClass, out);
  check_object_meta(reader, out.metadata);
  if (reader.strict() && !has_member(reader, "handler") && reader.sound("handler"))
    reader.problem_at("handler", required_value("name the handler of the container runtime"));
}

void read_value(const Reader& reader, PriorityClass& out) {
  read_object(reader, kPriorityClass, out);
  check_object_meta(reader, out.metadata);
  constexpr int32_t kUserPriorityMax = 1'000'000'000;
  if (reader.strict() && out.value > kUserPriorityMax && !out.metadata.name.starts_with("system-"))
    reader.problem_at("value", "Forbidden: maximum allowed value of a user defined priority is 1000000000");
  const bool of_the_system = (out.metadata.name == "system-node-critical" && out.value == 2'000'001'000) ||
                             (out.metadata.name == "system-cluster-critical" && out.value == 2'000'000'000);
  if (reader.strict() && out.metadata.name.starts_with("system-") && !of_the_system && reader.sound("value"))
    reader.problem_below({"metadata", "name"},
                         "Forbidden: names with the prefix system- are the system's own: system-node-critical "
                         "(2000001000) and system-cluster-critical (2000000000); choose another name");
}

}  // namespace berth::api
