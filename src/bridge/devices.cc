#include "bridge/devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/reader.h"
#include "base/printable.h"
#include "bridge/gpus.h"
#include "bridge/mig.h"
#include "bridge/mig_desired.h"
#include "model/device_topology.h"
#include "model/mig.h"
#include "model/quantity.h"

namespace berth::bridge {
namespace {

using api::Field;
using api::Reader;

constexpr std::string_view kVersion = "v1";
constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kMemoryMaxMib = int64_t{8} << 20;
constexpr int32_t kNumaNodeMax = 1023, kMemorySliceMax = 7;

template <typename Number>
void read_number(const Reader& reader, Number& out, int64_t low, int64_t high) {
  int64_t value = 0;
  if (!reader.read(value)) return;
  if (value < low || value > high) return reader.problem(fmt::format("{} is outside {} to {}", value, low, high));
  out = static_cast<Number>(value);
}

struct Pcie {
  std::string root, switch_id;
};
constexpr Field<Pcie> kPcie[] = {
    {"root", [](const Reader& r, Pcie& p) { r.read(p.root); }},
    {"switch", [](const Reader& r, Pcie& p) { r.read(p.switch_id); }},
};

struct Health {
  std::optional<bool> healthy;
  std::string reason;
};
constexpr Field<Health> kHealth[] = {
    {"healthy",
     [](const Reader& r, Health& h) {
       bool healthy = true;
       if (r.read(healthy)) h.healthy = healthy;
     }},
    {"reason", [](const Reader& r, Health& h) { r.read(h.reason); }},
};

constexpr Field<model::MigDeviceInstance> kInstance[] = {
    {"uuid", [](const Reader& r, model::MigDeviceInstance& i) { r.read(i.uuid); }},
    {"profile", [](const Reader& r, model::MigDeviceInstance& i) { r.read(i.profile); }},
    {"start", [](const Reader& r, model::MigDeviceInstance& i) { read_number(r, i.start, 0, kMemorySliceMax); }},
    {"pods", [](const Reader& r, model::MigDeviceInstance& i) { r.read(i.pods); }},
};
constexpr Field<model::GpuDevice> kMig[] = {
    {"enabled", [](const Reader& r, model::GpuDevice& d) { r.read(d.mig_enabled); }},
    {"instances",
     [](const Reader& r, model::GpuDevice& d) {
       api::read_list<model::MigDeviceInstance>(r, d.mig_instances, [](const Reader& item, auto& instance) {
         instance.start = -1;
         api::read_object(item, kInstance, instance);
         if (!api::has_member(item, "start"))
           item.problem("does not say at which memory slice it starts: start is missing");
       });
     }},
};

// A device as it is written: its peers by UUID, which may come later in the list.
struct ReadDevice {
  model::GpuDevice device;
  std::map<std::string, int32_t> nvlinks;
};

void read_nvlinks(const Reader& reader, ReadDevice& out) {
  if (!reader.expect(api::JsonType::kObject)) return;
  for (api::Members members(reader); members.next();)
    read_number(members.value(), out.nvlinks[std::string(members.key())], 1, model::kNvlinksMax);
}

constexpr Field<ReadDevice> kDevice[] = {
    {"uuid", [](const Reader& r, ReadDevice& d) { r.read(d.device.uuid); }},
    {"model", [](const Reader& r, ReadDevice& d) { r.read(d.device.model); }},
    {"memoryMiB",
     [](const Reader& r, ReadDevice& d) {
       read_number(r, d.device.memory_bytes, 0, kMemoryMaxMib);
       d.device.memory_bytes *= kMiB;
     }},
    {"numaNode", [](const Reader& r, ReadDevice& d) { read_number(r, d.device.numa_node, -1, kNumaNodeMax); }},
    {"pcie",
     [](const Reader& r, ReadDevice& d) {
       Pcie pcie;
       api::read_object(r, kPcie, pcie);
       d.device.pcie_root = std::move(pcie.root);
       d.device.pcie_switch = std::move(pcie.switch_id);
     }},
    {"nvlinks", &read_nvlinks},
    {"mig", [](const Reader& r, ReadDevice& d) { api::read_object(r, kMig, d.device); }},
    {"health",
     [](const Reader& r, ReadDevice& d) {
       Health health;
       api::read_object(r, kHealth, health);
       if (!health.healthy && !health.reason.empty())
         r.problem("has a reason and does not say whether the device is healthy");
       if (!health.healthy.value_or(true))
         d.device.unhealthy = health.reason.empty() ? "no reason given" : std::move(health.reason);
     }},
    {"pods", [](const Reader& r, ReadDevice& d) { r.read(d.device.pods); }},
};

struct Root {
  std::string version;
  bool keeps_shares = false;
  std::vector<ReadDevice> devices;
};
constexpr Field<Root> kRoot[] = {
    {"version", [](const Reader& r, Root& root) { r.read(root.version); }},
    {"keepsShares", [](const Reader& r, Root& root) { r.read(root.keeps_shares); }},
    {"devices",
     [](const Reader& r, Root& root) {
       api::read_list<ReadDevice>(r, root.devices,
                                  [](const Reader& item, ReadDevice& d) { api::read_object(item, kDevice, d); });
     }},
};

// Why no device of the product (as in the label nvidia.com/gpu.product) can be cut so; empty: it can, or nobody knows.
std::string impossible_cut(const model::GpuDevice& device, std::string_view product) {
  const model::MigModel* const model = model::read_gpu_product(product).model;
  if (model == nullptr) return "";
  const auto layout = model::MigLayout::from_report(*model, device);
  return layout ? "" : fmt::format("cannot be cut so: {}", layout.error().message);
}

// What cannot be of one device: instances that its model has not or that overlap, pods that have no full name.
std::string contradiction(const model::GpuDevice& device) {
  std::vector<const std::vector<std::string>*> given = {&device.pods};
  for (const model::MigDeviceInstance& instance : device.mig_instances) given.push_back(&instance.pods);
  for (const auto* pods : given)
    for (const std::string& pod : *pods) {
      const size_t slash = pod.find('/');
      if (slash == 0 || slash >= pod.size() - 1 || pod.find('/', slash + 1) != std::string::npos)
        return fmt::format("is given to '{}', which is no namespace/name", printable(pod, 80));
    }
  return impossible_cut(device, device.model);
}

// What no field can tell by itself, as the first thing that is wrong.
void check_together(const Reader& reader, const Root& root) {
  if (root.version != kVersion)
    return reader.problem_at("version", fmt::format("'{}' is not {}, which is all that this scheduler reads; run "
                                                    "an agent of its version",
                                                    root.version, kVersion));
  if (root.devices.size() > model::kNodeDevicesMax)
    return reader.problem_at("devices", fmt::format("{} devices are more than the {} that are known one by one",
                                                    root.devices.size(), model::kNodeDevicesMax));
  std::map<std::string, const ReadDevice*> by_uuid;
  for (const ReadDevice& read : root.devices) {
    if (read.device.uuid.empty()) return reader.problem_at("devices", "a device has no uuid");
    if (read.device.uuid.find_first_of(", \t\n") != std::string::npos)
      return reader.problem_at(
          "devices", fmt::format("'{}' is no uuid: it has a comma or a space in it", printable(read.device.uuid, 80)));
    if (!by_uuid.emplace(read.device.uuid, &read).second)
      return reader.problem_at("devices", fmt::format("{} stands there twice", read.device.uuid));
    std::set<std::string> instances;
    for (const auto& instance : read.device.mig_instances)
      if (!instance.uuid.empty() && !instances.insert(instance.uuid).second)
        return reader.problem_at("devices", fmt::format("MIG instance {} of {} stands there twice",
                                                        printable(instance.uuid, 80), read.device.uuid));
    if (!read.device.mig_enabled && !read.device.mig_instances.empty())
      return reader.problem_at("devices",
                               fmt::format("{} has MIG instances while MIG is not enabled", read.device.uuid));
  }
  for (const ReadDevice& read : root.devices)
    if (const std::string why = contradiction(read.device); !why.empty())
      return reader.problem_at("devices", fmt::format("{} {}", read.device.uuid, why));
  for (const ReadDevice& read : root.devices) {
    for (const auto& [peer, links] : read.nvlinks) {
      const auto other = by_uuid.find(peer);
      if (other == by_uuid.end() || peer == read.device.uuid)
        return reader.problem_at("devices", fmt::format("{} has NVLinks to {}, which is no other device of the node; "
                                                        "links to switches count to each device behind them",
                                                        read.device.uuid, peer));
      const auto back = other->second->nvlinks.find(read.device.uuid);
      if (back == other->second->nvlinks.end() || back->second != links)
        return reader.problem_at(
            "devices", fmt::format("{} has {} NVLinks to {}, which tells it otherwise", read.device.uuid, links, peer));
    }
  }
  std::map<std::string, const model::GpuDevice*> by_root;
  for (const ReadDevice& read : root.devices) {
    const model::GpuDevice& device = read.device;
    if (device.pcie_root.empty() || device.numa_node < 0) continue;
    const model::GpuDevice& first = *by_root.emplace(device.pcie_root, &device).first->second;
    if (first.numa_node != device.numa_node)
      return reader.problem_at("devices", fmt::format("{} is at NUMA node {} and {} at {}, while both are below PCIe "
                                                      "root {}, which is at one",
                                                      first.uuid, first.numa_node, device.uuid, device.numa_node,
                                                      printable(device.pcie_root, 80)));
  }
}

model::NodeDevices finish(Root& root) {
  std::map<std::string, uint32_t> places;
  for (uint32_t i = 0; i < root.devices.size(); ++i) places[root.devices[i].device.uuid] = i;
  model::NodeDevices out;
  out.keeps_shares = root.keeps_shares;
  for (ReadDevice& read : root.devices) {
    for (const auto& [peer, links] : read.nvlinks) read.device.nvlinks.emplace_back(places.at(peer), links);
    std::sort(read.device.nvlinks.begin(), read.device.nvlinks.end());
    // Who has an instance is on its device, whether or not the agent says so twice.
    for (const model::MigDeviceInstance& instance : read.device.mig_instances)
      for (const std::string& pod : instance.pods)
        if (std::ranges::find(read.device.pods, pod) == read.device.pods.end()) read.device.pods.push_back(pod);
    out.devices.push_back(std::move(read.device));
  }
  return out;
}

// The MIG instances that are listed, and those of healthy devices.
struct Instances {
  int64_t listed = 0, healthy = 0;
};

// Of a resource's profile; of all of them for kGpuResource, as which the strategy `single` advertises them.
Instances count_instances(const model::NodeDevices& devices, std::string_view resource) {
  Instances out;
  for (const model::GpuDevice& device : devices.devices) {
    const auto count = std::ranges::count_if(device.mig_instances, [&](const model::MigDeviceInstance& instance) {
      return resource == kGpuResource || model::mig_resource_name(instance.profile) == resource;
    });
    out.listed += count;
    out.healthy += device.unhealthy.empty() ? count : 0;
  }
  return out;
}

// How many instances may be given of which kubelet counts `allocatable`, each of them `replicas` times.
Result<int64_t> instance_count(const model::NodeDevices& devices, std::string_view resource, int64_t replicas,
                               int64_t allocatable, bool being_cut) {
  const Instances counted = count_instances(devices, resource);
  if (allocatable > counted.listed * replicas && !being_cut)
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("lists {} MIG instances that are {}, while kubelet has {} allocatable; restart whichever of "
                    "the agent and the device plugin is out of date",
                    counted.listed, resource, allocatable));
  return std::min(allocatable, counted.healthy * replicas);
}

// How many of the resource the devices let be given; nothing where they do not speak of it.
Result<std::optional<int64_t>> told_count(const api::Node& node, const model::NodeDevices& devices,
                                          const std::string& resource, int64_t allocatable) {
  const model::NodeGpus gpus = gpus_of(node, DeviceKnowledge::kCounts);
  const bool being_cut = is_being_cut(node);
  const bool instances = gpus.sharing == model::GpuSharing::kInstances && resource == gpus.resource;
  if (instances || model::is_mig_resource(resource)) {
    const std::string_view profile = std::string_view(resource).substr(0, resource.find(kSharedSuffix));
    const int64_t replicas = replicas_of_resource(node, profile, instances || profile == resource ? 1 : 0);
    if (replicas == 0) return std::nullopt;  // nobody says how often
    BERTH_TRY(count, instance_count(devices, instances ? kGpuResource : profile, replicas, allocatable, being_cut));
    return count;
  }
  const auto whole = std::ranges::count_if(devices.devices, [](const auto& device) { return !device.mig_enabled; });
  if (resource == gpus.resource && gpus.sharing == model::GpuSharing::kReplicas) {
    const int64_t advertised = std::max(node.capacity.get(resource), allocatable);
    const bool only_counted = replicas_of_resource(node, kGpuResource, 0) == 0;  // no label says that they are replicas
    if (only_counted && resource == kGpuResource && advertised > whole && (whole == 0 || advertised % whole != 0)) {
      BERTH_TRY(count, whole_device_count(devices, advertised));
      return count;
    }
    return gpus.replicas > 0
               ? std::optional(std::min(allocatable, std::popcount(model::whole_devices(devices)) * gpus.replicas))
               : std::nullopt;
  }
  if (resource != kGpuResource || gpus.sharing == model::GpuSharing::kReplicas) return std::nullopt;
  BERTH_TRY(count, whole_device_count(devices, being_cut ? std::min<int64_t>(allocatable, whole) : allocatable));
  return count;
}

}  // namespace

