#include "bridge/mig.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/printable.h"
#include "bridge/devices.h"
#include "bridge/mig_facts.h"
#include "model/mig.h"

namespace berth::bridge {
namespace {

constexpr int64_t kDevicesMax = 64;

int64_t number_in(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? value : -1;
}

std::string text_of(const api::Node& node, std::string_view key) {
  const std::string* label = node.metadata.labels.find(key);
  const std::string* value = label != nullptr ? label : node.metadata.annotation(key);
  return value == nullptr ? "" : *value;
}

tl::unexpected<Error> refused(const std::string& why) {
  return fail(ErrorCode::kInvalidInput, fmt::format("{}: dynamic has no effect: {}", kMigPolicy, why));
}

// Counts tell which GPUs there are only where all of them are given out: kubelet takes what is ill off allocatable.
Status all_allocatable(const api::Node& node) {
  const auto concerns = [](std::string_view name) { return name == kGpuResource || model::is_mig_resource(name); };
  const bool told = std::ranges::any_of(node.capacity, [&](const auto& each) { return concerns(each.first); });
  if (!told) return {};  // a node that names allocatable alone
  for (const model::ResourceList* list : {&node.capacity, &node.allocatable})
    for (const auto& [name, amount] : *list)
      if (concerns(name) && node.allocatable.get(name) != node.capacity.get(name))
        return refused(fmt::format(
            "of {} {} {} are allocatable, and only an agent that writes {} could say which GPU the others are of",
            node.capacity.get(name), name, node.allocatable.get(name), kDevicesAnnotation));
  return {};
}

// Who cuts all GPUs alike by a name cannot leave out one that is ill.
Status all_healthy(const api::Node& node) {
  BERTH_TRY(told, devices_of(node));
  if (!told) return {};
  for (const model::GpuDevice& device : told->devices.devices)
    if (!device.unhealthy.empty())
      return refused(fmt::format("GPU {} is not healthy ({}), and NVIDIA's MIG manager cuts all GPUs of a node",
                                 device.uuid, printable(device.unhealthy, 80)));
  return {};
}

// How many devices an agent tells, which must be of the model that the label names; 0: there is none.
Result<int64_t> told_devices(const api::Node& node, const model::MigModel& model) {
  BERTH_TRY(told, devices_of(node));
  if (!told) return 0;
  for (const model::GpuDevice& device : told->devices.devices)
    if (!device.model.empty() && model::read_gpu_product(device.model).model != &model)
      return refused(fmt::format("{} is a {}, and the label nvidia.com/gpu.product says otherwise", device.uuid,
                                 printable(device.model, 80)));
  return std::ssize(told->devices.devices);
}

}  // namespace

bool has_mig_manager(const api::Node& node) {
  const std::string* deployed = node.metadata.labels.find("nvidia.com/gpu.deploy.mig-manager");
  if (deployed != nullptr) return *deployed != "false";
  return node.metadata.labels.find(kMigConfig) != nullptr || node.metadata.labels.find(kMigConfigState) != nullptr;
}

bool mig_manager_cuts(const api::Node& node) {
  const std::string* state = node.metadata.labels.find(kMigConfigState);
  return state != nullptr && (*state == "pending" || *state == "rebooting");
}

Result<model::DynamicMig> mig_of(const api::Node& node, DeviceKnowledge knowledge) {
  const std::string policy = text_of(node, kMigPolicy);
  if (policy.empty() || policy == "static") return model::DynamicMig{};
  if (policy != "dynamic")
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: '{}' is neither dynamic nor static", kMigPolicy, printable(policy, 80)));
  const std::string product = text_of(node, "nvidia.com/gpu.product");
  const model::GpuProduct read = model::read_gpu_product(product);
  if (read.model == nullptr)
    return refused(fmt::format("the label nvidia.com/gpu.product names no model whose MIG geometry is known ('{}')",
                               printable(product, 80)));
  if (const std::string why = memory_contradiction(node, read); !why.empty()) return refused(why);
  const std::string strategy = text_of(node, "nvidia.com/mig.strategy");
  if (read.single || (!strategy.empty() && strategy != "mixed"))
    return refused("instances are advertised by profile with the device plugin's strategy mixed only");
  const std::string replicas = text_of(node, "nvidia.com/gpu.replicas");
  if (number_in(replicas) > 1 || node.capacity.get("nvidia.com/gpu.shared") > 0)
    return refused("the device plugin advertises each GPU several times (nvidia.com/gpu.replicas)");
  const bool named = has_mig_manager(node);
  if (!named) {
    BERTH_TRY(count, told_devices(node, *read.model));
    if (count > 0) return model::DynamicMig{read.model, count, model::MigHand::kLayouts};
    if (knowledge == DeviceKnowledge::kCounts)
      return refused(
          fmt::format("nobody is there who would cut the GPUs: neither an agent that writes {} nor NVIDIA's "
                      "MIG manager (label {})",
                      kDevicesAnnotation, kMigConfig));
  }
  const int64_t devices = number_in(text_of(node, "nvidia.com/gpu.count"));
  if (devices < 1 || devices > kDevicesMax)
    return refused(
        fmt::format("the label nvidia.com/gpu.count has to say how many GPUs there are, from 1 to {}", kDevicesMax));
  BERTH_TRY_VOID(all_allocatable(node));
  BERTH_TRY_VOID(all_healthy(node));
  return model::DynamicMig{read.model, devices, named ? model::MigHand::kNamed : model::MigHand::kLayouts};
}

}  // namespace berth::bridge
