// Rng: a small seeded generator (SplitMix64, Steele et al. 2014) with the same numbers on every machine.
//
// The only randomness that deterministic layers may use; always constructed from a seed that is printed or configured.
#pragma once

#include <cstdint>

#include "base/int128.h"

namespace berth {

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound) { return static_cast<uint64_t>((static_cast<Uint128>(next()) * bound) >> 64); }
  // Uniform in [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(static_cast<uint64_t>(high - low) + 1));
  }
  bool chance(uint64_t percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

}  // namespace berth
