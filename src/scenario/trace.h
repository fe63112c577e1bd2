// Trace: nodes and pods from the CSV files of the openb data set (alibaba/clusterdata, cluster-trace-gpu-v2023).
//
// The first line names the columns, in any order; those that are not asked for here are passed over. Everything that is
// wrong in a file is collected, with its line and the way out, and nothing is guessed. Pure functions on text; no I/O.
//
//   nodes   sn, cpu_milli, memory_mib, gpu, model
//   pods    name, cpu_milli, memory_mib, num_gpu, gpu_milli, and, where a list has it, gpu_spec: models, joined by '|'
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "packing/node.h"

namespace berth::scenario {

inline constexpr size_t kTraceNodesMax = 100'000;
inline constexpr size_t kTracePodsMax = 1'000'000;
// More problems of a file than these are counted, not told.
inline constexpr size_t kTraceProblemsMax = 100;

struct Trace {
  std::vector<std::string> models;     // by ModelIndex
  std::vector<packing::Node> nodes;    // in the order of the file
  std::vector<packing::Request> pods;  // in the order of the file
};

// The nodes of `text` into `trace`. `file` only names it.
void read_trace_nodes(std::string_view text, const std::string& file, Trace& trace, api::Problems& problems);
// The pods of `text` into `trace`; the nodes may be read before or after.
void read_trace_pods(std::string_view text, const std::string& file, Trace& trace, api::Problems& problems);
// A sentence for each choice of models that pods have and no node, the most frequent first: these are placed nowhere.
std::vector<std::string> models_without_nodes(const Trace& trace);

}  // namespace berth::scenario
