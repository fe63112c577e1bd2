// Kueue's workloads as the plain values that queueing works with.
#pragma once

#include "api/kueue.h"
#include "bridge/topology.h"
#include "model/queues.h"

namespace berth::bridge {

// Requests of each pod are those that kube-scheduler would count (api/requests.h), without "pods". Its pods are taken
// for those of the workload's owner.
model::Workload to_model(const api::Workload& workload, const TopologyLevels& levels = default_topology_levels());

// Has the set name these pods of it, which are there.
void name_members(model::PodSet& set, const api::Workload& workload, const std::vector<const api::Pod*>& pods,
                  const TopologyLevels& levels = default_topology_levels());

}  // namespace berth::bridge
