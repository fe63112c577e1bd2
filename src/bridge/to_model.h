// to_model(): Kubernetes objects become the engine's plain values. Nothing else knows both.
//
// The daemon, the simulator and the tests all map through here, so that they cannot disagree on what a pod asks for.
// Pure functions; thread-safe.
#pragma once

#include <set>
#include <string>

#include "api/cluster.h"
#include "api/disruption_budget.h"
#include "api/pod.h"
#include "bridge/gpus.h"
#include "bridge/topology.h"
#include "engine/event.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::bridge {

// Annotation berth.dev/placement of pods and namespaces: "pack" or "spread"; anything else counts as absent.
inline constexpr std::string_view kPlacementAnnotation = "berth.dev/placement";
// Annotation berth.dev/preemptible of pods: "false" keeps a pod from being evicted for others, where the namespace lets
// its pods say so by berth.dev/allow-protected-pods: "true". Anything else counts as absent.
inline constexpr std::string_view kPreemptibleAnnotation = "berth.dev/preemptible";
inline constexpr std::string_view kAllowProtectedAnnotation = "berth.dev/allow-protected-pods";

// Which kubelet gives to the pods that stand for its static ones on the API server.
inline constexpr std::string_view kMirrorPodAnnotation = "kubernetes.io/config.mirror";

// Which pods are Berth's to schedule: by spec.schedulerName; empty: all.
using SchedulerNames = std::set<std::string, std::less<>>;

model::Pod to_model(const api::Pod& pod, const SchedulerNames& served,
                    const TopologyLevels& levels = default_topology_levels());
// Of GPUs no more are allocatable than an agent on the node calls healthy. A node whose devices_of() is an Error counts
// as if it had no agent; whoever can refuses such a node before.
model::Node to_model(const api::Node& node, DeviceKnowledge knowledge);
model::DisruptionBudget to_model(const api::PodDisruptionBudget& budget);
engine::NamespaceUpserted to_event(const api::Namespace& object);

// What is wrong with the object's annotations for Berth, as a sentence; empty when nothing is.
std::string annotation_problem(const api::ObjectMeta& metadata);

// True when the pod failed because the kubelet would not have it (reason OutOf…, UnexpectedAdmissionError, and the
// other admission failures that a scheduler can cause).
bool rejected_by_kubelet(const api::Pod& pod);

}  // namespace berth::bridge
