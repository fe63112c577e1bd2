// LimitRange: defaults for containers, and bounds for containers, pods and claims, as the LimitRanger admission has
// them. A pod gets the defaults of all LimitRanges of its namespace before it is held against any of them.
// Source: k8s.io/kubernetes/plugin/pkg/admission/limitranger (1.35). Pure functions.
#pragma once

#include <string>
#include <vector>

#include "api/limits.h"
#include "api/pod.h"
#include "api/volumes.h"

namespace berth::limits {

// Gives each container, init containers too, the requests and limits that it does not name itself.
void set_defaults(const api::LimitRange& range, api::PodSpec& spec);

// Why the API server finds the spec invalid once defaults are in it: a request that is larger than the limit that it
// was given, "spec.containers[0].resources.requests: Invalid value: …". Empty if it does not.
std::string invalid_with_defaults(const api::PodSpec& spec);

// What of the range the object breaks, in Kubernetes' words: "maximum nvidia.com/gpu usage per Container is 4, but
// limit is 8"; of several things "[…, …]", by container and resource. Empty if nothing.
std::string refusal(const api::LimitRange& range, const api::PodSpec& spec);
std::string refusal(const api::LimitRange& range, const api::ClaimSpec& spec);

// What the spec's containers may use together, with pod-level limits over their sum; no overhead.
model::ResourceList pod_limits(const api::PodSpec& spec);

// Several messages as Kubernetes' Aggregate writes them, each once.
std::string aggregate(const std::vector<std::string>& messages);

}  // namespace berth::limits
