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
    for (const api::PersistentVolumeClaim& each : statefulset.claim_templates) {
      std::vector<api::ClaimVolume>& volumes = pod.spec.claim_volumes;
      const std::string& volume = each.metadata.name;
      std::erase_if(volumes, [&](const api::ClaimVolume& other) { return other.name == volume; });
      volumes.push_back({volume, volume + "-" + name, {}});
    }
    pods.push_back(std::move(pod));
  }
  return pods;
}

std::vector<api::PersistentVolumeClaim> statefulset_claims(const api::StatefulSet& statefulset) {
  std::vector<api::PersistentVolumeClaim> claims;
  for (int64_t i = 0; i < statefulset.replicas; ++i)
    for (const api::PersistentVolumeClaim& each : statefulset.claim_templates) {
      api::PersistentVolumeClaim& claim = claims.emplace_back(each);
      claim.metadata.namespace_name = statefulset.metadata.namespace_name;
      claim.metadata.name = each.metadata.name + "-" + std::string(base_name(statefulset.metadata)) + "-" +
                            std::to_string(statefulset.ordinals_start + i);
    }
  return claims;
}

}  // namespace berth::workloads
