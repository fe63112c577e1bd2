// Patches: the JSON bodies that Berth sends, byte for byte what the API server expects.
#pragma once

#include <string>
#include <string_view>

#include "api/meta.h"
#include "base/time.h"
#include "model/labels.h"

namespace berth::api {

// The Binding of pod `namespace_name`/`name` with `uid` to `node` (POST …/pods/NAME/binding). The UID makes the server
// refuse a pod of the same name made anew; annotations, if any, are merged into the pod in the same write.
std::string binding_json(std::string_view namespace_name, std::string_view name, std::string_view uid,
                         std::string_view node, const model::Labels& annotations = {});

// A strategic merge patch of pod status (PATCH …/pods/NAME/status) that sets `condition`, merged by its type, and
// nominates `nominated_node` unless it is empty. `transition` is when the condition's status last changed. With `uid`
// the server refuses (409) a pod of the same name made anew. kube-scheduler writes PodScheduled=False/Unschedulable
// this way.
std::string pod_condition_patch_json(std::string_view uid, const Condition& condition, Time transition,
                                     std::string_view nominated_node = {});

}  // namespace berth::api
