#include "api/decoders.h"
#include "api/names.h"

namespace berth::api {
namespace {

// Amounts that the kubelet reports: read as they are, without the rules for what users write.
void read_reported(const Reader& reader, model::ResourceList& out) {
  read_resource_list(reader, ResourceScope::kNode, out);
}

constexpr Field<ResourceRequirements> kReported[] = {
    {"limits", [](const Reader& r, ResourceRequirements& x) { read_reported(r, x.limits); }},
    {"requests", [](const Reader& r, ResourceRequirements& x) { read_reported(r, x.requests); }},
    {"claims"},
};

constexpr Field<ContainerStatus> kContainerStatus[] = {
    {"name", [](const Reader& r, ContainerStatus& s) { r.read(s.name); }},
    {"state"},
    {"lastState"},
    {"ready"},
    {"restartCount"},
    {"image"},
    {"imageID"},
    {"containerID"},
    {"started"},
    {"allocatedResources", [](const Reader& r, ContainerStatus& s) { read_reported(r, s.allocated); }},
    {"resources", [](const Reader& r, ContainerStatus& s) { read_object(r, kReported, s.resources.emplace()); }},
    {"volumeMounts"},
    {"user"},
    {"allocatedResourcesStatus"},
    {"stopSignal"},
};

void read_container_status(const Reader& reader, ContainerStatus& out) { read_object(reader, kContainerStatus, out); }

void read_phase(const Reader& reader, PodStatus& out) {
  if (!reader.read(out.phase) || !reader.strict()) return;
  for (const std::string_view phase : {"", "Pending", "Running", "Succeeded", "Failed", "Unknown"})
    if (out.phase == phase) return;
  reader.problem(unsupported_value(out.phase, {"Failed", "Pending", "Running", "Succeeded", "Unknown"}));
}

constexpr Field<PodStatus> kPodStatus[] = {
    {"observedGeneration"},
    {"phase", &read_phase},
    {"conditions", [](const Reader& r, PodStatus& s) { read_list(r, s.conditions, &read_condition); }},
    {"message", [](const Reader& r, PodStatus& s) { r.read(s.message); }},
    {"reason", [](const Reader& r, PodStatus& s) { r.read(s.reason); }},
    {"nominatedNodeName", [](const Reader& r, PodStatus& s) { r.read(s.nominated_node_name); }},
    {"hostIP"},
    {"hostIPs"},
    {"podIP"},
    {"podIPs"},
    {"startTime", [](const Reader& r, PodStatus& s) { r.read(s.start_time); }},
    {"initContainerStatuses",
     [](const Reader& r, PodStatus& s) { read_list(r, s.init_containers, &read_container_status); }},
    {"containerStatuses", [](const Reader& r, PodStatus& s) { read_list(r, s.containers, &read_container_status); }},
    {"qosClass"},
    {"ephemeralContainerStatuses"},
    {"resize"},
    {"resourceClaimStatuses"},
    {"extendedResourceClaimStatus"},
    {"allocatedResources", [](const Reader& r, PodStatus& s) { read_reported(r, s.allocated); }},
    {"resources", [](const Reader& r, PodStatus& s) { read_object(r, kReported, s.resources.emplace()); }},
};

}  // namespace

const Condition* PodStatus::condition(std::string_view type) const {
  for (const Condition& condition : conditions)
    if (condition.type == type) return &condition;
  return nullptr;
}

void read_pod_status(const Reader& reader, PodStatus& out) { read_object(reader, kPodStatus, out); }

}  // namespace berth::api
