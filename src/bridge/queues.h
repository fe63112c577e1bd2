// Kueue's workloads as the plain values that queueing works with.
#pragma once

#include "api/kueue.h"
#include "model/queues.h"

namespace berth::bridge {

// Requests of each pod are those that kube-scheduler would count (api/requests.h), without "pods".
model::Workload to_model(const api::Workload& workload);

}  // namespace berth::bridge
