// peers_of(): what a pod asks of the pods around it, with everything resolved that depends on the pod itself.
//
// A term without namespaces and namespaceSelector names the pod's own namespace; matchLabelKeys and mismatchLabelKeys
// become requirements on the pod's own values, and keys that it lacks are ignored. A pure function; thread-safe.
// Source: kube-scheduler 1.35, framework/types.go (getNamespacesFromPodAffinityTerm), plugins/podtopologyspread.
#pragma once

#include "api/pod.h"
#include "model/peers.h"

namespace berth::bridge {

model::Peers peers_of(const api::Pod& pod);

}  // namespace berth::bridge
