// ResourceTable: resource names as small dense integers, so that a node's amounts are a plain array.
//
// cpu, memory, ephemeral-storage and pods have fixed ids; others are numbered as they are first seen and never
// forgotten (a fleet has tens of them). Amounts are clamped to kMaxAmount, far above any machine; sums of them are kept
// in 128 bits. Allocatable is clamped one below it, so that a clamped request fits nowhere.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>
#include <vector>

#include "base/check.h"
#include "engine/ids.h"
#include "model/quantity.h"
#include "model/resources.h"

namespace berth::engine {

inline constexpr ResourceId kCpu{0};
inline constexpr ResourceId kMemory{1};
inline constexpr ResourceId kEphemeralStorage{2};
inline constexpr ResourceId kPods{3};
inline constexpr int64_t kMaxAmount = int64_t{1} << 50;

struct ResourceAmount {
  ResourceId id;
  int64_t amount = 0;
};

class ResourceTable {
 public:
  ResourceTable() {
    for (const char* name : {"cpu", "memory", "ephemeral-storage", "pods"}) intern(name);
  }

  ResourceId intern(const std::string& name) {
    const auto [at, added] = ids_.try_emplace(name, ResourceId{static_cast<uint32_t>(names_.size())});
    if (added) {
      names_.push_back(name);
      gpu_.push_back(model::is_gpu_resource(name));
    }
    return at->second;
  }
  const std::string& name(ResourceId id) const { return names_.at(id.value); }
  bool is_gpu(ResourceId id) const { return gpu_.at(id.value); }
  size_t size() const { return names_.size(); }

 private:
  absl::flat_hash_map<std::string, ResourceId> ids_;
  std::vector<std::string> names_;
  std::vector<bool> gpu_;
};

}  // namespace berth::engine
