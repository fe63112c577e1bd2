#include "engine/fragmentation.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/idle_gpus.h"
#include "engine/queued_workloads.h"
#include "model/mig.h"

namespace berth::engine {
namespace {

constexpr std::array<int64_t, 4> kSizes = {1, 2, 4, 8};
constexpr size_t kQueuedMax = 1000;  // workloads

// What known pods ask for beside one device of a resource.
struct Habit {
  int64_t cpu_millis = 0, memory_bytes = 0;                        // the median
  std::vector<const std::vector<model::Toleration>*> tolerations;  // of each kind of them
};

// The middle of amounts that come so many times each; of two, the lower.
int64_t weighted_median(std::vector<std::pair<int64_t, uint64_t>> amounts) {
  std::sort(amounts.begin(), amounts.end());
  uint64_t all = 0, below = 0;
  for (const auto& [amount, pods] : amounts) all += pods;
  for (const auto& [amount, pods] : amounts)
    if ((below += pods) * 2 >= all) return amount;
  return 0;
}

// A GPU resource by name. Of a profile that no node advertises and no pod asks for the engine knows no id.
struct Resource {
  std::string name;
  std::optional<ResourceId> id;
};

Habit habit_of(const State& state, const Resource& resource, std::span<const QueuedPods> queued) {
  const std::string& name = resource.name;
  const bool shareable = name == "nvidia.com/gpu" || name == "nvidia.com/gpu.shared";
  Habit out;
  std::vector<std::pair<int64_t, uint64_t>> cpu, memory;
  const auto count = [&](uint64_t pods, int64_t asked, bool shares, int64_t cpu_millis, int64_t memory_bytes,
                         const std::vector<model::Toleration>& tolerations) {
    const int64_t devices = std::max<int64_t>(asked, shareable && shares ? 1 : 0);
    if (devices == 0) return;
    out.tolerations.push_back(&tolerations);
    cpu.emplace_back(cpu_millis / devices, pods);
    memory.emplace_back(memory_bytes / devices, pods);
  };
  for (uint32_t id = 0; id < state.class_slots(); ++id) {
    const PodClass& cls = state.pod_class(ClassId{id});
    if (cls.pods > 0)
      count(cls.pods, resource.id ? cls.request(*resource.id) : 0, cls.shares_gpu, cls.request(kCpu),
            cls.request(kMemory), cls.spec->tolerations);
  }
  for (const QueuedPods& each : queued)
    count(static_cast<uint64_t>(each.pods), each.requests.get(name), each.shares_gpu, each.requests.get("cpu"),
          each.requests.get("memory"), each.tolerations);
  out.cpu_millis = weighted_median(std::move(cpu));
  out.memory_bytes = weighted_median(std::move(memory));
  return out;
}

// Whether some pod that asks for the resource may go to the node, whose GPUs are not being cut; where no such pod is
// known, one that tolerates the taint that is named like the resource, as the API server's ExtendedResourceToleration
// makes them.
bool is_open(const NodeView& view, const Habit& habit, const std::string& resource) {
  const model::Node& node = view.node();
  if (node.unschedulable || !node.set_aside.empty() || view.is_being_cut()) return false;
  const std::vector<model::Toleration> usual = {
      {.key = resource, .value = "", .op = model::TolerationOperator::kExists}};
  const auto open_to = [&](const std::vector<model::Toleration>& tolerations) {
    return model::first_untolerated(node.taints, tolerations) == node.taints.size();
  };
  if (habit.tolerations.empty()) return open_to(usual);
  return std::ranges::any_of(habit.tolerations, [&](const auto* tolerations) { return open_to(*tolerations); });
}

// How many requests of the shape so many free devices and the rest of the node suffice for, and by what.
struct NodeRoom {
  int64_t by_shape = 0, by_cpu = 0, by_memory = 0, by_pods = 0;
  int64_t fit() const { return std::min({by_shape, by_cpu, by_memory, by_pods}); }
};

NodeRoom room_on(const NodeView& node, const Habit& habit, int64_t free, int64_t size) {
  const auto times = [](int64_t amount, int64_t asked) {
    return asked <= 0 ? INT64_MAX : std::max<int64_t>(amount, 0) / asked;
  };
  return {free / size, times(node.free(kCpu), habit.cpu_millis * size),
          times(node.free(kMemory), habit.memory_bytes * size), times(node.free(kPods), 1)};
}

// Adds a node's free devices to a shape's.
void add_node(const NodeView& node, bool open, const Habit& habit, int64_t free, ShapeRoom& shape) {
  const auto stranded = [&shape](Stranding by) -> int64_t& { return shape.stranded[static_cast<size_t>(by)]; };
  if (!open) {
    stranded(Stranding::kByTaint) += free;
    return;
  }
  const NodeRoom room = room_on(node, habit, free, shape.size);
  const int64_t fit = room.fit();
  shape.fit += fit;
  stranded(Stranding::kByShape) += free - room.by_shape * shape.size;
  const Stranding cause = room.by_cpu == fit      ? Stranding::kByCpu
                          : room.by_memory == fit ? Stranding::kByMemory
                                                  : Stranding::kByPods;
  stranded(cause) += (room.by_shape - fit) * shape.size;
}

// Adds what a node with dynamic MIG could have for a shape beyond what it has.
void add_cut(const NodeView& node, const Habit& habit, int64_t free, int64_t if_cut, ShapeRoom& shape) {
  const int64_t fit = room_on(node, habit, free, shape.size).fit();
  *shape.fit_if_cut += std::max<int64_t>(0, room_on(node, habit, if_cut, shape.size).fit() - fit);
}

// What one of the resource is on the node.
GpuUnit unit_of(const model::NodeGpus& gpus, std::string_view resource) {
  if (std::ranges::find(gpus.time_sliced, resource) != gpus.time_sliced.end()) return GpuUnit::kReplica;
  if (gpus.resource != resource) return GpuUnit::kDevice;
  return gpus.sharing == model::GpuSharing::kReplicas    ? GpuUnit::kReplica
         : gpus.sharing == model::GpuSharing::kInstances ? GpuUnit::kInstance
                                                         : GpuUnit::kDevice;
}

ResourceRoom measure(const State& state, const Resource& resource, GpuUnit unit, const FindIdleGpus& find_idle,
                     std::span<const QueuedPods> queued) {
  const Habit habit = habit_of(state, resource, queued);
  ResourceRoom out;
  out.resource = resource.name;
  out.unit = unit;
  out.cpu_millis = habit.cpu_millis;
  out.memory_bytes = habit.memory_bytes;
  const bool comes_whole = unit == GpuUnit::kDevice && !model::is_mig_resource(out.resource);
  for (const int64_t size : kSizes)
    if (size == 1 || comes_whole) out.shapes.emplace_back().size = size;
  const model::MigModel* room_of = nullptr;
  int64_t each = 0;  // of the resource, on a device of that model
  for (const auto& [name, slot] : state.nodes_by_name()) {
    const NodeView node = state.view(slot);
    if (unit_of(node.node().gpus, out.resource) != unit) continue;
    const bool instances = model::is_mig_resource(out.resource) || unit == GpuUnit::kInstance;
    if (instances && !node.node().mig_problem.empty()) continue;  // they take no new work
    const int64_t free = resource.id ? std::max<int64_t>(node.free(*resource.id), 0) : 0;
    out.allocatable += resource.id ? node.allocatable(*resource.id) : 0;
    out.free += free;
    const model::MigModel* const model = unit == GpuUnit::kDevice ? node.node().mig.model : nullptr;
    if (model != nullptr && find_idle && model != room_of) room_of = model, each = most_on_device(*model, out.resource);
    const bool can_be_cut = model != nullptr && find_idle && each > 0;
    const IdleGpus* idle = can_be_cut ? find_idle(slot) : nullptr;
    if (can_be_cut)
      for (ShapeRoom& shape : out.shapes) shape.fit_if_cut = shape.fit_if_cut.value_or(0);
    if (free == 0 && idle == nullptr) continue;
    const bool open = is_open(node, habit, out.resource);
    for (ShapeRoom& shape : out.shapes) add_node(node, open, habit, free, shape);
    if (idle == nullptr) continue;
    const int64_t in_use = std::max<int64_t>(0, free - idle->advertised.get(out.resource));  // free on those GPUs
    const int64_t most = idle->most ? idle->most->get(out.resource) : each * idle->count;
    for (ShapeRoom& shape : out.shapes) add_cut(node, habit, free, open ? in_use + most : 0, shape);
  }
  for (ShapeRoom& shape : out.shapes)
    if (shape.fit_if_cut) *shape.fit_if_cut += shape.fit;
  return out;
}

// The model of a node's GPUs if these are given out by profile, now or once Berth has cut them; else none.
const model::MigModel* model_by_profile(const model::Node& node) {
  if (node.mig) return node.mig.model;
  const std::string* strategy = node.labels.find("nvidia.com/mig.strategy");
  const bool mixed = strategy != nullptr && *strategy == "mixed";
  const auto is_instance = [](const auto& each) { return each.second > 0 && model::is_mig_resource(each.first); };
  const auto has_mig = [](const model::GpuDevice& device) { return device.mig_enabled; };
  const bool listed = std::any_of(node.devices.devices.begin(), node.devices.devices.end(), has_mig);
  if (!mixed && !listed && std::none_of(node.allocatable.begin(), node.allocatable.end(), is_instance)) return nullptr;
  const std::string* product = node.labels.find("nvidia.com/gpu.product");
  return product == nullptr ? nullptr : model::read_gpu_product(*product).model;
}

// Resources of which rows are due although no node may have them: all profiles of the nodes' models.
std::set<std::string> profiles(const State& state) {
  std::set<const model::MigModel*> models;
  for (const auto& [name, slot] : state.nodes_by_name()) models.insert(model_by_profile(state.node(slot).node));
  models.erase(nullptr);
  std::set<std::string> out;
  for (const model::MigModel* model : models)
    for (const model::MigProfile& profile : model->profiles) out.insert(model::mig_resource_name(profile));
  return out;
}

}  // namespace

std::string_view to_string(GpuUnit unit) { return kGpuUnits[static_cast<size_t>(unit)]; }

GpuTotals sum_gpus(const State& state) {
  GpuTotals out;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (!state.node(slot).has_gpus) continue;
    const NodeView node = state.view(slot);
    std::vector<int64_t> used = state.used_without_nominees(slot);
    used.resize(state.resources().size());
    for (uint32_t id = 0; id < state.resources().size(); ++id) {
      if (!state.resources().is_gpu(ResourceId{id})) continue;
      const std::string& resource = state.resources().name(ResourceId{id});
      const bool mig = model::is_mig_resource(resource) || unit_of(node.node().gpus, resource) == GpuUnit::kInstance;
      (mig ? out.mig_allocatable : out.allocatable) += node.allocatable(ResourceId{id});
      (mig ? out.mig_used : out.used) += used[id];
    }
  }
  return out;
}

