#include "workloads/statefulset/statefulset.h"

#include "workloads/template.h"

namespace berth::workloads {

std::vector<api::Pod> statefulset_pods(const api::StatefulSet& statefulset) {
  std::vector<api::Pod> pods;
  for (int64_t i = 0; i < statefulset.replicas; ++i) {
    const std::string ordinal = std::to_string(statefulset.ordinals_start + i);
    const std::string name = std::string(base_name(statefulset.metadata)) + "-" + ordinal;
    api::Pod pod = pod_from_template(statefulset.pod_template, statefulset.metadata, "apps/v1", "StatefulSet", name);
    pod.metadata.labels.set("apps.kubernetes.io/pod-index", ordinal);
    pod.metadata.labels.set("statefulset.kubernetes.io/pod-name", name);
    pods.push_back(std::move(pod));
  }
  return pods;
}

}  // namespace berth::workloads
