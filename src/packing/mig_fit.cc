#include "packing/mig_fit.h"

#include <algorithm>
#include <tuple>

namespace berth::packing {
namespace {

using model::MigInstance;
using model::MigLayout;
using model::MigModel;
using model::MigProfile;

constexpr model::MigSlices kAtZero = 0b0000'0001, kHalves = 0b0001'0001, kPairs = 0b0101'0101,
                           kPairsButLast = 0b0001'0101, kSinglesButLast = 0b0111'1111;

// Slices by what they need a place of.
struct Need {
  int64_t whole = 0, lower = 0, half = 0, pair_but_last = 0, pair = 0, single = 0, media = 0;

  void add(const MigProfile& profile, int64_t count) {
    if (profile.media_extensions) media += count;
    if (profile.memory_slices == 8) whole += count;
    else if (profile.memory_slices == 4 && profile.starts == kAtZero) lower += count;
    else if (profile.memory_slices == 4 && profile.starts == kHalves) half += count;
    else if (profile.memory_slices == 2 && profile.starts == kPairsButLast) pair_but_last += count;
    else if (profile.memory_slices == 2 && profile.starts == kPairs) pair += count;
    else if (profile.memory_slices == 1 && profile.starts == kSinglesButLast) single += count;
  }
};

Need need_of(const MigModel& model, const MigWaiting& slices) {
  Need out;
  for (const auto& [name, count] : slices) out.add(model.profiles[*model.find(name)], count);
  return out;
}

// What is free, each slice counted once, in the largest piece that it is in. `hosts`: devices that could take a +me;
// `harmless`: halves that may be filled and leave their device a host, or are on none.
struct Free {
  int64_t whole = 0, lower = 0, upper = 0, pairs_but_last = 0, last_pairs = 0, singles = 0, hosts = 0, harmless = 0;

  void add(const MigLayout& layout, int64_t times) {
    const auto is_free = [&](int from, int count) { return (layout.occupied() >> from & ((1 << count) - 1)) == 0; };
    const bool host = !layout.media_taken() && (~layout.occupied() & kSinglesButLast) != 0;
    hosts += host ? times : 0;
    if (layout.empty()) return void(whole += times);
    for (int half = 0; half < 8; half += 4) {
      if (is_free(half, 4)) {
        (half == 0 ? lower : upper) += times;
        const bool only = (~layout.occupied() & kSinglesButLast & ~(0b1111 << half)) == 0;
        harmless += !host || !only ? times : 0;
        continue;
      }
      for (int pair = half; pair < half + 4; pair += 2) {
        if (is_free(pair, 2)) (pair == 6 ? last_pairs : pairs_but_last) += times;
        else
          for (int slice = pair; slice < std::min(pair + 2, 7); ++slice) singles += is_free(slice, 1) ? times : 0;
      }
    }
  }

  bool suffices(const Need& need) const {
    const int64_t cut = whole - need.whole;
    if (cut < 0) return false;
    // One half of an empty device is harmless, too; each half beyond fills a host.
    const int64_t filled = std::max<int64_t>(0, need.lower + need.half - harmless - cut);
    if (need.media > hosts - need.whole - filled) return false;
    // Upper halves first: their last pair is worth the least.
    const int64_t upper_left = upper + cut - std::min(need.half, upper + cut);
    const int64_t lower_left = lower + cut - need.lower - (need.half - (upper + cut - upper_left));
    if (lower_left < 0) return false;
    int64_t last = last_pairs + upper_left;
    const int64_t in_last = std::min(need.pair, last);  // there it costs one single slice instead of two
    last -= in_last;
    const int64_t pairs = pairs_but_last + 2 * lower_left + upper_left - need.pair_but_last - (need.pair - in_last);
    // A +me takes a pair or what is left of one by itself, since no device has two.
    return pairs >= 0 && need.single <= singles + 2 * pairs + last && need.media <= singles + pairs + last;
  }
};

// Places the slices one by one; see place_largest_first().
class Placing {
 public:
  Placing(const MigModel& model, const MigWaiting& slices, int64_t devices, const MigRoom& room)
      : room_(room), need_(need_of(model, slices)), layouts_(static_cast<size_t>(devices), MigLayout(model)) {
    for (const MigLayout& layout : layouts_) free_.add(layout, 1);
  }

  bool place(model::MigProfileIndex profile) {
    need_.add(layouts_.front().model().profiles[profile], -1);
    places_.clear();
    for (size_t d = 0; d < layouts_.size(); ++d) {
      const model::MigSlices starts = layouts_[d].starts_for(profile);
      for (uint8_t start = model::kMigMemorySlicesMax; start-- > 0;)  // of equal places the last start
        if ((starts >> start & 1) != 0) places_.push_back({room_.cost(layouts_[d], {profile, start}), d, start});
      if (layouts_[d].empty()) break;  // those after it look the same
    }
    std::ranges::stable_sort(places_, {}, &Place::cost);
    return std::ranges::any_of(places_, [&](const Place& place) { return take({profile, place.start}, place.device); });
  }

  std::vector<MigLayout> layouts() && { return std::move(layouts_); }

 private:
  struct Place {
    int64_t cost = 0;
    size_t device = 0;
    uint8_t start = 0;
  };

  bool take(MigInstance instance, size_t device) {
    Free after = free_;
    after.add(layouts_[device], -1);
    layouts_[device].place(instance);
    after.add(layouts_[device], 1);
    if (after.suffices(need_)) {
      free_ = after;
      return true;
    }
    layouts_[device].remove(instance);
    return false;
  }

  const MigRoom& room_;
  Need need_;
  Free free_;
  std::vector<MigLayout> layouts_;
  std::vector<Place> places_;
};

}  // namespace

bool may_fit(const MigModel& model, const MigWaiting& slices, int64_t devices) {
  Free free;
  free.add(MigLayout(model), devices);
  return free.suffices(need_of(model, slices));
}

std::optional<std::vector<MigLayout>> place_largest_first(const MigModel& model, const MigWaiting& slices,
                                                          int64_t devices, MigDemand& demand) {
  if (devices <= 0 || !may_fit(model, slices, devices)) return std::nullopt;
  const MigRoom& room = demand.room(model);
  std::vector<model::MigProfileIndex> order;
  for (auto p = static_cast<model::MigProfileIndex>(model.profiles.size()); p-- > 0;)
    if (slices.contains(model.profiles[p].name)) order.push_back(p);
  const auto placed = [&]() -> std::optional<std::vector<MigLayout>> {
    Placing placing(model, slices, devices, room);
    for (const model::MigProfileIndex p : order)
      for (int i = 0; i < slices.at(model.profiles[p].name); ++i)
        if (!placing.place(p)) return std::nullopt;
    return std::move(placing).layouts();
  };
  if (auto found = placed()) return found;
  // Where a few +me are in each other's way they come before the pairs, which have more places.
  const auto rank = [&](model::MigProfileIndex p) {
    const MigProfile& profile = model.profiles[p];
    return std::tuple(profile.memory_slices < 4, !profile.media_extensions);
  };
  std::ranges::stable_sort(order, {}, rank);
  return placed();
}

}  // namespace berth::packing
