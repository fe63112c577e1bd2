// Effective requests: how much of its node a pod counts for.
//
// The same numbers as kube-scheduler's: PodRequests of k8s.io/component-helpers/resource (1.35) with status resources,
// pod-level resources (KEP-2837), sidecars (KEP-753) and in-place resize (KEP-1287).
#pragma once

#include <vector>

#include "api/pod.h"
#include "model/pod.h"
#include "model/resources.h"

namespace berth::api {

// Containers and sidecars summed, the largest init container at its moment, pod-level amounts over these, overhead, and
// "pods": 1. During a resize the largest of desired, allocated and actual; of the last two when it is Infeasible.
model::ResourceList effective_requests(const Pod& pod);

// What the containers of a spec ask for together, without overhead and pod-level amounts; and what they may use.
model::ResourceList sum_of_requests(const PodSpec& spec);
model::ResourceList sum_of_limits(const PodSpec& spec);

// Host ports of containers and sidecars, in order, without duplicates; an empty host IP is 0.0.0.0.
std::vector<model::HostPort> host_ports(const PodSpec& spec);

// Fills in spec.resources (pod level) as the API server does when a part of it is given: requests from those of the
// containers, else from its limits; limits of huge pages from those of the containers. The decoder has done it already.
// Source: defaultPodRequests and defaultHugePagePodLimits, k8s.io/kubernetes/pkg/apis/core/v1.
void default_pod_resources(PodSpec& spec);

}  // namespace berth::api
