// dot-product: as in Tetris (Grandl et al., SIGCOMM '14), by the product of what is asked for and what is free; here
// the smallest product wins, so that large free nodes are kept for others.
#include <algorithm>

#include "base/int128.h"
#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class DotProduct final : public PlacementPolicy {
 public:
  explicit DotProduct(const FleetFacts& facts)
      : cpu_max_(std::max<int64_t>(facts.cpu_milli_max, 1)),
        device_max_(std::max<int64_t>(facts.device_milli_max, 1)) {}

  // 100 · (1 - (free · request) / 2), cut, with CPU and devices as parts of the largest node.
  int32_t score(const Candidate& candidate, const Request& request) const override {
    const Int128 cpu = Int128{candidate.node.cpu_milli()} * request.cpu_milli;
    const Int128 devices = Int128{candidate.node.devices().free()} * request.device_milli();
    const Int128 cpu_square = Int128{cpu_max_} * cpu_max_;
    const Int128 device_square = Int128{device_max_} * device_max_;
    const Int128 both = cpu_square * device_square;
    return static_cast<int32_t>((100 * both - 50 * (cpu * device_square + devices * cpu_square)) / both);
  }

 private:
  int64_t cpu_max_;
  int64_t device_max_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_dot_product(const FleetFacts& facts) {
  return std::make_unique<DotProduct>(facts);
}

}  // namespace berth::packing
