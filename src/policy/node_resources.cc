// Turns a pod away from nodes that lack free cpu, memory, ephemeral storage, pods or extended resources for it.
// Each resource that is short is a reason of its own. A request of 0 is never short, not even on an over-used node.
// Source: kube-scheduler's NodeResourcesFit plugin (filter).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "engine/policy.h"
#include "model/device_topology.h"
#include "model/gpu.h"
#include "model/mig.h"
#include "packing/mig_config.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// The resource of the instances of which this one is a part, where they are shared: a model has the profile or not,
// whether the node shares it or not.
std::string unshared(const std::string& resource) {
  constexpr std::string_view kShared = ".shared";
  return resource.ends_with(kShared) ? resource.substr(0, resource.size() - kShared.size()) : resource;
}

// The model of the node's GPUs, if it is known and `resource` a MIG profile that they cannot be cut into; else null.
const model::MigModel* model_without(const std::string& resource, const NodeView& node) {
  if (!model::is_mig_resource(resource)) return nullptr;
  const std::string* product = node.node().labels.find("nvidia.com/gpu.product");
  const model::MigModel* mig = product == nullptr ? nullptr : model::read_gpu_product(*product).model;
  return mig != nullptr && !model::parse_mig_resource(*mig, unshared(resource)) ? mig : nullptr;
}

// A MIG profile that no model has: a slip, and not only the wrong node.
bool is_no_profile(const std::string& resource) {
  return model::is_mig_resource(resource) && std::ranges::none_of(model::mig_models(), [&](const model::MigModel& mig) {
           return model::parse_mig_resource(mig, unshared(resource)).has_value();
         });
}

// Of a MIG profile that the node's GPUs cannot be cut into: which they can.
std::string mig_profiles(const std::string& resource, const NodeView& node) {
  const model::MigModel* mig = model_without(resource, node);
  return mig == nullptr ? "" : "; " + model::parse_mig_resource(*mig, unshared(resource)).error().message;
}

// How many instances of the resource the node's GPUs could have, however they were cut: of the nodes that may be cut
// anew. None: it is no such node, or the resource none that its GPUs can be cut into.
std::optional<int64_t> most_of(const std::string& resource, const NodeView& node) {
  const model::DynamicMig& mig = node.node().mig;
  if (!mig || !model::is_mig_resource(resource)) return std::nullopt;
  const auto profile = model::parse_mig_resource(*mig.model, resource);
  if (!profile) return std::nullopt;
  return mig.devices * mig.model->profiles[*profile].instances_max;
}

bool is_gpu_or_slice(const std::string& resource) {
  return resource == model::kWholeGpuResource || model::is_mig_resource(resource);
}

// The pod asks for GPUs and instances of the node that it could not have together, however its GPUs were cut, and has
// not now. False: the node's geometry is not Berth's to choose, or the node could have them.
bool never_together(const PodClass& pod, const NodeView& node) {
  const model::DynamicMig& mig = node.node().mig;
  if (!mig) return false;
  model::ResourceList asked;
  bool has_them = true;
  for (const ResourceAmount& request : pod.requests) {
    const std::string& name = node.resources().name(request.id);
    if (!is_gpu_or_slice(name)) continue;
    if (model::is_mig_resource(name) && !most_of(name, node)) return false;  // a slip of its own
    asked.set(name, request.amount);
    has_them &= request.amount <= node.allocatable(request.id);
  }
  if (pod.shares_gpu) asked.add(model::kWholeGpuResource, 1);
  return !has_them && !packing::can_be_cut_for(mig, asked);
}

// How much of the resource a device has as it is.
int64_t amount_on(const model::GpuDevice& device, const std::string& resource) {
  if (resource == model::kWholeGpuResource) return device.mig_enabled ? 0 : 1;
  return std::ranges::count_if(device.mig_instances, [&](const model::MigDeviceInstance& instance) {
    return resource == model::mig_resource_name(instance.profile);
  });
}

