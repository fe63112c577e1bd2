// best-fit: the node on which least is left, CPU and devices weighing the same, each as a part of the largest node.
#include <algorithm>

#include "base/int128.h"
#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class BestFit final : public PlacementPolicy {
 public:
  explicit BestFit(const FleetFacts& facts)
      : cpu_max_(std::max<int64_t>(facts.cpu_milli_max, 1)),
        device_max_(std::max<int64_t>(facts.device_milli_max, 1)) {}

  // 100 · (1 - (CPU left / largest + devices left / largest) / 2), cut.
  int32_t score(const Candidate& candidate, const Request& request) const override {
    const int64_t cpu_left = candidate.node.cpu_milli() - request.cpu_milli;
    const int64_t devices_left = candidate.node.devices().free() - request.device_milli();
    const Int128 both_max = Int128{cpu_max_} * device_max_;
    const Int128 left = Int128{50} * (Int128{cpu_left} * device_max_ + Int128{devices_left} * cpu_max_);
    return static_cast<int32_t>((100 * both_max - left) / both_max);
  }

 private:
  int64_t cpu_max_;
  int64_t device_max_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_best_fit(const FleetFacts& facts) { return std::make_unique<BestFit>(facts); }

}  // namespace berth::packing
