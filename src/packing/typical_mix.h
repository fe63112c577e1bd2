// TypicalMix: which requests a fleet sees, and how often: what its free devices are worth is judged by these.
//
// Memory is left out: as in the paper (Weng et al., "Beware of Fragmentation", ATC '23, §4), devices are stranded by
// CPU, by the other devices, and by the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packing/node.h"

namespace berth::packing {

// What a measure of it costs grows with the square of this.
inline constexpr size_t kTypicalRequestsMax = 512;

struct TypicalRequest {
  Request request;  // memory_bytes is 0
  int64_t count = 0;
};

struct TypicalMix {
  std::vector<TypicalRequest> requests;
  int64_t count = 0;  // of all of them
};

// The most frequent of `requests`, differences in memory aside, until they stand for `percent` of them or are
// kTypicalRequestsMax. Equally frequent ones are taken with the larger CPU first, then the larger share, then more
// devices, then the larger model set.
TypicalMix typical_mix(const std::vector<Request>& requests, int64_t percent);

}  // namespace berth::packing
