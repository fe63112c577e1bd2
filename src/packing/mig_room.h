// MigRoom: how useful what is free on a MIG device is, to the slices that are asked for.
//
//   room = sum over profiles of  share asked for * memory slices^2 * n (n + 1) / 2
//
// where n is how many more instances of that profile alone would fit. A place that n counts is worth its memory
// slices to whoever asks; once more its memory slices, because a large instance has few starts and what blocks one is
// hard to undo; and n counts as a triangle, so that room is worth more together than strewn over devices. Placing
// where this falls least is the greedy rule of Zambianco et al., "An Online Fragmentation-Aware GPU Scheduler for
// Multi-Tenant MIG-based Clouds", arXiv 2511.18906, with a measure that knows the mix. What the figures are:
// docs/mig.md. Whatever is free depends only on the memory slices taken and on whether +me is, so a table over all
// reachable layouts has a few hundred entries. An immutable value; any thread.
//
// Invariant: an instance more never makes room, so every cost is at least 0.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/mig.h"

namespace berth::packing {

class MigRoom {
 public:
  // `asked`: for each profile of the model, how often it is asked for; at least 0. Only their ratios matter.
  MigRoom(const model::MigModel& model, std::span<const int64_t> asked);

  // At least 0; the layout is one of the model's.
  int64_t of(const model::MigLayout& layout) const { return room_[key(layout)]; }
  // The room that is lost when the instance, which fits, is placed.
  int64_t cost(const model::MigLayout& layout, model::MigInstance instance) const;
  // Where the profile costs least room, the last of equal starts; none where it does not fit.
  std::optional<model::MigInstance> best_start(const model::MigLayout& layout, model::MigProfileIndex profile) const;

 private:
  // All that tells layouts apart which leave different room.
  static size_t key(model::MigSlices occupied, bool media_taken) {
    return (size_t{occupied} << 1) | (media_taken ? 1 : 0);
  }
  static size_t key(const model::MigLayout& layout) { return key(layout.occupied(), layout.media_taken()); }
  int64_t room_left(const model::MigLayout& layout, std::span<const int64_t> per_mille) const;

  std::array<int64_t, size_t{2} << model::kMigMemorySlicesMax> room_{};
};

// MigDemand: how often each profile has been asked for, and the room that follows from it. One thread.
class MigDemand {
 public:
  // `count` slices of the profile, by NVIDIA's name for it, were asked for; at least 0.
  void observe(std::string_view profile, int64_t count = 1);
  // By name, how often.
  const std::map<std::string, int64_t, std::less<>>& asked() const { return asked_; }
  // Computed anew (microseconds) once the observations have grown by an eighth since; before the first all profiles
  // count alike. Valid until the next call for the same model.
  const MigRoom& room(const model::MigModel& model);

 private:
  struct Kept {
    MigRoom room;
    int64_t observed;  // when it was computed
  };

  std::map<std::string, int64_t, std::less<>> asked_;
  int64_t observed_ = 0;
  std::map<std::string, Kept> rooms_;  // by the model's name
};

}  // namespace berth::packing
