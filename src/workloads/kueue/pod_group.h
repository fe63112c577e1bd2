// Plain pods that wait in a queue together: all pods of a namespace with the same label kueue.x-k8s.io/pod-group-name,
// or one pod by itself. The Workload that they are admitted by has a pod set for each of their roles.
// Pure functions on api objects. Source: Kueue's pod groups, https://kueue.sigs.k8s.io/docs/tasks/run/plain_pods/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/kueue.h"
#include "api/pod.h"

namespace berth::workloads {

// The group that the pod names; empty: it is by itself.
std::string_view group_of(const api::ObjectMeta& metadata);
// The name of the Workload that it is admitted by: the group's, or one of its own.
std::string workload_name_of(const api::Pod& pod);
// Waits for its Workload: it has the gate kueue.x-k8s.io/admission.
bool waits_for_admission(const api::Pod& pod);
// One pod set may hold both: what they ask for and where they may go are the same, and the annotation
// kueue.x-k8s.io/role-hash, where both have it.
bool same_role(const api::PodTemplate& a, const api::PodTemplate& b);

// A pod with this metadata as an owner.
api::OwnerReference pod_owner(const api::ObjectMeta& pod);

// The Workload stands for plain pods: they own it, or it is that of a group which nobody owns just now.
bool is_of_pods(const api::Workload& workload);
// The pod, which is the workload's, counts for the set. One that waits has to be like the set's template, whatever its
// labels and annotations say.
bool is_of_set(const api::Pod& pod, const api::Workload& workload, const api::WorkloadPodSet& set);
// Of a group's pods that have not ended or are leaving those of each pod set, where nodes can tell them apart: they
// differ in labels or claims, or each has claims of its own. At most as many as the set counts; those come first that
// have been let in. Empty where they are all alike.
std::vector<std::vector<const api::Pod*>> told_apart(const std::vector<const api::Pod*>& pods,
                                                     const api::Workload& workload);
// Of a group that waits, and of its pods: that some are not there which it was made of, nor others like them, so that
// it is not to be let in. Empty: they are, or it may begin with fewer (kueue.x-k8s.io/pod-group-fast-admission), or it
// is a pod by itself.
std::string lacking_pods(const std::vector<const api::Pod*>& pods, const api::Workload& workload);
// Of a pod that waits, and for which there is no room in the workload, which has been let in: why.
std::string why_outside(const api::Pod& pod, const api::Workload& workload);

struct ComposedGroup {
  std::optional<api::Workload> workload;  // none: not yet, or never
  std::vector<size_t> examples;           // by pod set: the pod of which its template is
  std::string trouble;                    // why there is none; of one that may still come, too
};
// The Workload of the pods, which have not ended, at least one, all of one group or one by itself. The UID is empty;
// the priority is the pods'. Roles are named as the annotation kueue.x-k8s.io/role-hash says, else by their number.
ComposedGroup compose_group(const std::vector<const api::Pod*>& pods);

// How a group of which nothing is left to run has ended; empty: it goes on. `total` pods belong to it.
struct GroupEnd {
  std::string reason;  // "Succeeded", "Failed", as the Workload's condition has it
  std::string message;
};
GroupEnd end_of_group(const std::vector<const api::Pod*>& pods, int32_t total);

}  // namespace berth::workloads
