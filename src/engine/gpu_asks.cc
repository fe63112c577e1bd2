#include "engine/gpu_asks.h"

#include <algorithm>

#include "model/gpu.h"
#include "model/queues.h"

namespace berth::engine {

bool asks_for_gpus(const model::PodSet& set) {
  const auto is_gpu = [](const auto& request) { return request.second > 0 && model::is_gpu_resource(request.first); };
  return std::ranges::any_of(set.requests, is_gpu) || (set.spec != nullptr && set.spec->gpu_share.asked());
}

bool asks_for_gpus(const model::Workload& workload) {
  return std::ranges::any_of(workload.pod_sets, [](const model::PodSet& set) { return asks_for_gpus(set); });
}

bool is_sliced(const model::Workload& workload) {
  return std::ranges::any_of(workload.pod_sets, [](const model::PodSet& set) { return !set.slices.empty(); });
}

}  // namespace berth::engine
