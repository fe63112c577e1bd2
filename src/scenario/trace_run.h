// TraceRun: the protocol of Weng et al., "Beware of Fragmentation" (ATC '23, §6): a fleet is filled until it overflows.
//
// The pods of the list arrive first, in an order that the seed draws; then pods drawn from the list, with replacement,
// until what has arrived asks for `inflate` times the GPUs of the fleet. None leaves, and what does not fit is dropped.
// The nodes stand in one random order, the same for every run. A policy may be told the list beforehand.
// Deterministic: the same trace, policy and seed give the same result.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/trace.h"

namespace berth::scenario {

inline constexpr int64_t kInflateMilliMax = 10'000;
// Pods that may arrive in one run.
inline constexpr int64_t kTraceArrivalsMax = 10'000'000;
// The typical mix stands for so many percent of the list's pods.
inline constexpr int64_t kTypicalPercent = 95;

struct TraceOptions {
  std::string policy = "berth";  // of packing::placement_policies()
  uint64_t seed = 0;
  int64_t inflate_milli = 1300;  // in thousandths of the fleet's GPUs; 1 … kInflateMilliMax
};

// After the arrival with which the demand reached that percentage of the fleet's GPUs.
struct TracePoint {
  double gpu_allocation_percent = 0;
  double fragmentation_ratio_percent = 0;  // of what is free; 0 when nothing is
};

struct TraceResult {
  std::string policy;
  uint64_t seed = 0;
  int64_t pods = 0;                // that arrived
  int64_t failed = 0;              // of these: did not fit
  std::vector<TracePoint> points;  // for 1 %, 2 %, …, as far as the inflation goes
};

// Runs to the end. InvalidInput where the trace or the options make no run. `progress` is told now and then how many
// milli-GPUs of how many have arrived.
Result<TraceResult> run_trace(const Trace& trace, const TraceOptions& options,
                              const std::function<void(int64_t arrived, int64_t target)>& progress = nullptr);

// The result as one JSON object, its keys in a fixed order; or as a table of every tenth percent, for people.
std::string trace_json(const TraceResult& result, double elapsed_s);
std::string trace_table(const TraceResult& result, double elapsed_s);

}  // namespace berth::scenario
