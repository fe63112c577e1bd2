// random: any node with room, and any device with room for a share: what a fleet is without a packer.
#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class Random final : public PlacementPolicy {
 public:
  int32_t score(const Candidate& /*candidate*/, const Request& /*request*/) const override { return 0; }

  int share_device(const Candidate& candidate, const Request& request, Rng& rng) const override {
    const Devices& devices = candidate.node.devices();
    int chosen = -1;
    uint64_t seen = 0;
    for (int d = 0; d < devices.count; ++d)
      if (devices.free_milli[d] >= request.milli_each && rng.below(++seen) == 0) chosen = d;
    return chosen;
  }

  bool draws() const override { return true; }
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_random(const FleetFacts& /*facts*/) { return std::make_unique<Random>(); }

}  // namespace berth::packing