std::vector<QueuedPods> queued_pods(const QueuedWorkloads& workloads) {
  const quota::Admission& admission = workloads.admission();
  std::vector<QueuedPods> out;
  size_t seen = 0;
  for (const quota::WorkloadId id : workloads.all()) {
    const quota::WorkloadStatus& status = admission.status(id);
    if (status.phase != quota::WorkloadPhase::kPending || !status.workload.active) continue;
    if (++seen > kQueuedMax) break;
    std::vector<model::Toleration> of_flavors;
    if (const auto queue = admission.cluster_queues().find(status.cluster_queue);
        queue != admission.cluster_queues().end())
      for (const model::ResourceGroup& group : queue->second.groups)
        for (const model::FlavorQuotas& flavor : group.flavors)
          if (const auto known = admission.flavors().find(flavor.flavor); known != admission.flavors().end())
            of_flavors.insert(of_flavors.end(), known->second.tolerations.begin(), known->second.tolerations.end());
    for (const model::PodSet& set : status.workload.pod_sets) {
      if (set.spec == nullptr) continue;
      QueuedPods& each =
          out.emplace_back(QueuedPods{set.count, set.spec->requests, set.spec->gpu_share.asked(), set.tolerations});
      each.tolerations.insert(each.tolerations.end(), of_flavors.begin(), of_flavors.end());
    }
  }
  return out;
}

std::vector<ResourceRoom> measure_fragmentation(const State& state, const FindIdleGpus& find_idle,
                                                std::span<const QueuedPods> queued) {
  std::map<std::string, Resource> resources;
  const std::set<std::string> always = profiles(state);
  for (const std::string& name : always) resources.emplace(name, Resource{name, std::nullopt});
  for (uint32_t id = 0; id < state.resources().size(); ++id) {
    const std::string& name = state.resources().name(ResourceId{id});
    if (state.resources().is_gpu(ResourceId{id})) resources.insert_or_assign(name, Resource{name, ResourceId{id}});
  }
  std::vector<ResourceRoom> out;
  for (const auto& [name, resource] : resources) {
    for (const GpuUnit unit : {GpuUnit::kDevice, GpuUnit::kReplica, GpuUnit::kInstance}) {
      ResourceRoom room = measure(state, resource, unit, find_idle, queued);
      const bool due = room.allocatable > 0 || room.shapes.front().fit_if_cut;
      if (due || (unit == GpuUnit::kDevice && always.contains(name))) out.push_back(std::move(room));
    }
  }
  return out;
}

}  // namespace berth::engine
