// How long the properties of all layers look.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace berth {

/// The number of random histories that a property plays: `many` with BERTH_LONG=1, else `usual`; where sanitizers make
/// each about fifteen times as slow, a quarter of that. They look for what no outcome shows, which few histories bring
/// about as well as many, and the release build plays all in the same run of the tests.
inline uint64_t histories_to_play(uint64_t usual, uint64_t many) {
  if (std::getenv("BERTH_LONG") != nullptr) return many;
#ifdef __SANITIZE_ADDRESS__
  return (usual + 3) / 4;
#else
  return usual;
#endif
}

}  // namespace berth
