#include "bridge/mig.h"

#include <fmt/format.h>

#include <charconv>
#include <string>

#include "base/printable.h"
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

}  // namespace

Result<model::DynamicMig> mig_of(const api::Node& node) {
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
  const std::string strategy = text_of(node, "nvidia.com/mig.strategy");
  if (read.single || (!strategy.empty() && strategy != "mixed"))
    return refused("instances are advertised by profile with the device plugin's strategy mixed only");
  const std::string replicas = text_of(node, "nvidia.com/gpu.replicas");
  if (number_in(replicas) > 1 || node.capacity.get("nvidia.com/gpu.shared") > 0)
    return refused("the device plugin advertises each GPU several times (nvidia.com/gpu.replicas)");
  const int64_t devices = number_in(text_of(node, "nvidia.com/gpu.count"));
  if (devices < 1 || devices > kDevicesMax)
    return refused(
        fmt::format("the label nvidia.com/gpu.count has to say how many GPUs there are, from 1 to {}", kDevicesMax));
  return model::DynamicMig{read.model, devices};
}

}  // namespace berth::bridge