// Why the GPUs of a node, which could give what is asked for were all of them idle, are not cut anew for it now.
// `free`: of the resource.
std::string why_not_cut(const std::string& resource, int64_t asked, int64_t free, const NodeView& node) {
  constexpr std::string_view kSoon = ", though not right after another change";
  const std::span<const model::GpuDevice> devices = node.node().cut_by_agent();
  model::DynamicMig idle = node.node().mig;
  if (devices.empty()) {
    for (uint32_t id = 0; id < node.resources().size(); ++id)
      if (node.resources().is_gpu(ResourceId{id}) && node.used(ResourceId{id}) > 0)
        return "; its GPUs are cut anew only while none is in use or promised";
    return fmt::format("; its GPUs are idle and may be cut anew{}", kSoon);
  }
  idle.devices = 0;
  int64_t elsewhere = free;  // of what is free, on devices in use
  const model::DeviceSet given = node.listed() ? node.listed().given() | node.devices().open() : 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    const model::GpuDevice& device = devices[i];
    const bool is_given = (given >> i & 1) != 0;  // as Berth knows, and the agent may not yet
    if (!device.pods.empty() || is_given || !device.unhealthy.empty()) continue;
    ++idle.devices;
    elsewhere -= amount_on(device, resource);
  }
  if (idle.devices == 0) return "; only GPUs that are idle are cut anew, and none is";
  model::ResourceList of_idle;
  of_idle.set(resource, asked - std::max<int64_t>(elsewhere, 0));
  if (!packing::can_be_cut_for(idle, of_idle))
    return fmt::format("; only GPUs that are idle are cut anew, and {} {} too few", idle.devices,
                       idle.devices == 1 ? "is" : "are");
  return fmt::format("; its {} idle GPU{} may be cut anew once the agent has told where all pods are{}", idle.devices,
                     idle.devices == 1 ? "" : "s", kSoon);
}

// What is to be known of the GPUs of a node that has too few of them: those that are ill, and that others are cut.
std::string gpu_facts(const PodClass& pod, const std::string& resource, int64_t asked, int64_t free,
                      const NodeView& node) {
  const bool slices = model::is_mig_resource(resource);
  if (!is_gpu_or_slice(resource)) return "";
  std::string out = model::ill_gpus(node.node().devices);
  const model::DynamicMig& mig = node.node().mig;
  if (!mig) return out;
  if (const auto most = most_of(resource, node); most && asked > *most)
    return out +
           fmt::format("; never fits: {} {} can have at most {}, however cut", mig.devices, mig.model->name, *most);
  if (never_together(pod, node)) {
    const std::string_view how = mig.hand == model::MigHand::kNamed
                                     ? "in none of the configurations of NVIDIA's MIG manager that Berth can name"
                                     : "however cut";
    return out + fmt::format("; never fits: {} {} cannot have all at once that is asked for, {}", mig.devices,
                             mig.model->name, how);
  }
  const bool may = slices ? most_of(resource, node).has_value() : asked <= mig.devices;
  return may && !node.is_being_cut() ? out + why_not_cut(resource, asked, free, node) : out;
}

std::string detail(const PodClass& pod, const NodeView& node, const Reason& reason) {
  const std::string& name = node.resources().name(reason.resource);
  const int64_t asked = pod.request(reason.resource);
  const auto amount = [&](int64_t value) { return model::format_resource(name, value); };
  const int64_t free = node.free(reason.resource);
  const std::string beyond =
      free < 0 ? fmt::format(" ({} in use or promised)", amount(node.used(reason.resource))) : "";
  return fmt::format("asks {}, free {} of {}{}, short by {}", amount(asked), amount(std::max<int64_t>(free, 0)),
                     amount(node.allocatable(reason.resource)), beyond, amount(asked - free)) +
         mig_profiles(name, node) + gpu_facts(pod, name, asked, std::max<int64_t>(free, 0), node);
}

constexpr ReasonInfo kInsufficient{
    .text = "Insufficient", .names_resource = true, .preemption_helps = true, .detail = &detail};
// More than the node has at all: no pod that leaves makes room for it.
constexpr ReasonInfo kNeverEnough{.text = "Insufficient", .names_resource = true, .detail = &detail};
// What its GPUs could not have, however they were cut.
constexpr ReasonInfo kNeverCut{.text = "Never enough", .names_resource = true, .detail = &detail};
// Of a MIG profile that no model has, where the node's is known.
constexpr ReasonInfo kNoProfile{
    .text = "node(s) had GPUs without the profile of", .names_resource = true, .detail = &detail};
constexpr ReasonInfo kTooManyPods{.text = "Too many pods", .preemption_helps = true, .detail = &detail};

void node_resources(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  std::optional<bool> never;
  const auto never_cut = [&](const std::string& name, int64_t amount) {
    if (const auto most = most_of(name, node); most && amount > *most) return true;
    if (!is_gpu_or_slice(name)) return false;
    if (!never) never = never_together(pod, node);
    return *never;
  };
  for (const ResourceAmount& request : pod.requests) {
    if (request.amount <= node.free(request.id)) continue;
    const std::string& name = node.resources().name(request.id);
    const ReasonInfo& reason = request.id == kPods                                ? kTooManyPods
                               : never_cut(name, request.amount)                  ? kNeverCut
                               : request.amount <= node.allocatable(request.id)   ? kInsufficient
                               : model_without(name, node) && is_no_profile(name) ? kNoProfile
                                                                                  : kNeverEnough;
    reasons.push_back({&reason, request.id, 0});
  }
}

}  // namespace

extern const PolicyInfo kNodeResources =
    filter_policy("node-resources", "turns pods away from nodes without room for their requests", 60, &node_resources);

}  // namespace berth::policy
