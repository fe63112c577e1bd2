#include "engine/fragmentation.h"

#include <algorithm>
#include <map>

namespace berth::engine {
namespace {

constexpr std::array<int64_t, 4> kSizes = {1, 2, 4, 8};

// What known pods ask for beside one device of a resource.
struct Habit {
  int64_t cpu_millis = 0, memory_bytes = 0;  // the median
  std::vector<const PodClass*> classes;
};

// The middle of amounts that come so many times each; of two, the lower.
int64_t weighted_median(std::vector<std::pair<int64_t, uint32_t>> amounts) {
  std::sort(amounts.begin(), amounts.end());
  uint64_t all = 0, below = 0;
  for (const auto& [amount, pods] : amounts) all += pods;
  for (const auto& [amount, pods] : amounts)
    if ((below += pods) * 2 >= all) return amount;
  return 0;
}

Habit habit_of(const State& state, ResourceId resource) {
  const std::string& name = state.resources().name(resource);
  const bool shareable = name == "nvidia.com/gpu" || name == "nvidia.com/gpu.shared";
  const auto asks_share = [&](const PodClass& cls) { return shareable && cls.shares_gpu; };
  Habit out;
  std::vector<std::pair<int64_t, uint32_t>> cpu, memory;
  for (uint32_t id = 0; id < state.class_slots(); ++id) {
    const PodClass& cls = state.pod_class(ClassId{id});
    if (cls.pods == 0) continue;
    const int64_t devices = std::max<int64_t>(cls.request(resource), asks_share(cls) ? 1 : 0);
    if (devices == 0) continue;
    out.classes.push_back(&cls);
    cpu.emplace_back(cls.request(kCpu) / devices, cls.pods);
    memory.emplace_back(cls.request(kMemory) / devices, cls.pods);
  }
  out.cpu_millis = weighted_median(std::move(cpu));
  out.memory_bytes = weighted_median(std::move(memory));
  return out;
}

// Whether some pod that asks for the resource may go to the node; where no such pod is known, one that tolerates the
// taint that is named like the resource, as the API server's ExtendedResourceToleration makes them.
bool is_open(const model::Node& node, const Habit& habit, const std::string& resource) {
  if (node.unschedulable) return false;
  const std::vector<model::Toleration> usual = {
      {.key = resource, .value = "", .op = model::TolerationOperator::kExists}};
  const auto open_to = [&](const std::vector<model::Toleration>& tolerations) {
    return model::first_untolerated(node.taints, tolerations) == node.taints.size();
  };
  if (habit.classes.empty()) return open_to(usual);
  return std::any_of(habit.classes.begin(), habit.classes.end(),
                     [&](const PodClass* cls) { return open_to(cls->spec->tolerations); });
}

// Adds a node's free devices to a shape's.
void add_node(const NodeView& node, bool open, const Habit& habit, int64_t free, ShapeRoom& shape) {
  const auto stranded = [&shape](Stranding by) -> int64_t& { return shape.stranded[static_cast<size_t>(by)]; };
  if (!open) {
    stranded(Stranding::kByTaint) += free;
    return;
  }
  const auto times = [](int64_t amount, int64_t asked) {
    return asked <= 0 ? INT64_MAX : std::max<int64_t>(amount, 0) / asked;
  };
  const int64_t by_shape = free / shape.size;
  const int64_t by_cpu = times(node.free(kCpu), habit.cpu_millis * shape.size);
  const int64_t by_memory = times(node.free(kMemory), habit.memory_bytes * shape.size);
  const int64_t by_pods = times(node.free(kPods), 1);
  const int64_t fit = std::min({by_shape, by_cpu, by_memory, by_pods});
  shape.fit += fit;
  stranded(Stranding::kByShape) += free - by_shape * shape.size;
  const Stranding cause = by_cpu == fit      ? Stranding::kByCpu
                          : by_memory == fit ? Stranding::kByMemory
                                             : Stranding::kByPods;
  stranded(cause) += (by_shape - fit) * shape.size;
}

ResourceRoom measure(const State& state, ResourceId id, const Habit& habit, bool replicas) {
  ResourceRoom out;
  out.resource = state.resources().name(id);
  out.replicas = replicas;
  out.cpu_millis = habit.cpu_millis;
  out.memory_bytes = habit.memory_bytes;
  const bool comes_whole = !replicas && out.resource.find("/mig-") == std::string::npos;
  for (const int64_t size : kSizes)
    if (size == 1 || comes_whole) out.shapes.emplace_back().size = size;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    const NodeView node = state.view(slot);
    const model::NodeGpus& gpus = node.node().gpus;
    if (replicas != (gpus.sharing == model::GpuSharing::kReplicas && gpus.resource == out.resource)) continue;
    const int64_t free = std::max<int64_t>(node.free(id), 0);
    out.allocatable += node.allocatable(id);
    out.free += free;
    if (free == 0) continue;
    const bool open = is_open(node.node(), habit, out.resource);
    for (ShapeRoom& shape : out.shapes) add_node(node, open, habit, free, shape);
  }
  return out;
}

}  // namespace

GpuTotals sum_gpus(const State& state) {
  GpuTotals out;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (!state.node(slot).has_gpus) continue;
    const NodeView node = state.view(slot);
    for (uint32_t id = 0; id < state.resources().size(); ++id) {
      if (!state.resources().is_gpu(ResourceId{id})) continue;
      out.allocatable += node.allocatable(ResourceId{id});
      out.used += node.used(ResourceId{id});
    }
  }
  return out;
}

std::vector<ResourceRoom> measure_fragmentation(const State& state) {
  std::map<std::pair<std::string, bool>, ResourceRoom> by_name;
  for (uint32_t id = 0; id < state.resources().size(); ++id) {
    if (!state.resources().is_gpu(ResourceId{id})) continue;
    const Habit habit = habit_of(state, ResourceId{id});
    for (const bool replicas : {false, true}) {
      ResourceRoom room = measure(state, ResourceId{id}, habit, replicas);
      if (room.allocatable > 0) by_name.emplace(std::pair(room.resource, replicas), std::move(room));
    }
  }
  std::vector<ResourceRoom> out;
  for (auto& [name, room] : by_name) out.push_back(std::move(room));
  return out;
}

}  // namespace berth::engine
