#include "bridge/mig_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "base/printable.h"
#include "bridge/devices.h"
#include "bridge/gpus.h"
#include "bridge/mig.h"
#include "model/mig.h"
#include "packing/mig_fit.h"

namespace berth::bridge {
namespace {

constexpr std::string_view kProduct = "nvidia.com/gpu.product";
constexpr int64_t kCountMax = 100'000;  // instances of a node, so that sums stay small

std::string_view label(const api::Node& node, std::string_view key) {
  const std::string* text = node.metadata.labels.find(key);
  return text == nullptr ? std::string_view() : std::string_view(*text);
}

std::optional<int64_t> number_in(std::string_view text) {
  const bool digits = !text.empty() && text.size() < 10 && text.find_first_not_of("0123456789") == text.npos;
  return digits ? std::optional<int64_t>(std::atoll(std::string(text).c_str())) : std::nullopt;
}

// How many of the resource there are, ill ones among them, each counted once however often it is advertised.
int64_t present(const api::Node& node, std::string_view resource) {
  const int64_t advertised = std::max(node.capacity.get(resource), node.allocatable.get(resource));
  const int64_t replicas = replicas_of_resource(node, resource, 1);
  return std::min(advertised / replicas + (advertised % replicas > 0 ? 1 : 0), kCountMax);
}

// What the last of the model's profiles, a whole device, is named after: 40 of "7g.40gb".
int64_t gigabytes_of(const model::MigModel& model) {
  const std::string& name = model.profiles.back().name;
  return std::atoll(name.c_str() + name.find('.') + 1);
}

}  // namespace

std::string memory_contradiction(const api::Node& node, const model::GpuProduct& product) {
  const std::optional<int64_t> mib = number_in(label(node, "nvidia.com/gpu.memory"));
  const int64_t gigabytes = gigabytes_of(*product.model);
  const bool whole = mib.value_or(0) > 0 && !product.instances;  // else it is that of an instance
  if (!whole || std::llabs(*mib - gigabytes * 1024) <= gigabytes * 1024 / 10) return "";
  return fmt::format("the label nvidia.com/gpu.memory says {} MiB, and {} a {}; correct whichever is wrong", *mib,
                     kProduct, product.model->name);
}

namespace {

// Where labels and devices are of different models.
std::string contradiction(const api::Node& node, const model::NodeDevices& told, const model::GpuProduct& product) {
  for (const model::GpuDevice& device : told.devices) {
    const model::MigModel* const model = model::read_gpu_product(device.model).model;
    if (model != nullptr && model != product.model)
      return fmt::format("{} is a {} by {}, and a {} by the label {}; correct whichever is wrong", device.uuid,
                         model->name, kDevicesAnnotation, product.model->name, kProduct);
  }
  return memory_contradiction(node, product);
}

// How many instances go by the name of a GPU, with the strategy `single`; 0 where nobody says how often each is
// advertised, or none is there.
int64_t called_gpus(const api::Node& node) {
  constexpr std::string_view kSharedGpu = "nvidia.com/gpu.shared";
  const int64_t shared = std::max(node.capacity.get(kSharedGpu), node.allocatable.get(kSharedGpu));
  if (shared <= 0) return present(node, kGpuResource);
  const int64_t replicas = replicas_of_resource(node, kGpuResource, 0);
  return replicas == 0 ? 0 : std::min((shared + replicas - 1) / replicas, kCountMax);
}

// With the strategy `single` the label nvidia.com/gpu.count is of instances.
std::string more_than_counted(const api::Node& node, const model::GpuProduct& product) {
  const int64_t counted = number_in(label(node, "nvidia.com/gpu.count")).value_or(0);
  const int64_t advertised = called_gpus(node);
  if (!product.instances || counted == 0 || advertised <= counted) return "";
  return fmt::format(
      "the node advertises {} nvidia.com/gpu, each a MIG instance, and the label nvidia.com/gpu.count says {}; "
      "restart the device plugin and GPU feature discovery",
      advertised, counted);
}

// How many devices are cut; nothing where nobody says it.
std::optional<int64_t> cut_devices(const api::Node& node, const model::NodeDevices& told,
                                   const model::GpuProduct& product) {
  if (!told.devices.empty()) return std::ranges::count_if(told.devices, &model::GpuDevice::mig_enabled);
  if (product.instances) return std::nullopt;  // the label counts instances
  const std::optional<int64_t> count = number_in(label(node, "nvidia.com/gpu.count"));
  if (!count || *count == 0) return std::nullopt;
  return *count - present(node, kGpuResource);
}

// How many instances of a profile the node has, whatever it calls them; 0 where nobody says how often each is
// advertised, or nothing is.
int64_t instances_called(const api::Node& node, std::string_view resource) {
  if (!resource.ends_with(kSharedSuffix)) return present(node, resource);
  const std::string_view profile = resource.substr(0, resource.size() - kSharedSuffix.size());
  const int64_t advertised = std::max(node.capacity.get(resource), node.allocatable.get(resource));
  const int64_t replicas = replicas_of_resource(node, profile, 0);
  return replicas == 0 ? 0 : std::min((advertised + replicas - 1) / replicas, kCountMax);
}

// The instances by NVIDIA's name; `problem`: of one that the model has not.
packing::MigWaiting instances_of(const api::Node& node, const model::GpuProduct& product, std::string& problem) {
  packing::MigWaiting out;
  if (product.single) out[product.model->profiles[*product.single].name] = static_cast<int>(called_gpus(node));
  else if (product.instances)
    problem = fmt::format("{} has no MIG profile as the label {} names it ('{}')", product.model->name, kProduct,
                          printable(label(node, kProduct), 80));
  model::ResourceList all = node.capacity;
  all.max(node.allocatable);
  for (const auto& [resource, amount] : all) {
    if (amount <= 0 || !model::is_mig_resource(resource)) continue;
    const bool shared = resource.ends_with(kSharedSuffix);
    const auto profile = model::parse_mig_resource(
        *product.model, shared ? resource.substr(0, resource.size() - kSharedSuffix.size()) : resource);
    if (!profile) problem = profile.error().message;
    else out[product.model->profiles[*profile].name] += static_cast<int>(instances_called(node, resource));
  }
  std::erase_if(out, [](const auto& each) { return each.second == 0; });
  return out;
}

}  // namespace

std::string mig_facts_problem(const api::Node& node, const model::NodeDevices& told) {
  const model::GpuProduct product = model::read_gpu_product(label(node, kProduct));
  if (product.model == nullptr || is_being_cut(node)) return "";
  std::string problem;
  const packing::MigWaiting instances = instances_of(node, product, problem);
  if (!problem.empty()) return "the node advertises what its GPUs cannot be cut into: " + problem;
  if (instances.empty()) return "";
  if (problem = contradiction(node, told, product); !problem.empty()) return problem;
  if (problem = more_than_counted(node, product); !problem.empty()) return problem;
  const std::optional<int64_t> devices = cut_devices(node, told, product);
  if (!devices || (*devices > 0 && packing::may_fit(*product.model, instances, *devices))) return "";
  std::string text;
  for (const auto& [profile, count] : instances)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, profile);
  const std::string why = *devices > 0 ? fmt::format("its {} {} in MIG mode cannot have", *devices, product.model->name)
                          : told.devices.empty() ? "no GPU is left for, as all of them are nvidia.com/gpu"
                                                 : "no GPU has, as its agent tells none in MIG mode";
  return fmt::format(
      "it advertises MIG instances ({}) that {}; restart the device plugin, and see that the label "
      "nvidia.com/gpu.count is right",
      text, why);
}

}  // namespace berth::bridge
