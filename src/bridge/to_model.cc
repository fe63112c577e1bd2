#include "bridge/to_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "api/kueue_names.h"
#include "api/requests.h"
#include "api/runtime_estimate.h"
#include "api/topology_request.h"
#include "base/printable.h"
#include "bridge/devices.h"
#include "bridge/mig.h"
#include "bridge/mig_facts.h"
#include "bridge/peers.h"
#include "bridge/volumes.h"

namespace berth::bridge {
namespace {

model::Placement placement_of(const api::ObjectMeta& metadata) {
  const std::string* wish = metadata.annotation(kPlacementAnnotation);
  if (wish == nullptr) return model::Placement::kDefault;
  if (*wish == "pack") return model::Placement::kPack;
  return *wish == "spread" ? model::Placement::kSpread : model::Placement::kDefault;
}

// True and false as an annotation says them; nothing for any other value.
std::optional<bool> flag_of(const api::ObjectMeta& metadata, std::string_view annotation) {
  const std::string* value = metadata.annotation(annotation);
  if (value == nullptr || (*value != "true" && *value != "false")) return std::nullopt;
  return *value == "true";
}

// A name with neither tag nor digest means the tag latest (normalizedImageName in kube-scheduler's ImageLocality).
std::string with_tag(const std::string& image) {
  const size_t colon = image.rfind(':'), slash = image.rfind('/');
  const bool tagged = colon != std::string::npos && (slash == std::string::npos || colon > slash);
  return tagged ? image : image + ":latest";
}

std::vector<std::string> images_of(const api::PodSpec& spec) {
  std::vector<std::string> out;
  for (const auto* containers : {&spec.init_containers, &spec.containers})
    for (const api::Container& container : *containers)
      if (!container.image.empty()) out.push_back(with_tag(container.image));
  std::sort(out.begin(), out.end());
  return out;
}

std::shared_ptr<model::SchedulingSpec> scheduling_spec(const api::Pod& pod) {
  auto spec = std::make_shared<model::SchedulingSpec>();
  spec->requests = api::effective_requests(pod);
  spec->gpu_share = gpu_share_of(pod.metadata, spec->requests);
  spec->node_selector = pod.spec.node_selector;
  spec->affinity = pod.spec.node_affinity;
  spec->tolerations = pod.spec.tolerations;
  spec->host_ports = api::host_ports(pod.spec);
  spec->peers = peers_of(pod);
  spec->images = images_of(pod.spec);
  spec->claims = claims_of(pod);
  spec->resource_claims = pod.spec.has_resource_claims;
  return spec;
}

}  // namespace

std::string annotation_problem(const api::ObjectMeta& metadata) {
  const auto sentence = [](std::string_view name, const std::string& value, std::string_view why) {
    return "annotation " + std::string(name) + ": '" + printable(value) + "' is neither " + std::string(why);
  };
  const std::string* wish = metadata.annotation(kPlacementAnnotation);
  if (wish != nullptr && *wish != "pack" && *wish != "spread")
    return sentence(kPlacementAnnotation, *wish, "pack nor spread; the default holds");
  for (const std::string_view name : {kPreemptibleAnnotation, kAllowProtectedAnnotation})
    if (const std::string* value = metadata.annotation(name); value != nullptr && !flag_of(metadata, name))
      return sentence(name, *value, "true nor false; it has no effect");
  if (const std::string* estimate = metadata.annotation(api::kRuntimeEstimateAnnotation); estimate != nullptr)
    if (const std::string wrong = api::runtime_estimate_problem(*estimate); !wrong.empty())
      return "annotation " + std::string(api::kRuntimeEstimateAnnotation) + ": " + wrong + "; it has no effect";
  return "";
}

bool rejected_by_kubelet(const api::Pod& pod) {
  if (pod.status.phase != "Failed") return false;
  const std::string& reason = pod.status.reason;
  return reason.starts_with("OutOf") || reason == "UnexpectedAdmissionError" || reason == "NodeAffinity" ||
         reason == "TopologyAffinityError";
}

model::Pod to_model(const api::Pod& pod, const SchedulerNames& served, const TopologyLevels& levels) {
  model::Pod out;
  out.uid = pod.metadata.uid;
  out.namespace_name = pod.metadata.namespace_name;
  out.name = pod.metadata.name;
  out.generation = pod.metadata.generation;
  out.priority = pod.spec.priority.value_or(0);
  out.preempts = pod.spec.preemption_policy != "Never";
  out.preemptible = flag_of(pod.metadata, kPreemptibleAnnotation).value_or(true);
  out.created = pod.metadata.created.value_or(Time{});
  out.started = pod.status.start_time.value_or(Time{});
  out.runtime = api::declared_runtime(pod.metadata, pod.spec.active_deadline_s);
  out.restarts = pod.spec.restart_policy == "Always";
  const auto spec = scheduling_spec(pod);
  model::Labels labels = pod.metadata.labels;
  add_topology(pod.metadata, levels, labels, spec->peers);
  if (!labels.empty()) out.labels = std::make_shared<const model::Labels>(std::move(labels));
  out.spec = spec;
  out.placement = placement_of(pod.metadata);
  out.node_name = pod.spec.node_name;
  if (!out.node_name.empty()) out.gpu_devices = gpu_devices_of(pod.metadata);
  out.nominated_node = pod.status.nominated_node_name;
  out.ours = served.empty() || served.contains(pod.spec.scheduler_name);
  out.gated = !pod.spec.scheduling_gates.empty();
  out.terminating = pod.metadata.deleted.has_value();
  out.terminal = pod.terminal();
  out.rejected_by_kubelet = rejected_by_kubelet(pod);
  out.daemon = pod.metadata.annotation(kMirrorPodAnnotation) != nullptr;
  if (const api::OwnerReference* owner = pod.metadata.controller()) {
    out.owner_uid = owner->uid;
    out.of_job = owner->kind == "Job" && owner->api_version.starts_with("batch/");
    out.daemon |= owner->kind == "DaemonSet";
  }
  const std::string* workload = pod.metadata.annotation(api::kWorkloadAnnotation);
  if (workload != nullptr) {
    out.workload = out.namespace_name + "/" + *workload;
    const std::string* group = pod.metadata.labels.find(api::kGroupLabel);
    out.in_group = group != nullptr && *group == *workload;
  }
  if (workload != nullptr || out.of_job) {
    if (const std::string* set = pod.metadata.labels.find(api::kPodSetLabel); set != nullptr) out.pod_set = *set;
    out.index = api::pod_index(pod.metadata);
  }
  return out;
}

model::Node to_model(const api::Node& node, DeviceKnowledge knowledge) {
  model::Node out;
  out.name = node.metadata.name;
  out.uid = node.metadata.uid;
  out.labels = node.metadata.labels;
  out.taints = node.taints;
  out.unschedulable = node.unschedulable;
  out.capacity = node.capacity;
  out.allocatable = node.allocatable;
  out.mig = mig_of(node, knowledge).value_or(model::DynamicMig{});
  out.gpus = gpus_of(node, knowledge, static_cast<bool>(out.mig));
  if (auto told = devices_of(node); !told) {
    out.set_aside = fmt::format("annotation {}: {}", kDevicesAnnotation, told.error().message);
  } else if (*told) {
    for (const auto& [resource, amount] : (*told)->allocatable) out.allocatable.set(resource, amount);
    bound_shares((*told)->devices, out.gpus);
    out.devices = std::move((*told)->devices);
  }
  out.cut_by_others = mig_manager_cuts(node);
  out.mig_problem = mig_facts_problem(node, out.devices);
  for (const api::ContainerImage& image : node.images)
    for (const std::string& name : image.names) out.images.emplace_back(name, image.size_bytes);
  std::sort(out.images.begin(), out.images.end());
  return out;
}

model::DisruptionBudget to_model(const api::PodDisruptionBudget& budget) {
  return {budget.metadata.namespace_name, budget.metadata.name, budget.selector, budget.disruptions_allowed,
          budget.disrupted_pods};
}

engine::NamespaceUpserted to_event(const api::Namespace& object) {
  return {object.metadata.name, placement_of(object.metadata), object.metadata.labels,
          flag_of(object.metadata, kAllowProtectedAnnotation).value_or(false)};
}

}  // namespace berth::bridge
