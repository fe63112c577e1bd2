// fgd: fragmentation gradient descent, the node and device on which the fragment grows least (Weng et al., ATC '23,
// §4.2).
#include "packing/fragment_points.h"
#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class Fgd final : public PlacementPolicy {
 public:
  explicit Fgd(const FleetFacts& facts) : measure_(facts.measure), points_(facts.measure) {}

  int32_t score(const Candidate& candidate, const Request& request) const override {
    if (request.is_share()) return best_share(candidate, request).points;
    Devices devices = candidate.node.devices();
    int wanted = request.devices;
    for (int d = 0; wanted > 0 && d < devices.count; ++d) {
      if (devices.free_milli[d] != kMilliPerDevice) continue;
      devices.free_milli[d] = 0;
      --wanted;
    }
    return points(candidate, request, devices);
  }

  int share_device(const Candidate& candidate, const Request& request, Rng& /*rng*/) const override {
    return best_share(candidate, request).device;
  }

 private:
  struct Share {
    int32_t points = -1;
    int device = -1;
  };

  int32_t points(const Candidate& candidate, const Request& request, const Devices& after) const {
    const int64_t cpu_after = candidate.node.cpu_milli() - request.cpu_milli;
    return points_.of(candidate.fragment - measure_.of(cpu_after, after, candidate.node.model()));
  }

  Share best_share(const Candidate& candidate, const Request& request) const {
    Devices devices = candidate.node.devices();
    Share best;
    int32_t last_free = -1;
    for (int d = 0; d < devices.count; ++d) {
      const int32_t free = devices.free_milli[d];
      if (free < request.milli_each || free == last_free) continue;  // a device like the one before scores the same
      last_free = free;
      devices.free_milli[d] = free - request.milli_each;
      if (const int32_t found = points(candidate, request, devices); found > best.points) best = {found, d};
      devices.free_milli[d] = free;
    }
    return best;
  }

  const FragmentMeasure& measure_;
  FragmentPoints points_;
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_fgd(const FleetFacts& facts) { return std::make_unique<Fgd>(facts); }

}  // namespace berth::packing
