// gpu-clustering: as in Gandiva (Xiao et al., OSDI '18), requests of one shape (a share, one device, two, …) keep
// together. Requests without devices go to the first node.
#include <algorithm>

#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class GpuClustering final : public PlacementPolicy {
 public:
  explicit GpuClustering(const FleetFacts& facts) : device_max_(std::max<int64_t>(facts.device_milli_max, 1)) {}

  // From 75 where only this shape is, from 50 where others are too, from 25 on a node without any, from 0 where only
  // others are; up to 25 more the fewer devices are free.
  int32_t score(const Candidate& candidate, const Request& request) const override {
    if (request.devices == 0) return 0;
    const auto& placed = candidate.node.placed();
    const auto shapes = std::count_if(placed.begin(), placed.end(), [](int32_t count) { return count > 0; });
    const bool alike = placed[request.is_share() ? 0 : static_cast<size_t>(request.devices)] > 0;
    int32_t base = 0;
    if (alike) base = shapes == 1 ? 75 : 50;
    else base = shapes == 0 ? 25 : 0;
    return base + static_cast<int32_t>(25 * (device_max_ - candidate.node.devices().free()) / device_max_);
  }

 private:
  int64_t device_max_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_gpu_clustering(const FleetFacts& facts) {
  return std::make_unique<GpuClustering>(facts);
}

}  // namespace berth::packing
