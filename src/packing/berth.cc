// berth: the place that takes least from what is still to come, counted in devices.
//
//   loss = 100 · waste of the remnant that a share is taken from (ShareWorth)
//        + what is stranded on the node, after less before
//        - FGD's points / 25 (near 0 a point is 1/25 of a device), times max(1, 1 / r)
//        + 1.5 · devices taken · scarcity of their model (ModelScarcity)
//        + free devices left on the node / 100
//
// Waste decides first, as a remnant that nothing fits is lost for good. What is stranded is the worth of the node's
// free devices times 1 / (1 + x³), once for CPU and once for memory, where x is how often the CPU (memory) that is free
// for each device holds a modest part of what the mix asks for per device: smooth, so that requests that ask for much
// go where there is much, long before anything runs short. The part is a third of memory; of CPU it is 1 / q²,
// at most all of it, where q is how often the fleet's CPU per device holds what is asked for beside one. Where r, which
// counts the CPU of requests without devices as well, is below 1, it is short whoever gets it: the part is then all
// that both ask for. FGD's points keep whole nodes for requests of many devices, and models for requests that name
// them; the shorter CPU is, the more it is what fits nowhere that counts. Requests without devices go where no device
// is left.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "packing/fragment_points.h"
#include "packing/model_scarcity.h"
#include "packing/placement_policy.h"
#include "packing/share_worth.h"

namespace berth::packing {
namespace {

constexpr double kWasteWeight = 100;
constexpr double kPointsPerDevice = 25;
constexpr double kFreeDeviceWeight = 0.01;
constexpr double kModestPart = 1.0 / 3;  // of the mean demand for memory per device
constexpr double kScarcityWeight = 1.5;
// Scores: a loss of 0 gives kNoLoss, which no loss exceeds.
constexpr double kScorePerDevice = 1e6;
constexpr double kNoLoss = 1e9;

constexpr int64_t kTypicalPercent = 95;
// The last so many requests are the mix. What was learned is renewed after 32, 64, … kRenewEvery, and then after each
// kRenewEvery requests.
constexpr size_t kWindow = 4096;
constexpr size_t kFirstRenewal = 32;
constexpr size_t kRenewEvery = 1024;

std::vector<ShareCount> shares_of(std::span<const Request> requests) {
  std::map<int32_t, int64_t> counts;
  for (const Request& request : requests)
    if (request.is_share()) ++counts[request.milli_each];
  std::vector<ShareCount> shares;
  for (const auto& [milli, count] : counts) shares.push_back({.milli = milli, .count = count});
  return shares;
}

// What is known of the mix.
class Mix {
 public:
  Mix(std::span<const Request> requests, const FleetSupply& supply)
      : worth_(shares_of(requests)),
        measure_(typical_mix({requests.begin(), requests.end()}, kTypicalPercent)),
        points_(measure_),
        scarcity_(model_scarcity(requests, supply.devices)) {
    double devices = 0, all_cpu = 0, cpu = 0, memory = 0;  // the last two: beside devices
    for (const Request& request : requests) {
      all_cpu += static_cast<double>(request.cpu_milli);
      if (request.devices == 0) continue;
      cpu += static_cast<double>(request.cpu_milli);
      devices += static_cast<double>(request.device_milli()) / kMilliPerDevice;
      memory += static_cast<double>(request.memory_bytes);
    }
    if (devices == 0) return;
    asked_cpu_ = asked_part(all_cpu / devices, supply);
    const double beside = asked_part(cpu / devices, supply);
    modest_cpu_ = (asked_cpu_ > 1 ? all_cpu : std::min(1.0, beside * beside) * cpu) / devices;
    modest_memory_ = kModestPart * memory / devices;
  }

  double scarcity(ModelIndex model) const { return model < scarcity_.size() ? scarcity_[model] : 0; }
  const ShareWorth& worth() const { return worth_; }
  // In devices, as the file's head says.
  double stranded(int64_t cpu_milli, int64_t memory_bytes, const Devices& devices) const {
    const double worth = worth_.of(devices);
    if (worth <= 0) return 0;
    return part_stranded(static_cast<double>(cpu_milli), modest_cpu_ * worth) * worth +
           part_stranded(static_cast<double>(memory_bytes), modest_memory_ * worth) * worth;
  }
  int64_t fragment(const Node& node) const { return measure_.of(node); }
  // FGD's points, in devices; `before`: the node's fragment.
  double points(const Node& node, int64_t before, int64_t cpu_after, const Devices& after) const {
    return points_.of(before - measure_.of(cpu_after, after, node.model())) / kPointsPerDevice *
           std::max(1.0, asked_cpu_);
  }

