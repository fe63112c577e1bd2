// FragmentPoints: how a gain in fragment is scored, in whole points (Weng et al., "Beware of Fragmentation", ATC '23,
// §4.2): 100 · sigmoid(gain in devices), cut.
//
// The inverse is tabled, so that gains are compared exactly. The cut matters: nodes on which little changes become
// equals, and whole ones stay whole. Immutable; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "packing/fragment.h"

namespace berth::packing {

class FragmentPoints {
 public:
  static constexpr size_t kPoints = 100;

  explicit FragmentPoints(const FragmentMeasure& measure);

  // 0 … 99. `gain` is how much a fragment shrinks, as the measure measures it.
  int32_t of(int64_t gain) const;

 private:
  std::array<int64_t, kPoints> gain_for_{};  // gain_for_[n]: the least that gives n points; [0] is not used
};

}  // namespace berth::packing
