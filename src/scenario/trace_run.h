// TraceRun: the protocol of Weng et al., "Beware of Fragmentation" (ATC '23, §6): a fleet is filled until it overflows.
//
// The pods of the list arrive first, in an order that the seed draws; then pods drawn from the list, with replacement,
// until what has arrived asks for `inflate` times the GPUs of the fleet. None leaves, and what does not fit is dropped;
// or, with batches, pods wait and are planned together (packing/batch_queue.h). The nodes stand in one random order,
// the same for every run. A policy may be told the list beforehand. Deterministic: the same trace, policy and seed give
// the same result.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/trace.h"

namespace berth::scenario {

inline constexpr int64_t kInflateMilliMin = 10;  // one point
inline constexpr int64_t kInflateMilliMax = 10'000;
// Pods that may arrive in one run.
inline constexpr int64_t kTraceArrivalsMax = 10'000'000;
// The typical mix stands for so many percent of the list's pods.
inline constexpr int64_t kTypicalPercent = 95;
// A batch that sees every pod that waits.
inline constexpr size_t kBatchAll = std::numeric_limits<size_t>::max();

struct TraceOptions {
  std::string policy = "berth";  // of packing::placement_policies(); with batches, one that plans_batches()
  uint64_t seed = 0;
  int64_t inflate_milli = 1300;  // in thousandths of the fleet's GPUs; kInflateMilliMin … kInflateMilliMax
  // A batch is planned each time that so many pods have arrived, and sees as many; with kBatchAll once, at the end.
  // 0: each pod is placed or dropped as it arrives.
  size_t batch = 0;
};

// After the arrival with which the demand reached that percentage of the fleet's GPUs.
struct TracePoint {
  double gpu_allocation_percent = 0;
  double fragmentation_ratio_percent = 0;  // of what is free; 0 when nothing is
};

struct TraceResult {
  std::string policy;
  uint64_t seed = 0;
  size_t batch = 0;                // as in the options
  int64_t pods = 0;                // that arrived
  int64_t failed = 0;              // of these: did not fit, or wait in the end
  std::vector<TracePoint> points;  // for 1 %, 2 %, …, as far as the inflation goes
};

// Whether batches may be planned with the policy: Berth's own, as the plan weighs what its policy does.
bool plans_batches(std::string_view policy);

// Who arrives, in order. InvalidInput as of run_trace().
Result<std::vector<packing::Request>> trace_arrivals(const Trace& trace, const TraceOptions& options);

// Runs to the end. InvalidInput where the trace or the options make no run. `progress` is told now and then how many
// milli-GPUs of how many have arrived.
Result<TraceResult> run_trace(const Trace& trace, const TraceOptions& options,
                              const std::function<void(int64_t arrived, int64_t target)>& progress = nullptr);

// "berth", or "berth, batches of 1000".
std::string trace_policy(const TraceResult& result);
// The result as one JSON object, its keys in a fixed order; or as a table of every tenth percent, for people.
std::string trace_json(const TraceResult& result, double elapsed_s);
std::string trace_table(const TraceResult& result, double elapsed_s);

}  // namespace berth::scenario
