#include "bridge/queues.h"

#include <algorithm>

#include "api/kueue_names.h"
#include "api/queue_limits.h"
#include "api/runtime_estimate.h"
#include "api/topology_request.h"
#include "api/victim_terms.h"
#include "bridge/to_model.h"
#include "model/quantity.h"

namespace berth::bridge {
namespace {

// What the Workload declares, or what its pods do, which start together, if each of them does.
std::optional<Duration> runtime_of(const api::Workload& workload) {
  std::optional<int64_t> limit;
  if (workload.max_execution_s) limit = *workload.max_execution_s;
  if (const auto own = api::declared_runtime(workload.metadata, limit)) return own;
  std::optional<Duration> longest;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    const auto one = api::declared_runtime(set.pod_template.metadata, set.pod_template.spec.active_deadline_s);
    if (!one) return std::nullopt;
    longest = std::max(longest.value_or(*one), *one);
  }
  return longest;
}

// Of pods of a template that names a node no scheduler is asked about any other.
void bind_to_named_node(api::PodSpec& spec) {
  if (spec.node_name.empty()) return;
  const model::NodeSelectorRequirement named{"metadata.name", model::NodeSelectorOperator::kIn, {spec.node_name}};
  spec.node_name.clear();
  auto& required = spec.node_affinity.required;
  if (!required) required.emplace(1, model::NodeSelectorTerm{{}, {named}});
  else
    for (model::NodeSelectorTerm& term : *required)  // one that asks nothing matches no node, and is not to match this
      if (!term.match_expressions.empty() || !term.match_fields.empty()) term.match_fields.push_back(named);
}

// What a pod of the set is told when it is let in. Of work without a controller the pods are a group.
void let_in(const api::Workload& workload, const std::string& set, api::Pod& pod) {
  pod.metadata.owners = workload.metadata.owners;
  pod.metadata.labels.set(std::string(api::kPodSetLabel), set);
  pod.metadata.annotations.set(std::string(api::kWorkloadAnnotation), workload.metadata.name);
  if (pod.metadata.controller() == nullptr && !pod.metadata.labels.contains(api::kGroupLabel))
    pod.metadata.labels.set(std::string(api::kGroupLabel), workload.metadata.name);
}

// A pod as the set will have it.
api::Pod pod_of(const api::Workload& workload, const api::WorkloadPodSet& set, const std::string& namespace_name) {
  api::Pod pod;
  pod.spec = set.pod_template.spec;
  pod.metadata = set.pod_template.metadata;
  pod.metadata.namespace_name = namespace_name;
  let_in(workload, set.name, pod);
  const std::vector<api::OwnerReference>& owners = workload.metadata.owners;
  if (std::ranges::none_of(owners, [](const api::OwnerReference& owner) { return owner.kind == "Pod"; })) {
    bind_to_named_node(pod.spec);
    std::erase_if(pod.spec.claim_volumes,  // of which nobody can be made before its pod is there
                  [](const api::ClaimVolume& volume) { return volume.made.has_value(); });
  }
  return pod;
}

// A share of a GPU asks for no resource, and counts as its part of one.
model::ResourceList counted_by_quota(const model::SchedulingSpec& spec) {
  model::ResourceList out;
  for (const auto& [resource, amount] : spec.requests) out.set(resource, model::to_quota(resource, amount));
  const int64_t micros = spec.gpu_share.memory_bytes > 0 ? model::kWholeGpu : spec.gpu_share.micros;
  if (micros > 0) out.add(model::kWholeGpuResource, micros);
  return out;
}

}  // namespace

model::Workload to_model(const api::Workload& workload, const TopologyLevels& levels) {
  model::Workload out;
  out.namespace_name = workload.metadata.namespace_name.empty() ? "default" : workload.metadata.namespace_name;
  out.name = workload.metadata.name;
  out.uid = workload.metadata.uid;
  out.queue = workload.queue_name;
  out.priority = workload.priority;
  out.created = workload.metadata.created.value_or(Time{});
  out.active = workload.active;
  out.of_group = workload.metadata.annotation(api::kIsGroupAnnotation) != nullptr;
  if (workload.max_execution_s) out.max_execution = Duration::seconds(*workload.max_execution_s);
  out.runtime = runtime_of(workload);
  out.checkpoints = api::checkpoints_of(workload.metadata);
  out.user = api::user_of(workload.metadata);
  out.past_execution = Duration::seconds(std::max(0, workload.past_execution_s));
  if (const api::OwnerReference* owner = workload.metadata.controller(); owner != nullptr) out.owner_uid = owner->uid;
  for (const api::WorkloadPodSet& set : workload.pod_sets) {
    const api::Pod pod = pod_of(workload, set, out.namespace_name);
    model::PodSet& pods = out.pod_sets.emplace_back();
    pods.name = set.name;
    pods.count = set.count;
    pods.min_count = set.min_count;
    pods.reclaimable = set.reclaimable;
    pods.node_selector = pod.spec.node_selector;
    pods.required_affinity = pod.spec.node_affinity.required;
    pods.tolerations = pod.spec.tolerations;
    model::Pod stands_for = to_model(pod, {}, levels);
    pods.requests = counted_by_quota(*stands_for.spec);  // `pods` among them, which counts where a queue covers it
    if (auto slices = slices_of(pod.metadata, set.count)) {
      pods.slices = *std::move(slices);
    } else {
      auto spec = std::make_shared<model::SchedulingSpec>(*stands_for.spec);
      spec->peers.problem = slices.error().message;
      stands_for.spec = std::move(spec);
    }
    pods.spec = stands_for.spec;
    pods.labels = stands_for.labels;
  }
  return out;
}

void name_members(model::PodSet& set, const api::Workload& workload, const std::vector<const api::Pod*>& pods,
                  const TopologyLevels& levels) {
  set.members.clear();
  for (const api::Pod* one : pods) {
    api::Pod pod = *one;
    let_in(workload, set.name, pod);
    const model::Pod seen = to_model(pod, {}, levels);
    set.members.push_back({seen.uid, seen.spec, seen.labels});
  }
}

}  // namespace berth::bridge
