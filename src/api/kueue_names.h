// Names of labels, annotations and gates by which work and Kueue's objects refer to one another.
// Source: https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/.
#pragma once

#include <string_view>

namespace berth::api {

// On Jobs and pods.
inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kPriorityClassLabel = "kueue.x-k8s.io/priority-class";  // a WorkloadPriorityClass
inline constexpr std::string_view kMinParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism";
inline constexpr std::string_view kMaxExecutionLabel = "kueue.x-k8s.io/max-exec-time-seconds";
inline constexpr std::string_view kInUseFinalizer = "kueue.x-k8s.io/resource-in-use";
inline constexpr std::string_view kManagedLabel = "kueue.x-k8s.io/managed";  // and the finalizer
inline constexpr std::string_view kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr std::string_view kTopologyGate =
    "kueue.x-k8s.io/topology";  // which Kueue adds where a topology is asked
inline constexpr std::string_view kGroupLabel = "kueue.x-k8s.io/pod-group-name";
inline constexpr std::string_view kGroupCountAnnotation = "kueue.x-k8s.io/pod-group-total-count";
inline constexpr std::string_view kFastAdmissionAnnotation = "kueue.x-k8s.io/pod-group-fast-admission";
inline constexpr std::string_view kRetriableAnnotation = "kueue.x-k8s.io/retriable-in-group";
inline constexpr std::string_view kRoleHashAnnotation = "kueue.x-k8s.io/role-hash";

// On pods and templates: the pods of a set are all in one domain of this node label, must be or should be.
inline constexpr std::string_view kRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-required-topology";
inline constexpr std::string_view kPreferredTopologyAnnotation = "kueue.x-k8s.io/podset-preferred-topology";
// Sets with the same group are in one domain.
inline constexpr std::string_view kSetGroupAnnotation = "kueue.x-k8s.io/podset-group-name";
// Parts of a set, by their size, are in one domain each; or the same for up to three levels, as JSON.
inline constexpr std::string_view kSliceTopologyAnnotation = "kueue.x-k8s.io/podset-slice-required-topology";
inline constexpr std::string_view kSliceSizeAnnotation = "kueue.x-k8s.io/podset-slice-size";
inline constexpr std::string_view kSliceLayersAnnotation = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
// Which label numbers the pods of a group, whose own is kGroupIndexLabel, and where the numbers begin.
inline constexpr std::string_view kGroupIndexLabelAnnotation = "kueue.x-k8s.io/pod-group-pod-index-label";
inline constexpr std::string_view kGroupIndexLabel = "kueue.x-k8s.io/pod-group-pod-index";
inline constexpr std::string_view kIndexOffsetAnnotation = "kueue.x-k8s.io/pod-index-offset";

// On Jobs, pods and Workloads: what comes after the slash is a parameter of their ProvisioningRequests.
inline constexpr std::string_view kProvisioningParameterPrefix = "provreq.kueue.x-k8s.io/";

// On Workloads of pod groups.
inline constexpr std::string_view kIsGroupAnnotation = "kueue.x-k8s.io/is-group-workload";

// On the pods of an admitted workload.
inline constexpr std::string_view kWorkloadAnnotation = "kueue.x-k8s.io/workload";
// The LocalQueue of a namespace in which Jobs wait that name none (Kueue's LocalQueueDefaulting).
inline constexpr std::string_view kDefaultLocalQueue = "default";
// On a Job or pod that was evicted: when, why and for whom, the last time. Berth writes it and reads nothing from it.
inline constexpr std::string_view kEvictedAnnotation = "berth.dev/evicted";
inline constexpr std::string_view kPodSetLabel = "kueue.x-k8s.io/podset";

}  // namespace berth::api
