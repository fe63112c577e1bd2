// Patches: the JSON bodies that Berth sends, byte for byte what the API server expects.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/meta.h"
#include "base/time.h"
#include "model/labels.h"

namespace berth::api {

// The Binding of pod `namespace_name`/`name` with `uid` to `node` (POST …/pods/NAME/binding). The UID makes the server
// refuse a pod of the same name made anew; annotations, if any, are merged into the pod in the same write.
std::string binding_json(std::string_view namespace_name, std::string_view name, std::string_view uid,
                         std::string_view node, const model::Labels& annotations = {});

// A strategic merge patch of pod status that sets `condition` (merged by type) and, where `nominated_node` is given,
// nominates that node, or none if it is empty. kube-scheduler writes PodScheduled=False/Unschedulable this way. Without
// `transition` the server keeps its lastTransitionTime, as it should while the status stays the same;
// `observed_generation` 0 is left out.
std::string pod_condition_patch_json(std::string_view uid, const Condition& condition, std::optional<Time> transition,
                                     int64_t observed_generation = 0,
                                     std::optional<std::string_view> nominated_node = std::nullopt);

// DeleteOptions that delete only the object with this UID, with the grace period that it names itself. The server
// refuses another object of the same name with 409.
std::string delete_options_json(std::string_view uid);

// A merge patch of a PersistentVolumeClaim that asks its provisioner for a volume that `node` can use.
std::string selected_node_patch_json(std::string_view claim_uid, std::string_view node);

// A merge patch of a PersistentVolume that reserves it for a claim, from which the volume controller binds both.
// Refused with 409 where the volume is no longer at `resource_version`.
std::string claim_reference_patch_json(std::string_view resource_version, std::string_view claim_namespace,
                                       std::string_view claim_name, std::string_view claim_uid);

// What is written to a node whose GPUs are cut anew: an annotation, and labels.
struct NodePatch {
  std::string resource_version;  // refused with 409 where the node is another by now
  std::vector<std::pair<std::string, std::string>> annotations = {};
  std::vector<std::pair<std::string, std::optional<std::string>>> labels = {};  // nothing: the label goes
};
// A merge patch of the node's metadata.
std::string node_patch_json(const NodePatch& patch);

}  // namespace berth::api
