// Turns a pod away from nodes that lack free cpu, memory, ephemeral storage, pods or extended resources for it.
// Each resource that is short is a reason of its own. A request of 0 is never short, not even on an over-used node.
// Source: kube-scheduler's NodeResourcesFit plugin (filter).
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "engine/idle_gpus.h"
#include "engine/policy.h"
#include "model/gpu.h"
#include "model/mig.h"
#include "packing/mig_config.h"
#include "policy/why_not_cut.h"

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
  const int64_t each = mig && model::is_mig_resource(resource) ? most_on_device(*mig.model, resource) : 0;
  return each == 0 ? std::nullopt : std::optional(mig.devices * each);
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

// What is to be known of the GPUs of a node that has too few of them: those that are ill, and that others are cut.
std::string gpu_facts(const PodClass& pod, ResourceId id, int64_t asked, const NodeView& node) {
  const std::string& resource = node.resources().name(id);
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
  return may ? out + why_not_cut(pod, node) : out;
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
         mig_profiles(name, node) + gpu_facts(pod, reason.resource, asked, node);
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
