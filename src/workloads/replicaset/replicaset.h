// ReplicaSet: so many equal pods that run forever, "web-0", "web-1", ….
#pragma once

#include <vector>

#include "api/controllers.h"

namespace berth::workloads {

std::vector<api::Pod> replicaset_pods(const api::ReplicaSet& replicaset);

}  // namespace berth::workloads
