#include "model/gpu.h"

#include <algorithm>

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

int64_t NodeGpus::units_of(const GpuShare& share) const {
  if (share.memory_bytes <= 0) return share.micros * (units() / kWholeGpu);
  return memory_bytes <= 0 ? 0 : std::min(share.memory_bytes, memory_bytes + 1) * kWholeGpu;
}

int64_t NodeGpus::replicas_of(const GpuShare& share) const {
  return static_cast<int64_t>((Int128{units_of(share)} * replicas + units() - 1) / units());
}

}  // namespace berth::model
