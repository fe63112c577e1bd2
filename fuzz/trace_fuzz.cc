// Trace files: nodes, a line "===", and pods. What is read is within the bounds, and what can be run is run.
#include "base/check.h"
#include "packing/placement_policy.h"
#include "scenario/trace_run.h"

namespace {

using berth::scenario::Trace;

// So many pods would arrive at most; more are no gain here.
constexpr int64_t kArrivalsMax = 2000;

bool is_short(const Trace& trace) {
  int64_t capacity = 0;
  int64_t demand = 0;
  for (const auto& node : trace.nodes) capacity += node.devices().free();
  for (const auto& pod : trace.pods) demand += pod.device_milli();
  return demand > 0 && capacity * static_cast<int64_t>(trace.pods.size()) / demand <= kArrivalsMax;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  constexpr std::string_view kBetween = "===\n";
  const size_t middle = text.find(kBetween);
  Trace trace;
  berth::api::Problems problems;
  berth::scenario::read_trace_nodes(text.substr(0, middle), "nodes", trace, problems);
  if (middle != std::string_view::npos)
    berth::scenario::read_trace_pods(text.substr(middle + kBetween.size()), "pods", trace, problems);
  for (const auto& problem : problems)
    for (const char c : berth::api::to_string(problem)) berth::check(c >= ' ' || c < 0, "a problem can be shown");
  berth::check(trace.models.size() <= berth::packing::kModelsMax, "models within the bound");
  if (!is_short(trace)) return 0;
  for (const auto& policy : berth::packing::placement_policies()) {
    const auto result = berth::scenario::run_trace(trace, {.policy = std::string(policy.name), .inflate_milli = 1000});
    if (!result) continue;
    berth::check(result->failed <= result->pods && result->points.size() == 100, "a run comes to its end");
    for (const auto& point : result->points)
      berth::check(point.gpu_allocation_percent >= 0 && point.gpu_allocation_percent <= 100 &&
                       point.fragmentation_ratio_percent >= 0 && point.fragmentation_ratio_percent <= 100,
                   "parts of a whole");
  }
  return 0;
}
