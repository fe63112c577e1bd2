// The calibration kernel: what a machine is worth, timed in the run whose figures it stands beside.
#pragma once

#include <cstdint>
#include <ctime>
#include <vector>

#include "base/rng.h"

namespace berth::bench {

// Dependent random reads over 64 MiB, in millions per second of CPU time.
inline double calibration_million_reads_per_s() {
  const auto seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  std::vector<uint32_t> ring(16 << 20);
  Rng rng(1);
  for (uint32_t& next : ring) next = static_cast<uint32_t>(rng.below(ring.size()));
  const double start = seconds();
  uint32_t at = 0;
  constexpr int kReads = 4'000'000;
  for (int i = 0; i < kReads; ++i) at = ring[at] ^ (at & 1);
  const double elapsed = seconds() - start;
  return at == 0xFFFFFFFF ? 0 : kReads / elapsed / 1e6;
}

}  // namespace berth::bench
