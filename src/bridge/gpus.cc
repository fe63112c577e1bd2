#include "bridge/gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/printable.h"
#include "model/mig.h"
#include "model/quantity.h"

namespace berth::bridge {
namespace {

constexpr std::string_view kSharedGpu = "nvidia.com/gpu.shared";
constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kDeviceMax = 1023;
constexpr int64_t kReplicasMax = 1'000;

// A whole number from 0 on; nothing for any other text.
std::optional<int64_t> number_of(const std::string* text) {
  int64_t value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  return error == std::errc{} && end == text->data() + text->size() && value >= 0 ? std::optional(value) : std::nullopt;
}

std::optional<int64_t> label_number(const api::Node& node, std::string_view key) {
  return number_of(node.metadata.labels.find(key));
}

// What stands between commas; nothing where some of it is no device: a number that is too large, or no UUID.
std::optional<std::vector<std::string>> device_names(const std::string& text) {
  std::vector<std::string> out;
  for (size_t from = 0; from <= text.size();) {
    const size_t to = std::min(text.find(',', from), text.size());
    std::string name = text.substr(from, to - from);
    const bool digits = name.find_first_not_of("0123456789") == std::string::npos;
    const bool word = std::ranges::any_of(name, [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }) &&
                      std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
    const bool number = digits && number_of(&name).value_or(kDeviceMax + 1) <= kDeviceMax;
    if ((!word && !number) || std::ranges::find(out, name) != out.end()) return std::nullopt;
    out.push_back(std::move(name));
    from = to + 1;
  }
  return out;
}

int64_t fraction_micros(const std::string& text) {
  const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
  const auto micros = plain ? model::parse_quantity(text, 6) : Result<int64_t>(0);
  return micros && *micros >= 1 && *micros <= model::kWholeGpu ? *micros : 0;
}

// Bytes; 0: not an amount of memory. KAI's annotation is in MiB, without a unit.
int64_t memory_bytes(std::string_view key, const std::string& text) {
  if (key == kKaiMemory) {
    const std::optional<int64_t> mib = number_of(&text);
    return mib && *mib <= INT64_MAX / kMiB ? *mib * kMiB : 0;
  }
  const auto bytes = model::parse_quantity(text);
  return bytes && *bytes >= kMiB ? *bytes : 0;
}

bool is_fraction(std::string_view key) { return key == kGpuFractionAnnotation || key == kKaiFraction; }
bool is_memory(std::string_view key) { return key == kGpuMemoryAnnotation || key == kKaiMemory; }

}  // namespace

std::string gpu_label_problem(const api::Node& node) {
  for (const char* name : {"nvidia.com/gpu.count", "nvidia.com/gpu.replicas", "nvidia.com/gpu.memory"})
    if (const std::string* text = node.metadata.labels.find(name); text != nullptr && !number_of(text))
      return fmt::format("the label {} says '{}', which is no number, and has no effect; restart GPU feature discovery",
                         name, printable(*text, 80));
  return "";
}

std::string gpu_annotation_problem(std::string_view key, const std::string& value) {
  if (is_fraction(key) && fraction_micros(value) == 0)
    return fmt::format("'{}' is no part of a GPU; write a number above 0 and at most 1, for example \"0.5\"",
                       printable(value, 80));
  if (is_memory(key) && memory_bytes(key, value) == 0)
    return fmt::format("'{}' is no amount of memory; write {}", printable(value, 80),
                       key == kKaiMemory ? "MiB as a whole number above 0, for example \"4096\""
                                         : "a quantity from 1Mi to 7Ei, with its unit, for example 10Gi");
  if (key == kKaiDevices && value != "1")
    return fmt::format("'{}': a share is one of a single GPU; remove the annotation", printable(value, 80));
  if (key == kGpuDevicesAnnotation && !device_names(value))
    return fmt::format(
        "'{}' names no devices; write their UUIDs or numbers (0 to {}), each once, with commas between "
        "them",
        printable(value, 80), kDeviceMax);
  return "";
}

model::GpuShare gpu_share_of(const api::ObjectMeta& metadata, const model::ResourceList& requests) {
  model::GpuShare out;
  std::vector<std::string_view> given;  // what asks for a share, Berth's before KAI's
  for (const std::string_view key : {kGpuFractionAnnotation, kGpuMemoryAnnotation, kKaiFraction, kKaiMemory})
    if (metadata.annotation(key) != nullptr) given.push_back(key);
  if (given.empty()) return out;
  const auto bad = [&](std::string_view key, const std::string& why) {
    out.problem = fmt::format("annotation {}: {}.", key, why);
    return out;
  };
  const std::string_view key = given.front();
  const std::string& value = *metadata.annotation(key);
  for (const std::string_view asked : {key, kKaiDevices})
    if (const std::string* text = metadata.annotation(asked); text != nullptr)
      if (const std::string why = gpu_annotation_problem(asked, *text); !why.empty()) return bad(asked, why);
  const std::string_view other = is_fraction(key)
                                     ? (key == kGpuFractionAnnotation ? kGpuMemoryAnnotation : kKaiMemory)
                                     : (key == kGpuMemoryAnnotation ? kGpuFractionAnnotation : kKaiFraction);
  if (std::find(given.begin(), given.end(), other) != given.end())
    return bad(key, fmt::format("this and {} exclude each other; remove one", other));
  for (const auto& [name, amount] : requests)
    if (amount > 0 && model::is_gpu_resource(name) && name != kSharedGpu)
      return bad(key, fmt::format("a share of a GPU does not go with a request for {}; remove one", name));
  if (is_fraction(key)) out.micros = fraction_micros(value);
  else out.memory_bytes = memory_bytes(key, value);
  return out;
}

std::vector<std::string> gpu_devices_of(const api::ObjectMeta& metadata) {
  const std::string* text = metadata.annotation(kGpuDevicesAnnotation);
  return text == nullptr ? std::vector<std::string>{} : device_names(*text).value_or(std::vector<std::string>{});
}

std::string gpu_devices_text(const engine::DeviceNames& devices) {
  return devices.uuids.empty() ? fmt::format("{}", fmt::join(devices.numbers, ","))
                               : fmt::format("{}", fmt::join(devices.uuids, ","));
}

std::string told_devices(const engine::DeviceNames& devices) {
  return fmt::format("{}{}", fmt::join(devices.numbers, ","),
                     devices.link.empty() ? "" : fmt::format(" ({})", devices.link));
}

std::string with_gpus_text(const engine::DeviceNames& devices) {
  std::string out;
  if (!devices.numbers.empty())
    out = fmt::format(" with GPU{} {}", devices.numbers.size() == 1 ? "" : "s", told_devices(devices));
  return devices.limit.empty() ? out : fmt::format("{}; GPU limit {}", out, devices.limit);
}

int64_t replicas_of_resource(const api::Node& node, std::string_view resource, int64_t otherwise) {
  const auto told = label_number(node, fmt::format("{}.replicas", resource));
  return told ? std::clamp<int64_t>(*told, 1, kReplicasMax) : otherwise;
}

model::NodeGpus gpus_of(const api::Node& node, DeviceKnowledge knowledge, bool may_be_whole) {
  model::NodeGpus out;
  const auto has = [&](std::string_view name) { return node.capacity.get(name) > 0 || node.allocatable.get(name) > 0; };
  const auto label = [&](std::string_view key) {
    const std::string* text = node.metadata.labels.find(key);
    return text == nullptr ? std::string_view() : std::string_view(*text);
  };
  for (const model::ResourceList* list : {&node.capacity, &node.allocatable})
    for (const auto& [name, amount] : *list)
      if (model::is_mig_resource(name) && (name.ends_with(kSharedSuffix) || replicas_of_resource(node, name, 1) > 1) &&
          std::find(out.time_sliced.begin(), out.time_sliced.end(), name) == out.time_sliced.end())
        out.time_sliced.push_back(name);
  const int64_t replicas = replicas_of_resource(node, kGpuResource, 1);
  // By how many devices there are; 0: nobody says it. Rounded up, so that all of them together are not too many shares
  // for the devices.
  const auto by_count = [&](std::string_view resource) -> int64_t {
    const int64_t devices = label_number(node, "nvidia.com/gpu.count").value_or(0);
    const int64_t advertised = std::max(node.capacity.get(resource), node.allocatable.get(resource));
    if (devices == 0) return 0;
    return std::clamp<int64_t>(advertised / devices + (advertised % devices > 0 ? 1 : 0), 1, kReplicasMax);
  };
  const std::string_view strategy = label("nvidia.com/gpu.sharing-strategy");
  const bool instances = model::read_gpu_product(label("nvidia.com/gpu.product")).instances;
  const bool shares = replicas == 1 && (strategy == "time-slicing" || strategy == "mps" ||
                                        (strategy != "none" && !instances && by_count(kGpuResource) > 1));
  if (has(kSharedGpu)) {
    out.resource = kSharedGpu;
    out.sharing = model::GpuSharing::kReplicas;
    out.replicas = replicas > 1 ? std::max(replicas, by_count(kSharedGpu)) : by_count(kSharedGpu);
  } else if (has(kGpuResource) || may_be_whole) {
    out.resource = kGpuResource;
    out.replicas = shares         ? by_count(kGpuResource)
                   : replicas > 1 ? std::max(replicas, by_count(kGpuResource))
                                  : replicas;
    out.sharing = out.replicas != 1                      ? model::GpuSharing::kReplicas
                  : knowledge == DeviceKnowledge::kExact ? model::GpuSharing::kDevices
                                                         : model::GpuSharing::kNone;
  } else {
    return out;
  }
  out.mps = label("nvidia.com/gpu.sharing-strategy") == "mps";
  if (instances) out.sharing = model::GpuSharing::kInstances;  // replicas or not
  out.memory_bytes = model::gpu_memory(node.metadata.labels);
  return out;
}

}  // namespace berth::bridge
