// DeviceTopologies: one model::DeviceTopology for all nodes whose devices are connected alike.
//
// What devices and switches are called does not matter, only which of them are the same. Owner thread only.
#pragma once

#include <absl/container/btree_map.h>

#include <memory>
#include <string>

#include "model/device_topology.h"
#include "model/devices.h"

namespace berth::engine {

class DeviceTopologies {
 public:
  // None for no devices.
  std::shared_ptr<const model::DeviceTopology> of(const model::NodeDevices& devices);
  size_t size() const { return known_.size(); }

 private:
  absl::btree_map<std::string, std::weak_ptr<const model::DeviceTopology>> known_;  // by shape
  size_t sweep_at_ = 64;
};

}  // namespace berth::engine
