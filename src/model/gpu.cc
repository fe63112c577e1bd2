#include "model/gpu.h"

#include <algorithm>
#include <charconv>

#include "base/int128.h"

namespace berth::model {

std::string_view to_string(DeviceMode mode) {
  switch (mode) {
    case DeviceMode::kCounts: return "counts";
    case DeviceMode::kAgent: return "agent";
    case DeviceMode::kDra: return "DRA";
    case DeviceMode::kExact: return "exact";
  }
  return "";
}

int64_t gpu_memory(const Labels& labels) {
  constexpr int64_t kMiB = 1024 * 1024;
  const std::string* text = labels.find("nvidia.com/gpu.memory");
  int64_t mib = 0;
  if (text == nullptr) return 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), mib);
  const bool told = error == std::errc{} && end == text->data() + text->size();
  return told && mib > 0 && mib <= kGpuMemoryMax / kMiB ? mib * kMiB : 0;
}

int64_t part_of_memory(const GpuShare& share, int64_t gpu_memory_bytes) {
  const Int128 micros = Int128{share.memory_bytes} * kWholeGpu / gpu_memory_bytes;
  return static_cast<int64_t>(std::clamp<Int128>(micros, 1, kWholeGpu));
}

int64_t NodeGpus::units_of(const GpuShare& share) const {
  if (share.memory_bytes <= 0) return share.micros * (units() / kWholeGpu);
  return memory_bytes <= 0 ? 0 : std::min(share.memory_bytes, memory_bytes + 1) * kWholeGpu;
}

int64_t NodeGpus::replicas_of(const GpuShare& share) const {
  return static_cast<int64_t>((Int128{units_of(share)} * replicas + units() - 1) / units());
}

}  // namespace berth::model
