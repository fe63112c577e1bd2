#include "packing/mig_room.h"

#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

namespace berth::packing {

using model::MigInstance;
using model::MigLayout;
using model::MigModel;
using model::MigProfileIndex;

MigRoom::MigRoom(const MigModel& model, std::span<const int64_t> asked) {
  const double total = std::accumulate(asked.begin(), asked.end(), 0.0,
                                       [](double sum, int64_t count) { return sum + static_cast<double>(count); });
  std::vector<int64_t> per_mille;
  for (const int64_t count : asked) {
    const double share = total > 0 ? static_cast<double>(count) / total : 1.0 / static_cast<double>(asked.size());
    per_mille.push_back(static_cast<int64_t>(std::ceil(share * 1000)));  // never 0 for what is asked for
  }
  std::array<bool, std::tuple_size_v<decltype(room_)>> seen{};
  std::vector<MigLayout> open = {MigLayout(model)};
  while (!open.empty()) {
    const MigLayout layout = open.back();
    open.pop_back();
    if (seen[key(layout)]) continue;
    seen[key(layout)] = true;
    room_[key(layout)] = room_left(layout, per_mille);
    for (MigProfileIndex p = 0; p < model.profiles.size(); ++p) {
      for (uint8_t s = 0; s < model::kMigMemorySlicesMax; ++s) {
        if (!layout.fits({p, s})) continue;
        open.push_back(layout);
        open.back().place({p, s});
      }
    }
  }
}

int64_t MigRoom::room_left(const MigLayout& layout, std::span<const int64_t> per_mille) const {
  int64_t sum = 0;
  for (MigProfileIndex p = 0; p < per_mille.size(); ++p) {
    const int64_t n = layout.room_for(p);
    const int64_t slices = layout.model().profiles[p].memory_slices;
    sum += per_mille[p] * slices * slices * (n * (n + 1) / 2);
  }
  return sum;
}

int64_t MigRoom::cost(const MigLayout& layout, MigInstance instance) const {
  const model::MigProfile& profile = layout.profile(instance);
  const auto occupied = static_cast<model::MigSlices>(layout.occupied() | profile.slices_from(instance.start));
  return of(layout) - room_[key(occupied, layout.media_taken() || profile.media_extensions)];
}

std::optional<MigInstance> MigRoom::best_start(const MigLayout& layout, MigProfileIndex profile) const {
  std::optional<MigInstance> best;
  int64_t least = 0;
  const model::MigSlices starts = layout.starts_for(profile);
  for (uint8_t s = 0; s < model::kMigMemorySlicesMax; ++s) {
    if (((starts >> s) & 1) == 0) continue;
    const int64_t lost = cost(layout, {profile, s});
    if (best && lost > least) continue;
    best = MigInstance{profile, s};
    least = lost;
  }
  return best;
}

void MigDemand::observe(std::string_view profile, int64_t count) {
  const auto found = asked_.find(profile);
  (found == asked_.end() ? asked_.emplace(profile, 0).first : found)->second += count;
  observed_ += count;
}

const MigRoom& MigDemand::room(const MigModel& model) {
  const auto kept = rooms_.find(model.name);
  if (kept != rooms_.end() && observed_ <= kept->second.observed + kept->second.observed / 8) return kept->second.room;
  std::vector<int64_t> asked;
  for (const model::MigProfile& profile : model.profiles) {
    const auto found = asked_.find(profile.name);
    asked.push_back(found == asked_.end() ? 0 : found->second);
  }
  return rooms_.insert_or_assign(model.name, Kept{MigRoom(model, asked), observed_}).first->second.room;
}

}  // namespace berth::packing