bool is_being_cut(const api::Node& node) { return mig_manager_cuts(node) || berth_cuts(node); }

Result<model::NodeDevices> read_devices(std::string_view json) {
  Root root;
  api::ProblemSink sink;
  const Status read = api::read_json(json, sink, [&](const Reader& reader) {
    api::read_object(reader, kRoot, root);
    if (sink.problems.empty()) check_together(reader, root);
  });
  if (!read) return fail(ErrorCode::kInvalidInput, read.error().message);
  if (!sink.problems.empty()) return fail(ErrorCode::kInvalidInput, api::to_string(sink.problems.front()));
  return finish(root);
}

std::string devices_json(const model::NodeDevices& devices) {
  using Json = nlohmann::ordered_json;
  Json out{{"version", kVersion}, {"devices", Json::array()}};
  if (devices.keeps_shares) out["keepsShares"] = true;
  for (const model::GpuDevice& device : devices.devices) {
    Json entry{{"uuid", device.uuid}};
    if (!device.model.empty()) entry["model"] = device.model;
    if (device.memory_bytes > 0) entry["memoryMiB"] = device.memory_bytes / kMiB;
    if (device.numa_node >= 0) entry["numaNode"] = device.numa_node;
    if (!device.pcie_root.empty()) entry["pcie"]["root"] = device.pcie_root;
    if (!device.pcie_switch.empty()) entry["pcie"]["switch"] = device.pcie_switch;
    for (const auto& [peer, links] : device.nvlinks) entry["nvlinks"][devices.devices[peer].uuid] = links;
    if (device.mig_enabled) {
      entry["mig"] = Json{{"enabled", true}, {"instances", Json::array()}};
      for (const model::MigDeviceInstance& instance : device.mig_instances) {
        Json told{{"uuid", instance.uuid}, {"profile", instance.profile}, {"start", instance.start}};
        if (!instance.pods.empty()) told["pods"] = instance.pods;
        entry["mig"]["instances"].push_back(std::move(told));
      }
    }
    if (!device.unhealthy.empty()) entry["health"] = Json{{"healthy", false}, {"reason", device.unhealthy}};
    if (!device.pods.empty()) entry["pods"] = device.pods;
    out["devices"].push_back(std::move(entry));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<int64_t> whole_device_count(const model::NodeDevices& devices, int64_t allocatable) {
  int64_t whole = 0, healthy = 0;
  for (const model::GpuDevice& device : devices.devices) {
    if (device.mig_enabled) continue;
    ++whole;
    healthy += device.unhealthy.empty() ? 1 : 0;
  }
  if (allocatable > whole)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("lists {} devices that can be given whole, while kubelet has {} {} allocatable; restart "
                            "whichever of the agent and the device plugin is out of date",
                            whole, allocatable, kGpuResource));
  return std::clamp<int64_t>(allocatable, 0, healthy);
}

void bound_shares(const model::NodeDevices& devices, model::NodeGpus& gpus) {
  // A node that has no GPU to share, as while its device plugin is away, keeps no shares either.
  if (gpus.sharing == model::GpuSharing::kNone && !gpus.resource.empty() && devices.keeps_shares)
    gpus.sharing = model::GpuSharing::kDevices;
  if (gpus.sharing != model::GpuSharing::kDevices) return;
  int64_t memory = gpus.memory_bytes;
  bool known = true;
  for (model::DeviceSet left = model::whole_devices(devices); left != 0; left &= left - 1) {
    const model::GpuDevice& device = devices.devices[static_cast<size_t>(std::countr_zero(left))];
    const int64_t told = std::min(device.memory_bytes, model::kGpuMemoryMax);
    if (told == 0) {
      known &= gpus.memory_bytes > 0;  // the label tells it
      continue;
    }
    if (memory != 0 && memory != told) gpus.sharing = model::GpuSharing::kUnlike;
    memory = told;
  }
  if (gpus.sharing == model::GpuSharing::kDevices) gpus.memory_bytes = known ? memory : 0;
}

Result<std::optional<ToldDevices>> devices_of(const api::Node& node) {
  const std::string* text = node.metadata.annotation(kDevicesAnnotation);
  if (text == nullptr) return std::nullopt;
  BERTH_TRY(devices, read_devices(*text));
  const std::string* product = node.metadata.labels.find("nvidia.com/gpu.product");
  for (const model::GpuDevice& device : devices.devices) {
    if (!device.model.empty() || product == nullptr) continue;  // it was looked at by its own model
    if (const std::string why = impossible_cut(device, *product); !why.empty())
      return fail(ErrorCode::kInvalidInput, fmt::format("devices: {} {}", device.uuid, why));
  }
  ToldDevices out;
  for (const auto& [resource, amount] : node.allocatable) {
    if (!model::is_gpu_resource(resource)) continue;
    BERTH_TRY(count, told_count(node, devices, resource, amount));
    if (count) out.allocatable.set(resource, *count);
  }
  out.devices = std::move(devices);
  return out;
}

}  // namespace berth::bridge
