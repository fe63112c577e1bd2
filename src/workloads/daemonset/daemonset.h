// DaemonSet: one pod on every node that it may run on.
// Source: k8s.io/kubernetes/pkg/controller/daemon (NodeShouldRunDaemonPod,
// util.ReplaceDaemonSetPodNodeNameNodeAffinity, util.AddOrUpdateDaemonPodTolerations).
#pragma once

#include <span>
#include <vector>

#include "api/cluster.h"
#include "api/controllers.h"

namespace berth::workloads {

// A pod "agent-NODE" for each node that its node selector, affinity and tolerations allow, bound to it by a required
// affinity on metadata.name, with the tolerations that the real controller adds. In the order of `nodes`.
std::vector<api::Pod> daemonset_pods(const api::DaemonSet& daemonset, std::span<const api::Node> nodes);

}  // namespace berth::workloads
