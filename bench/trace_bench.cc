// What `berth simulate --trace` reaches and costs: every list of pods that it is given, with several policies and
// seeds, and the bounds of packing/packing_bound.h beside them.
//
//   trace_bench NODES.csv LIST.csv…     one JSON object
//
// One run at a time. Seconds are of the run alone; reading the files is not counted.
#include <absl/container/flat_hash_map.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/calibration.h"
#include "packing/packing_bound.h"
#include "scenario/trace_run.h"

namespace {

using berth::packing::CountedRequest;
using berth::packing::Request;
using berth::scenario::kBatchAll;
using berth::scenario::Trace;
using nlohmann::ordered_json;

constexpr uint64_t kFirstSeed = 42;
constexpr uint64_t kSeeds = 10;

struct Way {
  std::string_view name;
  std::string_view policy;
  size_t batch = 0;
  uint64_t seeds = kSeeds;
};

constexpr Way kWays[] = {{"fgd", "fgd"},
                         {"berth", "berth"},
                         {"berth-told", "berth-told"},
                         {"batch", "berth", kBatchAll},
                         {"batch-1000", "berth", 1000},
                         {"best-fit", "best-fit", 0, 1},
                         {"random", "random", 0, 1}};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return file ? out.str() : "";
}

[[noreturn]] void give_up(const std::string& why) {
  std::cerr << "trace_bench: " << why << "\n";
  std::exit(1);
}

Trace read(const std::string& nodes, const std::string& pods) {
  Trace trace;
  berth::api::Problems problems;
  berth::scenario::read_trace_nodes(text_of(nodes), nodes, trace, problems);
  berth::scenario::read_trace_pods(text_of(pods), pods, trace, problems);
  if (!problems.empty()) give_up(berth::api::to_string(problems.front()));
  return trace;
}

ordered_json measure(const Trace& trace, const Way& way) {
  ordered_json out = {{"name", way.name}, {"allocated", {}}, {"failed", {}}, {"seconds", {}}};
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + way.seeds; ++seed) {
    const auto start = std::chrono::steady_clock::now();
    const auto result =
        berth::scenario::run_trace(trace, {.policy = std::string(way.policy), .seed = seed, .batch = way.batch});
    const double seconds = seconds_since(start);
    if (!result) give_up(result.error().message);
    out["allocated"].push_back(result->points.back().gpu_allocation_percent);
    out["failed"].push_back(result->failed);
    out["seconds"].push_back(seconds);
    if (seed != kFirstSeed) continue;
    for (const auto& point : result->points) {
      out["curve"]["allocated"].push_back(point.gpu_allocation_percent);
      out["curve"]["fragmented"].push_back(point.fragmentation_ratio_percent);
    }
  }
  return out;
}

// How often each request comes, the mean over the seeds.
std::vector<CountedRequest> mean_arrivals(const Trace& trace) {
  std::vector<CountedRequest> out;
  absl::flat_hash_map<Request, size_t> places;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + kSeeds; ++seed) {
    const auto arrivals = berth::scenario::trace_arrivals(trace, {.seed = seed});
    if (!arrivals) give_up(arrivals.error().message);
    for (const Request& request : *arrivals) {
      const auto [at, is_new] = places.try_emplace(request, out.size());
      if (is_new) out.push_back({.request = request});
      out[at->second].count += 1.0 / kSeeds;
    }
  }
  return out;
}

// In percent of the fleet's devices; null where the program is too large.
ordered_json bounds(const Trace& trace) {
  const std::vector<CountedRequest> arrivals = mean_arrivals(trace);
  double devices = 0;
  for (const auto& node : trace.nodes) devices += node.devices().count;
  const auto percent = [&](std::optional<double> milli) {
    return milli ? ordered_json(*milli / berth::packing::kMilliPerDevice / devices * 100) : ordered_json();
  };
  return {{"online", percent(berth::packing::online_bound_milli(devices, arrivals))},
          {"batch", percent(berth::packing::batch_bound_milli(trace.nodes, arrivals))}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) give_up("usage: trace_bench NODES.csv LIST.csv...");
  ordered_json lists = ordered_json::array();
  for (int n = 2; n < argc; ++n) {
    const Trace trace = read(argv[1], argv[n]);
    ordered_json list = {{"list", std::filesystem::path(argv[n]).stem().string()}, {"bounds", bounds(trace)}};
    for (const Way& way : kWays) list["ways"].push_back(measure(trace, way));
    lists.push_back(std::move(list));
    std::cerr << "." << std::flush;
  }
  std::cerr << "\n";
  std::cout << ordered_json{{"calibration_million_reads_per_s", berth::bench::calibration_million_reads_per_s()},
                            {"seeds", kSeeds},
                            {"first_seed", kFirstSeed},
                            {"lists", std::move(lists)}}
            << "\n";
}
