// ShareWorth: what a remnant of a device is worth, as a part of an idle device, to the shares that a fleet sees.
//
// Packed as well as can be, in fractions, the shares need a number of devices: the minimum of a linear program over all
// patterns of shares that one device holds (Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock
// Problem", 1961). Its dual prices say what one share of a size stands for: 470 for half a device where two go on one,
// 650 for two thirds where 320 stands for one; 160 for nothing where every 810 leaves 190 that nothing else can use.
// A remnant is worth the dearest set of shares that it holds. Hence splitting a remnant never makes worth, and what it
// loses is waste.
//
// A plain value; any thread. Deterministic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "packing/node.h"

namespace berth::packing {

// More sizes than these, the rarer, are left out: what it costs grows with the cube.
inline constexpr size_t kShareSizesMax = 64;

struct ShareCount {
  int32_t milli = 0;  // 1 … 999
  int64_t count = 0;  // at least 1
};

class ShareWorth {
 public:
  // Sizes differ. Without any, only an idle device has worth.
  explicit ShareWorth(std::vector<ShareCount> shares);

  // 0 for nothing to 1 for an idle device; `milli` is 0 … 1000.
  double of(int32_t milli) const { return worth_[static_cast<size_t>(milli)]; }
  double of(const Devices& devices) const;
  // What is lost when a share is taken from a device with `free_milli` free: at least 0, but for rounding.
  double waste(int32_t free_milli, int32_t share_milli) const {
    return of(free_milli) - of(free_milli - share_milli) - of(share_milli);
  }

 private:
  std::array<double, kMilliPerDevice + 1> worth_{};
};

}  // namespace berth::packing
