#include "workloads/template.h"

namespace berth::workloads {
namespace {

// What is said of a run, for simulation only. No controller copies its annotations to its pods.
constexpr std::string_view kSimulated = "berth.dev/simulated-";

}  // namespace

std::string_view base_name(const api::ObjectMeta& metadata) {
  if (!metadata.name.empty()) return metadata.name;
  std::string_view name = metadata.generate_name;
  if (name.ends_with('-')) name.remove_suffix(1);
  return name;
}

api::Pod pod_from_template(const api::PodTemplate& pod_template, const api::ObjectMeta& owner,
                           std::string_view api_version, std::string_view kind, std::string name) {
  api::Pod pod;
  pod.metadata.name = std::move(name);
  pod.metadata.namespace_name = owner.namespace_name;
  pod.metadata.created = owner.created;
  pod.metadata.labels = pod_template.metadata.labels;
  pod.metadata.annotations = pod_template.metadata.annotations;
  for (const auto& [key, value] : owner.annotations)
    if (key.starts_with(kSimulated) && !pod.metadata.annotations.contains(key))
      pod.metadata.annotations.set(key, value);
  pod.metadata.owners.push_back(
      {std::string(api_version), std::string(kind), std::string(base_name(owner)), owner.uid, true});
  pod.spec = pod_template.spec;
  return pod;
}

std::vector<api::Pod> replicas_from_template(const api::PodTemplate& pod_template, const api::ObjectMeta& owner,
                                             std::string_view api_version, std::string_view kind, int32_t count) {
  std::vector<api::Pod> pods;
  for (int32_t i = 0; i < count; ++i)
    pods.push_back(pod_from_template(pod_template, owner, api_version, kind,
                                     std::string(base_name(owner)) + "-" + std::to_string(i)));
  return pods;
}

}  // namespace berth::workloads
