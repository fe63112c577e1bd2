// Forecast: when a pod or workload that waits will start.
//
// Two rehearsals in a second engine, which is given what this one knows and then nothing but the ends of those that
// run: in the first they last as long as they declare, in the other as much of that as the median of those that have
// ended lately. What starts meanwhile ends by what it declares, too. Whoever comes later is not foreseen, and who does
// not declare a runtime runs for ever. So p90 is what holds if everybody keeps to what he has declared and nobody of
// more importance comes, as backfill promises it (engine/engine_reserve.h).
#pragma once

#include <absl/container/btree_map.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "base/time.h"

namespace berth::engine {

struct Forecast {
  std::optional<Duration> p50 = {}, p90 = {};  // from now; both or neither; p50 <= p90
  std::string unknown = {};                    // why there are none
  int64_t blockers = 0;                        // pods, or workloads that hold quota, that are in its way
  int64_t declaring = 0;                       // of these: declare a runtime that has not passed
};

// What a rehearsal may cost; beyond that nothing is known.
struct ForecastLimits {
  int64_t cycles = 10'000;
  int64_t work = 20'000'000;  // candidates examined
  // UIDs of workloads that were admitted and whose pods are refused: nobody knows when these are made, and so when they
  // end.
  std::set<std::string> refused = {};
};

// By UID, of all pods and workloads that wait.
using Forecasts = absl::btree_map<std::string, Forecast>;

}  // namespace berth::engine
