// fgd: fragmentation gradient descent, the node and device on which the fragment grows least (Weng et al., ATC '23,
// §4.2).
#include <array>
#include <cmath>

#include "packing/placement_policy.h"

namespace berth::packing {
namespace {

class Fgd final : public PlacementPolicy {
 public:
  explicit Fgd(const FleetFacts& facts) : measure_(facts.measure) {
    for (size_t points = 1; points < kPoints; ++points) {
      const double share = static_cast<double>(points) / kPoints;
      const double devices = std::log(share / (1 - share));
      const double scale = static_cast<double>(kMilliPerDevice) * static_cast<double>(measure_.unit());
      gain_for_[points] = static_cast<int64_t>(std::ceil(devices * scale));
    }
  }

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
  static constexpr size_t kPoints = 100;

  struct Share {
    int32_t points = -1;
    int device = -1;
  };

  // 100 · sigmoid(what the fragment shrinks, in devices), cut: the inverse is tabled, so that it is compared exactly.
  // The cut matters: nodes on which little changes become equals, and whole ones stay whole.
  int32_t points(const Candidate& candidate, const Request& request, const Devices& after) const {
    const int64_t cpu_after = candidate.node.cpu_milli() - request.cpu_milli;
    const int64_t gain = candidate.fragment - measure_.of(cpu_after, after, candidate.node.model());
    size_t low = 0;  // the last entry that is not above the gain
    for (size_t step = 64; step > 0; step /= 2)
      if (low + step < kPoints && gain_for_[low + step] <= gain) low += step;
    return static_cast<int32_t>(low);
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
  std::array<int64_t, kPoints> gain_for_{};  // gain_for_[n]: the least that gives n points; [0] is not used
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_fgd(const FleetFacts& facts) { return std::make_unique<Fgd>(facts); }

}  // namespace berth::packing
