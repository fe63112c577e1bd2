#include "api/protobuf_tables.h"

// In each table the members stand as in the decoders', which is the order of the API's JSON.
namespace berth::api {
namespace {

// ---- metadata -------------------------------------------------------------------------------------------------------

constexpr ProtobufField kOwnerReference[] = {
    text(5, "apiVersion"), text(1, "kind"), text(3, "name"), text(4, "uid"), flag(6, "controller"),
};

constexpr ProtobufField kObjectMeta[] = {
    text(1, "name"),
    text(2, "generateName"),
    text(3, "namespace"),
    text(5, "uid"),
    text(6, "resourceVersion"),
    integer(7, "generation"),
    time(8, "creationTimestamp"),
    time(9, "deletionTimestamp"),
    kept(integer(10, "deletionGracePeriodSeconds")),
    text_map(11, "labels"),
    text_map(12, "annotations"),
    messages(13, "ownerReferences", kOwnerReference),
};

// ---- selectors ------------------------------------------------------------------------------------------------------

// Of labels, nodes and fields alike.
constexpr ProtobufField kRequirement[] = {kept(text(1, "key")), kept(text(2, "operator")), texts(3, "values")};

constexpr ProtobufField kLabelSelector[] = {
    text_map(1, "matchLabels"),
    messages(2, "matchExpressions", kRequirement),
};

constexpr ProtobufField kNodeSelectorTerm[] = {
    messages(1, "matchExpressions", kRequirement),
    messages(2, "matchFields", kRequirement),
};

constexpr ProtobufField kNodeSelector[] = {messages(1, "nodeSelectorTerms", kNodeSelectorTerm)};

constexpr ProtobufField kPreferredSchedulingTerm[] = {
    kept(integer(1, "weight")),
    message(2, "preference", kNodeSelectorTerm),
};

constexpr ProtobufField kNodeAffinity[] = {
    message(1, "requiredDuringSchedulingIgnoredDuringExecution", kNodeSelector),
    messages(2, "preferredDuringSchedulingIgnoredDuringExecution", kPreferredSchedulingTerm),
};

constexpr ProtobufField kPodAffinityTerm[] = {
    message(1, "labelSelector", kLabelSelector),     texts(2, "namespaces"),     kept(text(3, "topologyKey")),
    message(4, "namespaceSelector", kLabelSelector), texts(5, "matchLabelKeys"), texts(6, "mismatchLabelKeys"),
};

constexpr ProtobufField kWeightedPodAffinityTerm[] = {
    kept(integer(1, "weight")),
    message(2, "podAffinityTerm", kPodAffinityTerm),
};

// And podAntiAffinity.
constexpr ProtobufField kPodAffinity[] = {
    messages(1, "requiredDuringSchedulingIgnoredDuringExecution", kPodAffinityTerm),
    messages(2, "preferredDuringSchedulingIgnoredDuringExecution", kWeightedPodAffinityTerm),
};

constexpr ProtobufField kAffinity[] = {
    message(1, "nodeAffinity", kNodeAffinity),
    message(2, "podAffinity", kPodAffinity),
    message(3, "podAntiAffinity", kPodAffinity),
};

constexpr ProtobufField kTopologySpreadConstraint[] = {
    kept(integer(1, "maxSkew")),        kept(text(2, "topologyKey")),
    kept(text(3, "whenUnsatisfiable")), message(4, "labelSelector", kLabelSelector),
    kept(integer(5, "minDomains")),     kept(text(6, "nodeAffinityPolicy")),
    kept(text(7, "nodeTaintsPolicy")),  texts(8, "matchLabelKeys"),
};

constexpr ProtobufField kToleration[] = {
    text(1, "key"),
    text(2, "operator"),
    text(3, "value"),
    text(4, "effect"),
};

constexpr ProtobufField kTaint[] = {kept(text(1, "key")), text(2, "value"), kept(text(3, "effect"))};

// ---- containers and volumes -----------------------------------------------------------------------------------------

constexpr ProtobufField kResources[] = {quantity_map(1, "limits"), quantity_map(2, "requests")};

constexpr ProtobufField kContainerPort[] = {
    integer(2, "hostPort"),
    kept(integer(3, "containerPort")),
    text(4, "protocol"),
    text(5, "hostIP"),
};

constexpr ProtobufField kFieldReference[] = {text(2, "fieldPath")};
constexpr ProtobufField kVariableSource[] = {message(1, "fieldRef", kFieldReference)};  // that there is one
constexpr ProtobufField kVariable[] = {
    kept(text(1, "name")),
    text(2, "value"),
    message(3, "valueFrom", kVariableSource),
};

constexpr ProtobufField kContainer[] = {
    kept(text(1, "name")),
    text(2, "image"),
    messages(6, "ports", kContainerPort),
    messages(7, "env", kVariable),
    message(8, "resources", kResources),
    kept(text(24, "restartPolicy")),
};

constexpr ProtobufField kVolumeResources[] = {quantity_map(2, "requests")};

constexpr ProtobufField kClaimSpec[] = {
    texts(1, "accessModes"),
    message(4, "selector", kLabelSelector),
    message(2, "resources", kVolumeResources),
    text(3, "volumeName"),
    kept(text(5, "storageClassName")),
    kept(text(6, "volumeMode")),
    kept(text(9, "volumeAttributesClassName")),
};

constexpr ProtobufField kClaimTemplate[] = {message(2, "spec", kClaimSpec)};
constexpr ProtobufField kEphemeralVolume[] = {message(1, "volumeClaimTemplate", kClaimTemplate)};
constexpr ProtobufField kClaimVolume[] = {kept(text(1, "claimName"))};

constexpr ProtobufField kVolumeSource[] = {
    message(10, "persistentVolumeClaim", kClaimVolume),
    message(29, "ephemeral", kEphemeralVolume),
};

constexpr ProtobufField kVolume[] = {
    kept(text(1, "name")),
    inlined(2, "volumeSource", kVolumeSource),
};

// ---- Pod ------------------------------------------------------------------------------------------------------------

constexpr ProtobufField kNamed[] = {kept(text(1, "name"))};

constexpr ProtobufField kPodSpec[] = {
    messages(1, "volumes", kVolume),
    messages(20, "initContainers", kContainer),
    messages(2, "containers", kContainer),
    text(3, "restartPolicy"),
    kept(integer(4, "terminationGracePeriodSeconds")),
    kept(integer(5, "activeDeadlineSeconds")),
    text_map(7, "nodeSelector"),
    text(10, "nodeName"),
    flag(11, "hostNetwork"),
    message(18, "affinity", kAffinity),
    text(19, "schedulerName"),
    messages(22, "tolerations", kToleration),
    text(24, "priorityClassName"),
    kept(integer(25, "priority")),
    text(29, "runtimeClassName"),
    kept(text(31, "preemptionPolicy")),
    quantity_map(32, "overhead"),
    messages(33, "topologySpreadConstraints", kTopologySpreadConstraint),
    messages(38, "schedulingGates", kNamed),
    messages(39, "resourceClaims", {}),  // only whether there are any
    message(40, "resources", kResources),
};

// Of pods and of nodes.
constexpr ProtobufField kCondition[] = {
    kept(text(1, "type")),
    kept(text(2, "status")),
    text(5, "reason"),
    text(6, "message"),
};

constexpr ProtobufField kContainerStatus[] = {
    kept(text(1, "name")),
    quantity_map(10, "allocatedResources"),
    message(11, "resources", kResources),
};

constexpr ProtobufField kPodStatus[] = {
    text(1, "phase"),
    messages(2, "conditions", kCondition),
    text(3, "message"),
    text(4, "reason"),
    text(11, "nominatedNodeName"),
    time(7, "startTime"),
    messages(10, "initContainerStatuses", kContainerStatus),
    messages(8, "containerStatuses", kContainerStatus),
    quantity_map(19, "allocatedResources"),
    message(20, "resources", kResources),
};

constexpr ProtobufField kPod[] = {
    message(1, "metadata", kObjectMeta),
    message(2, "spec", kPodSpec),
    message(3, "status", kPodStatus),
};

// ---- Node -----------------------------------------------------------------------------------------------------------

constexpr ProtobufField kNodeSpec[] = {
    text(3, "providerID"),
    flag(4, "unschedulable"),
    messages(5, "taints", kTaint),
};

constexpr ProtobufField kContainerImage[] = {texts(1, "names"), integer(2, "sizeBytes")};

constexpr ProtobufField kNodeStatus[] = {
    quantity_map(1, "capacity"),
    quantity_map(2, "allocatable"),
    messages(4, "conditions", kCondition),
    messages(8, "images", kContainerImage),
};

constexpr ProtobufField kNode[] = {
    message(1, "metadata", kObjectMeta),
    message(2, "spec", kNodeSpec),
    message(3, "status", kNodeStatus),
};

// ---- Status ---------------------------------------------------------------------------------------------------------

constexpr ProtobufField kStatusDetails[] = {integer(5, "retryAfterSeconds")};

constexpr ProtobufField kStatus[] = {
    text(2, "status"), text(3, "message"), text(4, "reason"), message(5, "details", kStatusDetails), integer(6, "code"),
};

}  // namespace

constexpr ProtobufMessage kPodProtobuf = kPod;
constexpr ProtobufMessage kNodeProtobuf = kNode;
constexpr ProtobufMessage kStatusProtobuf = kStatus;

}  // namespace berth::api
