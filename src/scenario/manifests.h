// Manifests: what a user would give to `kubectl apply`, decoded, checked against one another and ready to be submitted.
//
// api/decode.h checks each object by itself; here comes what the API server would only find in the company of the
// others (a second object of the same name, a PriorityClass that is not there), what the simulator asks of its own
// annotations, and the defaults that a server fills in (the namespace, the priority). All problems of a run are
// collected. Pure functions on text; no I/O.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/decode.h"
#include "api/document.h"
#include "base/time.h"
#include "bridge/topology.h"
#include "scenario/priority_classes.h"

namespace berth::queueing {
struct SeenWorkload;
}

namespace berth::scenario {

// On pods and on what makes pods, as Go durations; see docs/simulate.md. kSimulatedArrival also on nodes.
inline constexpr std::string_view kSimulatedArrival =
    "berth.dev/simulated-arrival";                                                // when it is submitted, from t = 0
inline constexpr std::string_view kSimulatedReady = "berth.dev/simulated-ready";  // so long after its start; or
inline constexpr std::string_view kNeverReady = "never";
inline constexpr std::string_view kSimulatedRuntime = "berth.dev/simulated-runtime";  // what it really takes

// On nodes: how long it takes to cut their GPUs anew.
inline constexpr std::string_view kSimulatedRepartition = "berth.dev/simulated-repartition";

// Longest arrival or runtime; longer activeDeadlineSeconds count as none.
inline constexpr Duration kSimulatedDurationMax = Duration::seconds(10 * 365 * 86'400);
// Most pods that one run makes from workloads.
inline constexpr int64_t kSimulatedPodsMax = 1'000'000;

struct Manifest {
  api::Object object;
  std::string file;
  int line = 0;
  std::shared_ptr<const queueing::SeenWorkload> stored = {};  // what its queue knows of it: scenario/stored_work.h
};

struct ManifestFile {
  std::string name;
  std::string text;
};

// The objects of `files`, in order, but work that a cluster has stored in the order of its creation. `classes` gains
// their PriorityClasses. Whatever has problems, which are appended, is left out. `notes` are sentences about what is
// understood but has no effect here.
std::vector<Manifest> read_manifests(const std::vector<ManifestFile>& files, PriorityClasses& classes,
                                     api::Problems& problems, std::vector<std::string>& notes,
                                     const bridge::TopologyLevels& levels = bridge::default_topology_levels());
// The same from documents that were already taken apart.
std::vector<Manifest> decode_manifests(const std::vector<api::Document>& documents, PriorityClasses& classes,
                                       api::Problems& problems, std::vector<std::string>& notes,
                                       const bridge::TopologyLevels& levels = bridge::default_topology_levels());

// "namespace/name".
inline std::string pod_name(const api::Pod& pod) { return pod.metadata.namespace_name + "/" + pod.metadata.name; }
// The pod template of a workload, or the pod's own spec: null for other kinds.
api::PodSpec* pod_spec_of(api::Object& object);
// "Pod default/train"; "Node gpu-1".
std::string describe(const api::Object& object);
// The duration that the annotation names on the object itself, else on its pod template; none without it. Values were
// checked when the manifest was read.
std::optional<Duration> simulated(const api::Object& object, std::string_view annotation);

}  // namespace berth::scenario
