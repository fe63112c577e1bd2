// gpu-packing: a device that is already shared, else idle devices of a node in use, else an idle node; within each, the
// tighter fit. Requests without devices go to the first node.
#include <algorithm>

#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

constexpr int32_t kBest = 100;
constexpr int32_t kSharedMin = kBest / 2;    // a shared device: from here to kBest
constexpr int32_t kUsedNodeMin = kBest / 3;  // idle devices of a node in use: from here to kSharedMin

class GpuPacking final : public PlacementPolicy {
 public:
  int32_t score(const Candidate& candidate, const Request& request) const override {
    if (request.devices == 0) return 0;
    const Devices& devices = candidate.node.devices();
    if (const int idle = devices.idle(); idle == devices.count) return std::max(kUsedNodeMin - idle, idle);
    if (!request.is_share()) return std::max(kSharedMin - request.devices, kUsedNodeMin);
    const int32_t free = devices.free_milli[devices.tightest(request.milli_each)];
    if (free == kMilliPerDevice) return kSharedMin - 1;
    const int32_t free_percent = free * 100 / kMilliPerDevice;
    return std::max(kBest - free_percent / 10, kSharedMin);
  }
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_gpu_packing(const FleetFacts& /*facts*/) {
  return std::make_unique<GpuPacking>();
}

}  // namespace berth::packing
