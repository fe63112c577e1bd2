#include "scenario/trace.h"

#include <absl/container/flat_hash_set.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/printable.h"
#include "scenario/trace_csv.h"

namespace berth::scenario {
namespace {

using packing::kDevicesMax;
using packing::kMilliPerDevice;

constexpr int64_t kCpuMilliMax = 100'000'000;
constexpr int64_t kMemoryMibMax = int64_t{1} << 30;
constexpr int64_t kBytesPerMib = int64_t{1} << 20;

// The model's index, a new one for a new name; none when there are too many.
std::optional<packing::ModelIndex> model_index(std::string_view name, Trace& trace) {
  const auto at = std::find(trace.models.begin(), trace.models.end(), name);
  if (at == trace.models.end()) {
    if (trace.models.size() == packing::kModelsMax) return std::nullopt;
    trace.models.emplace_back(name);
    return static_cast<packing::ModelIndex>(trace.models.size() - 1);
  }
  return static_cast<packing::ModelIndex>(at - trace.models.begin());
}

std::string too_many_models() {
  return fmt::format("more than {} models in all; leave out those that do not matter", packing::kModelsMax);
}

// Columns of the node file.
enum : size_t { kNodeName, kNodeCpu, kNodeMemory, kNodeGpus, kNodeModel };
// Columns of a pod list.
enum : size_t { kPodName, kPodCpu, kPodMemory, kPodGpus, kPodGpuMilli, kPodModels };

// Whether the name in the first column is there, and new; the problem is told.
bool named(CsvTable& table, absl::flat_hash_set<std::string_view>& names) {
  const std::string_view name = table.field(0);
  if (name.empty()) table.wrong(0, "it is empty; give each line a name");
  else if (!names.insert(name).second)
    table.wrong(0, fmt::format("'{}' was there before; names differ", printable(name, 80)));
  else return true;
  return false;
}

// The models that a pod may run on: "V100M16|V100M32"; all where it is empty.
std::optional<packing::ModelSet> allowed_models(CsvTable& table, Trace& trace) {
  std::string_view text = table.field(kPodModels);
  packing::ModelSet models = 0;
  while (!text.empty()) {
    const size_t bar = text.find('|');
    const std::string_view name = text.substr(0, bar);
    text.remove_prefix(bar == std::string_view::npos ? text.size() : bar + 1);
    if (name.empty()) continue;
    const auto index = model_index(name, trace);
    if (!index) {
      table.wrong(kPodModels, too_many_models());
      return std::nullopt;
    }
    models |= packing::ModelSet{1} << *index;
  }
  return models == 0 ? packing::kAnyModel : models;
}

// Whether the two columns together make a request; the problem is told.
bool gpus_make_sense(CsvTable& table, int64_t gpus, int64_t milli) {
  if (gpus == 0 && milli != 0) table.wrong(kPodGpuMilli, fmt::format("{} of no GPU; write 0, or num_gpu 1", milli));
  else if (gpus == 1 && milli == 0) table.wrong(kPodGpuMilli, "0 of a GPU; write 1 to 1000, or num_gpu 0");
  else if (gpus > 1 && milli != kMilliPerDevice)
    table.wrong(kPodGpuMilli, fmt::format("{} of each of {} GPUs; only one GPU can be shared: write 1000, or num_gpu 1",
                                          milli, gpus));
  else return true;
  return false;
}

}  // namespace

void read_trace_nodes(std::string_view text, const std::string& file, Trace& trace, api::Problems& problems) {
  CsvTable table(text, file, {"sn", "cpu_milli", "memory_mib", "gpu", "model"}, {}, problems);
  absl::flat_hash_set<std::string_view> names;
  while (table.next()) {
    if (trace.nodes.size() == kTraceNodesMax)
      return table.wrong(fmt::format("more than {} nodes; split the file", kTraceNodesMax));
    const bool has_name = named(table, names);
    const auto cpu = table.number(kNodeCpu, kCpuMilliMax);
    const auto memory = table.number(kNodeMemory, kMemoryMibMax);
    const auto gpus = table.number(kNodeGpus, kDevicesMax);
    const std::string_view model = table.field(kNodeModel);
    if (gpus && *gpus > 0 && model.empty()) table.wrong(kNodeModel, "it is empty; name the model of the node's GPUs");
    const auto index = gpus && *gpus == 0 ? 0 : model_index(model, trace);
    if (!index) table.wrong(kNodeModel, too_many_models());
    if (has_name && cpu && memory && gpus && index)
      trace.nodes.emplace_back(*cpu, *memory * kBytesPerMib, static_cast<int>(*gpus), *index);
  }
}

void read_trace_pods(std::string_view text, const std::string& file, Trace& trace, api::Problems& problems) {
  CsvTable table(text, file, {"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}, {"gpu_spec"}, problems);
  absl::flat_hash_set<std::string_view> names;
  while (table.next()) {
    if (trace.pods.size() == kTracePodsMax)
      return table.wrong(fmt::format("more than {} pods; split the file", kTracePodsMax));
    const bool has_name = named(table, names);
    const auto cpu = table.number(kPodCpu, kCpuMilliMax);
    const auto memory = table.number(kPodMemory, kMemoryMibMax);
    const auto gpus = table.number(kPodGpus, kDevicesMax);
    const auto milli = table.number(kPodGpuMilli, kMilliPerDevice);
    const auto models = allowed_models(table, trace);
    const bool sensible = !gpus || !milli || gpus_make_sense(table, *gpus, *milli);
    if (!has_name || !cpu || !memory || !gpus || !milli || !models || !sensible) continue;
    trace.pods.push_back({.cpu_milli = *cpu,
                          .memory_bytes = *memory * kBytesPerMib,
                          .devices = static_cast<int32_t>(*gpus),
                          .milli_each = static_cast<int32_t>(*milli),
                          .models = *gpus == 0 ? packing::kAnyModel : *models});
  }
}

std::vector<std::string> models_without_nodes(const Trace& trace) {
  constexpr size_t kToldMax = 5;
  packing::ModelSet there = 0;
  for (const packing::Node& node : trace.nodes)
    if (node.devices().count > 0) there |= packing::ModelSet{1} << node.model();
  std::map<packing::ModelSet, int64_t> pods;
  for (const packing::Request& pod : trace.pods)
    if (pod.devices > 0 && (pod.models & there) == 0) ++pods[pod.models];
  std::vector<std::pair<int64_t, packing::ModelSet>> most;
  for (const auto& [models, count] : pods) most.emplace_back(-count, models);
  std::ranges::sort(most);
  std::vector<std::string> out;
  for (const auto& [count, models] : most) {
    if (out.size() == kToldMax) {
      out.push_back(fmt::format("so it is of {} more choices of models", most.size() - kToldMax));
      break;
    }
    std::string names;
    for (size_t i = 0; i < trace.models.size(); ++i)
      if (((models >> i) & 1) != 0) names += (names.empty() ? "" : "|") + printable(trace.models[i], 80);
    const std::string what = models == packing::kAnyModel ? "a GPU" : fmt::format("GPUs of gpu_spec '{}'", names);
    out.push_back(fmt::format("no node has {}, which {} of {} pods ask for: they are placed nowhere", what, -count,
                              trace.pods.size()));
  }
  return out;
}

}  // namespace berth::scenario
