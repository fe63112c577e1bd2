#include "workloads/replicaset/replicaset.h"

#include "workloads/template.h"

namespace berth::workloads {

std::vector<api::Pod> replicaset_pods(const api::ReplicaSet& replicaset) {
  return replicas_from_template(replicaset.pod_template, replicaset.metadata, "apps/v1", "ReplicaSet",
                                replicaset.replicas);
}

}  // namespace berth::workloads
