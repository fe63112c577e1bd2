// StatefulSet: numbered pods, "db-0", "db-1", … from its first ordinal, each with its index as a label.
// Source: k8s.io/kubernetes/pkg/controller/statefulset (newStatefulSetPod).
#pragma once

#include <vector>

#include "api/controllers.h"

namespace berth::workloads {

std::vector<api::Pod> statefulset_pods(const api::StatefulSet& statefulset);

// The claims that its volumeClaimTemplates make for these pods: "<template>-<pod>".
std::vector<api::PersistentVolumeClaim> statefulset_claims(const api::StatefulSet& statefulset);

}  // namespace berth::workloads