 private:
  // How often the fleet would need its CPU for so much per device on all of its devices.
  static double asked_part(double cpu_milli, const FleetSupply& supply) {
    const auto devices = static_cast<double>(std::accumulate(supply.devices.begin(), supply.devices.end(), int64_t{0}));
    return cpu_milli * devices / static_cast<double>(std::max<int64_t>(supply.cpu_milli, 1));
  }
  static double part_stranded(double free, double modest) {
    if (modest <= 0) return 0;
    const double times = free / modest;
    return 1 / (1 + times * times * times);
  }

  ShareWorth worth_;
  FragmentMeasure measure_;
  FragmentPoints points_;
  std::vector<double> scarcity_;  // by model
  double asked_cpu_ = 0;          // of the fleet's: 1 / r
  double modest_cpu_ = 0;         // per device
  double modest_memory_ = 0;
};

class Berth final : public PlacementPolicy {
 public:
  // Without a mix it learns one.
  Berth(std::optional<Mix> told, FleetSupply supply)
      : learns_(!told), supply_(std::move(supply)), mix_(told ? std::move(*told) : Mix({}, supply_)) {}

  int32_t score(const Candidate& candidate, const Request& request) const override {
    if (request.is_share()) return best_share(candidate, request).score;
    Devices after = candidate.node.devices();
    int wanted = request.devices;
    for (int d = 0; wanted > 0 && d < after.count; ++d) {
      if (after.free_milli[d] != kMilliPerDevice) continue;
      after.free_milli[d] = 0;
      --wanted;
    }
    return score_of(candidate.node, before(candidate), request, after, 0);
  }

  int share_device(const Candidate& candidate, const Request& request, Rng& /*rng*/) const override {
    return best_share(candidate, request).device;
  }

  bool observe(const Request& request) override {
    if (!learns_) return false;
    if (window_.size() < kWindow) window_.push_back(request);
    else window_[seen_ % kWindow] = request;
    if (++seen_ != renew_at_) return false;
    renew_at_ += std::min(seen_, kRenewEvery);
    mix_ = Mix(window_, supply_);
    return true;
  }

 private:
  struct Share {
    int32_t score = -1;
    int device = -1;
  };

  // Of the node as it is.
  NodeMemo before(const Candidate& candidate) const {
    if (candidate.memo != nullptr && candidate.memo->known) return *candidate.memo;
    const Node& node = candidate.node;
    const NodeMemo out{true, mix_.fragment(node), mix_.stranded(node.cpu_milli(), node.memory_bytes(), node.devices())};
    if (candidate.memo != nullptr) *candidate.memo = out;
    return out;
  }

  int32_t score_of(const Node& node, const NodeMemo& before, const Request& request, const Devices& after,
                   double waste) const {
    const int64_t cpu_after = node.cpu_milli() - request.cpu_milli;
    const int64_t memory_after = node.memory_bytes() - request.memory_bytes;
    const double loss =
        kWasteWeight * waste + mix_.stranded(cpu_after, memory_after, after) - before.stranded -
        mix_.points(node, before.fragment, cpu_after, after) +
        kScarcityWeight * mix_.scarcity(node.model()) * static_cast<double>(request.device_milli()) / kMilliPerDevice +
        kFreeDeviceWeight * static_cast<double>(after.free()) / kMilliPerDevice;
    return static_cast<int32_t>(std::lround(kNoLoss - loss * kScorePerDevice));
  }

  Share best_share(const Candidate& candidate, const Request& request) const {
    const Node& node = candidate.node;
    const NodeMemo as_is = before(candidate);
    Devices devices = node.devices();
    Share best;
    int32_t last_free = -1;
    for (int d = 0; d < devices.count; ++d) {
      const int32_t free = devices.free_milli[d];
      if (free < request.milli_each || free == last_free) continue;  // a device like the one before scores the same
      last_free = free;
      devices.free_milli[d] = free - request.milli_each;
      const int32_t found = score_of(node, as_is, request, devices, mix_.worth().waste(free, request.milli_each));
      if (found > best.score) best = {found, d};
      devices.free_milli[d] = free;
    }
    return best;
  }

  bool learns_;
  FleetSupply supply_;
  Mix mix_;
  std::vector<Request> window_;  // the last kWindow, in the order of a ring
  size_t seen_ = 0;
  size_t renew_at_ = kFirstRenewal;
};

}  // namespace

std::unique_ptr<PlacementPolicy> make_berth(const FleetFacts& facts) {
  return std::make_unique<Berth>(std::nullopt, facts.supply);
}

std::unique_ptr<PlacementPolicy> make_berth_told(const FleetFacts& facts) {
  return std::make_unique<Berth>(Mix(facts.told, facts.supply), facts.supply);
}

}  // namespace berth::packing
