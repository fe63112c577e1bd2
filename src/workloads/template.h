// Pods from a template: what all controllers share.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/controllers.h"
#include "api/pod.h"

namespace berth::workloads {

// A pod named `name` from `pod_template`, owned by the object that `owner`, `api_version` and `kind` describe: the
// template's labels and annotations, the owner's namespace and a controller reference. Its creation time is the
// owner's; its UID is empty. The owner's annotations berth.dev/simulated-… apply to its pods unless the template sets
// them; no others do, as in a cluster.
api::Pod pod_from_template(const api::PodTemplate& pod_template, const api::ObjectMeta& owner,
                           std::string_view api_version, std::string_view kind, std::string name);

// `count` such pods, named after their owner: "web-0", "web-1", ….
std::vector<api::Pod> replicas_from_template(const api::PodTemplate& pod_template, const api::ObjectMeta& owner,
                                             std::string_view api_version, std::string_view kind, int32_t count);

// The name of an object in a file: metadata.name, or generateName without its last dash.
std::string_view base_name(const api::ObjectMeta& metadata);

}  // namespace berth::workloads
