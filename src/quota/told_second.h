// Moments as people are told of them, in whole seconds.
#pragma once

#include "base/time.h"

namespace berth::quota {

// The second from which on the moment has come, the same in all that is told of it: what two readings of a clock differ
// by does not count.
inline Time told_second(Time wall) {
  constexpr int64_t kSecond = Duration::seconds(1).nanos, kSame = kSecond / 100;
  return Time{(wall.nanos + kSecond - kSame - 1) / kSecond * kSecond};
}

}  // namespace berth::quota
