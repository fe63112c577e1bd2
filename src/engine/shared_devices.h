// SharedDevices: the devices of one node that pods share, and how much of each is taken.
//
// Only devices that shares have opened are listed; a device that is given whole is a number in the node's use. A device
// whose last share has left is closed, and its index is used again. Whoever is put on a device stays there.
//
// Amounts are in the units of model::NodeGpus. A device that pods say they share may hold more than it has: that is
// over-use from outside, and it has no room until they leave.
#pragma once

#include <cstdint>
#include <vector>

#include "model/gpu.h"

namespace berth::engine {

class SharedDevices {
 public:
  SharedDevices() = default;
  explicit SharedDevices(int64_t whole) : whole_(whole) {}

  // The open device with the least room that still has this much, the first of equals; -1: none has.
  int32_t best_fit(int64_t units) const;
  // The first index that no open device has.
  int32_t next_closed() const;
  bool has_room(int32_t device, int64_t units) const { return used(device) + units <= whole_; }
  int64_t used(int32_t device) const {
    return static_cast<size_t>(device) < used_.size() ? used_[static_cast<size_t>(device)] : 0;
  }

  // By how many the open devices become more: 1, 0, or -1.
  int take(int32_t device, int64_t units);
  int give_back(int32_t device, int64_t units);

  const std::vector<int64_t>& all() const { return used_; }  // by index; 0: closed

 private:
  int64_t whole_ = model::kWholeGpu;
  std::vector<int64_t> used_;
};

// Where a share lies that is charged to a node.
struct ShareUse {
  int32_t device = -1;   // of SharedDevices; -1: none
  bool guessed = false;  // nobody has said that it is this device
  int64_t amount = 0;  // units of that device; without one, replicas of the node's resource, beside the pod's requests
  friend bool operator==(const ShareUse&, const ShareUse&) = default;
};

}  // namespace berth::engine
