// The best plan for MIG devices by trying everything, to hold plan_geometry() against. Obviously right, and slow.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "packing/mig_geometry.h"

namespace berth::packing {

// What a plan is judged by; greater is better.
using GeometryScore = std::tuple<int64_t, int, int64_t>;  // memory slices served, - devices changed, room

// All sets of instances that fit beside `base`, as layouts with both.
inline std::vector<model::MigLayout> all_beside(const model::MigLayout& base) {
  std::vector<model::MigLayout> out;
  const std::function<void(model::MigLayout, uint8_t)> grow = [&](const model::MigLayout& now, uint8_t from) {
    if (from == model::kMigMemorySlicesMax) return out.push_back(now);
    grow(now, from + 1);
    for (model::MigProfileIndex p = 0; p < now.model().profiles.size(); ++p) {
      if (!now.fits({p, from})) continue;
      model::MigLayout next = now;
      next.place({p, from});
      grow(next, from + 1);
    }
  };
  grow(base, 0);
  return out;
}

// One way for a device: the instances that serve, beside those in use.
struct WayOfDevice {
  MigWaiting serves;
  bool changes = false;  // needs an instance that `layout` has not
  int64_t room = 0;
};

// All ways that serve nothing but what waits; of those that serve and change the same, that with the most room.
inline std::vector<WayOfDevice> ways_of(const MigDevice& device, const MigWaiting& waiting, const MigRoom& room) {
  std::map<std::pair<MigWaiting, bool>, WayOfDevice> best;
  for (const model::MigLayout& layout : all_beside(device.used)) {
    WayOfDevice way;
    bool wanted = true;
    for (const model::MigInstance instance : layout.instances()) {
      if (device.used.contains(instance)) continue;
      const std::string& name = layout.profile(instance).name;
      const auto waits = waiting.find(name);
      wanted = wanted && waits != waiting.end() && ++way.serves[name] <= waits->second;
      way.changes = way.changes || !device.layout.contains(instance);
    }
    way.room = room.of(layout);
    if (!wanted) continue;
    WayOfDevice& kept = best.try_emplace({way.serves, way.changes}, way).first->second;
    if (way.room > kept.room) kept = way;
  }
  std::vector<WayOfDevice> out;
  for (const auto& [key, way] : best) out.push_back(way);
  return out;
}

// The best score over all combinations of ways; `slices` is what each name counts with.
inline GeometryScore best_score(const std::vector<std::vector<WayOfDevice>>& ways, const MigWaiting& waiting,
                                const std::map<std::string, int64_t>& slices) {
  GeometryScore best{-1, 0, 0};
  const std::function<void(size_t, const MigWaiting&, GeometryScore)> go = [&](size_t d, const MigWaiting& rest,
                                                                               const GeometryScore& score) {
    if (d == ways.size()) {
      best = std::max(best, score);
      return;
    }
    for (const WayOfDevice& way : ways[d]) {
      MigWaiting left = rest;
      GeometryScore then = score;
      bool enough = true;
      for (const auto& [name, count] : way.serves) {
        left[name] -= count;
        enough = enough && left[name] >= 0;
        std::get<0>(then) += count * slices.at(name);
      }
      if (!enough) continue;
      std::get<1>(then) -= way.changes ? 1 : 0;
      std::get<2>(then) += way.room;
      go(d + 1, left, then);
    }
  };
  go(0, waiting, {0, 0, 0});
  return best;
}

}  // namespace berth::packing
