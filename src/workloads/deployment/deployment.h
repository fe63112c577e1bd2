// Deployment: so many equal pods that run forever, "web-0", "web-1", … (the real controllers add random suffixes).
#pragma once

#include <vector>

#include "api/controllers.h"

namespace berth::workloads {

// Its pods, each owned by the Deployment itself: ReplicaSets between them decide nothing about placement.
std::vector<api::Pod> deployment_pods(const api::Deployment& deployment);

}  // namespace berth::workloads
