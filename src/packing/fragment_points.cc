#include "packing/fragment_points.h"

#include <cmath>

namespace berth::packing {

FragmentPoints::FragmentPoints(const FragmentMeasure& measure) {
  for (size_t points = 1; points < kPoints; ++points) {
    const double share = static_cast<double>(points) / kPoints;
    const double devices = std::log(share / (1 - share));
    const double scale = static_cast<double>(kMilliPerDevice) * static_cast<double>(measure.unit());
    gain_for_[points] = static_cast<int64_t>(std::ceil(devices * scale));
  }
}

int32_t FragmentPoints::of(int64_t gain) const {
  size_t low = 0;  // the last entry that is not above the gain
  for (size_t step = 64; step > 0; step /= 2)
    if (low + step < kPoints && gain_for_[low + step] <= gain) low += step;
  return static_cast<int32_t>(low);
}

}  // namespace berth::packing
