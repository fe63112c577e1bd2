// What `berth simulate --trace` reaches and costs: every list of pods that it is given, with several policies and
// seeds, and the bounds of packing/packing_bound.h beside them; or the six policies of the FGD paper alone.
//
//   trace_bench [--baselines] [--seeds N] NODES.csv LIST.csv…     one JSON object
//
// One run at a time. Seconds are CPU time of the run alone; reading the files is not counted.
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
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

struct Way {
  std::string_view name;
  std::string_view policy;
  size_t batch = 0;
  uint64_t seeds_max = UINT64_MAX;
};

constexpr Way kWays[] = {{"fgd", "fgd"},
                         {"berth", "berth"},
                         {"berth-told", "berth-told"},
                         {"batch", "berth", kBatchAll},
                         {"batch-1000", "berth", 1000},
                         {"best-fit", "best-fit", 0, 1},
                         {"random", "random", 0, 1}};

constexpr Way kBaselines[] = {{"fgd", "fgd"},
                              {"best-fit", "best-fit"},
                              {"dot-product", "dot-product"},
                              {"gpu-packing", "gpu-packing"},
                              {"gpu-clustering", "gpu-clustering"},
                              {"random", "random"}};

struct Arguments {
  bool baselines = false;
  uint64_t seeds = 10;
  std::vector<std::string> files;
};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
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

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int n = 1; n < argc; ++n) {
    const std::string_view argument = argv[n];
    if (argument == "--baselines") {
      out.baselines = true;
    } else if (argument == "--seeds" && n + 1 < argc) {
      const std::string_view count = argv[++n];
      const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), out.seeds);
      if (error != std::errc() || end != count.data() + count.size() || out.seeds == 0)
        give_up("--seeds takes a whole number, 1 or more");
    } else {
      out.files.emplace_back(argument);
    }
  }
  if (out.files.size() < 2) give_up("usage: trace_bench [--baselines] [--seeds N] NODES.csv LIST.csv...");
  return out;
}

ordered_json measure(const Trace& trace, const Way& way, uint64_t seeds) {
  ordered_json out = {{"name", way.name}, {"allocated", {}}, {"failed", {}}, {"seconds", {}}};
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + std::min(seeds, way.seeds_max); ++seed) {
    const double start = cpu_seconds();
    const auto result =
        berth::scenario::run_trace(trace, {.policy = std::string(way.policy), .seed = seed, .batch = way.batch});
    const double seconds = cpu_seconds() - start;
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
std::vector<CountedRequest> mean_arrivals(const Trace& trace, uint64_t seeds) {
  std::vector<CountedRequest> out;
  absl::flat_hash_map<Request, size_t> places;
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + seeds; ++seed) {
    const auto arrivals = berth::scenario::trace_arrivals(trace, {.seed = seed});
    if (!arrivals) give_up(arrivals.error().message);
    for (const Request& request : *arrivals) {
      const auto [at, is_new] = places.try_emplace(request, out.size());
      if (is_new) out.push_back({.request = request});
      out[at->second].count += 1.0 / static_cast<double>(seeds);
    }
  }
  return out;
}

// In percent of the fleet's devices; null where the program is too large.
ordered_json bounds(const Trace& trace, uint64_t seeds) {
  const std::vector<CountedRequest> arrivals = mean_arrivals(trace, seeds);
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
  const Arguments arguments = parse(argc, argv);
  ordered_json lists = ordered_json::array();
  for (size_t n = 1; n < arguments.files.size(); ++n) {
    const Trace trace = read(arguments.files[0], arguments.files[n]);
    ordered_json list = {{"list", std::filesystem::path(arguments.files[n]).stem().string()}};
    if (!arguments.baselines) list["bounds"] = bounds(trace, arguments.seeds);
    for (const Way& way : arguments.baselines ? std::span<const Way>(kBaselines) : std::span<const Way>(kWays))
      list["ways"].push_back(measure(trace, way, arguments.seeds));
    lists.push_back(std::move(list));
    std::cerr << "." << std::flush;
  }
  std::cerr << "\n";
  std::cout << ordered_json{{"calibration_million_reads_per_s", berth::bench::calibration_million_reads_per_s()},
                            {"seeds", arguments.seeds},
                            {"first_seed", kFirstSeed},
                            {"lists", std::move(lists)}}
            << "\n";
}
