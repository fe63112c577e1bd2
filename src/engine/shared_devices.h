// SharedDevices: the devices of one node that pods share, and how much of each is taken.
//
// Only devices that shares have opened are listed; a device that is given whole is a number in the node's use. A device
// whose last share has left is closed, and its index is used again. Whoever is put on a device stays there.
//
// Where the node advertises each device as several replicas, nobody knows which of them a share has, and only the
// shares are listed (ReplicaShares).
//
// Amounts are in the units of model::NodeGpus. A device that pods say they share may hold more than it has: that is
// over-use from outside, and it has no room until they leave.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/replica_shares.h"
#include "model/device_topology.h"
#include "model/devices.h"
#include "model/gpu.h"

namespace berth::engine {

// Whose share of a device it is.
enum class ShareHolder : uint8_t {
  kStays,     // has it, and nobody has told it to leave
  kLeaves,    // has it, and promises count on its leaving
  kPromised,  // has only the promise of room
};

class SharedDevices {
 public:
  SharedDevices() = default;
  // `barred`: those that take no new share, open or not.
  explicit SharedDevices(int64_t whole, model::DeviceSet barred = 0) : whole_(whole), barred_(barred) {}

  // Of which open devices; kStaying: of those where some share stays.
  enum class Among : uint8_t { kAll, kStaying };
  // The open device with the least room that still has this much, the first of equals; -1: none has. `given`: those
  // that somebody has whole, which take no further share.
  int32_t best_fit(int64_t units, model::DeviceSet given, Among among = Among::kAll) const;
  // How much is free on the open device with the most room of those that take more; -1: none does.
  int64_t most_room(model::DeviceSet given, Among among = Among::kAll) const;
  // How many devices are open; for promises alone; and once those have left who are told to.
  int64_t count_open() const {
    return std::ranges::count_if(used_, [](int64_t used) { return used > 0; });
  }
  int64_t count_promised() const;
  int64_t count_later() const;
  // The first index from `first` on that no open device has.
  int32_t next_closed(int32_t first = 0) const;
  // The open ones, of the first 32.
  model::DeviceSet open() const;
  bool has_room(int32_t device, int64_t units) const { return used(device) + units <= whole_; }
  int64_t used(int32_t device) const {
    return static_cast<size_t>(device) < used_.size() ? used_[static_cast<size_t>(device)] : 0;
  }

  // By how much devices hold more than they have, in all.
  int64_t over() const;
  // By how many the open devices become more: 1, 0, or -1.
  int take(int32_t device, int64_t units, ShareHolder holder);
  int give_back(int32_t device, int64_t units, ShareHolder holder);

  const std::vector<int64_t>& all() const { return used_; }  // by index; 0: closed
  const ReplicaShares& replicas() const { return replicas_; }
  ReplicaShares& replicas() { return replicas_; }

 private:
  struct Sharers {
    uint32_t there = 0;  // all but those that are only promised room
    uint32_t stay = 0;
    uint32_t come = 0;
  };
  void count(size_t device, ShareHolder holder, uint32_t more);
  bool takes_none(size_t device, model::DeviceSet given, Among among) const {
    return used_[device] == 0 || (among == Among::kStaying && sharers_[device].stay == 0) ||
           (device < 32 && ((barred_ | given) >> device & 1) != 0);
  }

  int64_t whole_ = model::kWholeGpu;
  model::DeviceSet barred_ = 0;
  std::vector<int64_t> used_;
  std::vector<Sharers> sharers_;  // as many as used_
  ReplicaShares replicas_;
};

// ListedDevices: the devices of a node on which an agent lists them, as far as they are given whole. Two pods may say
// that they have the same device: that is over-use from outside.
class ListedDevices {
 public:
  ListedDevices() = default;
  ListedDevices(std::shared_ptr<const model::DeviceTopology> topology, model::DeviceSet usable)
      : topology_(std::move(topology)), usable_(usable) {}

  explicit operator bool() const { return topology_ != nullptr; }
  const model::DeviceTopology& topology() const { return *topology_; }
  model::DeviceSet taken() const { return taken_; }
  // Those that the agent says are given to pods that the engine does not know on the node; and to such beside pods that
  // it knows, whose use counts: how much is left, nobody knows.
  model::DeviceSet strangers() const { return strangers_; }
  model::DeviceSet with_strangers() const { return with_strangers_; }
  model::DeviceSet given() const { return taken_ | strangers_ | with_strangers_; }
  int32_t size() const { return topology_ == nullptr ? 0 : topology_->size(); }
  // Those that new work may have, beside what shares have opened.
  model::DeviceSet free(model::DeviceSet open) const { return usable_ & ~given() & ~open; }

  void take(model::DeviceSet set);
  void give_back(model::DeviceSet set);
  void set_strangers(model::DeviceSet alone, model::DeviceSet with_others) {
    strangers_ = alone;
    with_strangers_ = with_others;
  }

 private:
  std::shared_ptr<const model::DeviceTopology> topology_;  // shared by nodes that are alike
  model::DeviceSet usable_ = 0;                            // healthy, and not cut into MIG instances
  model::DeviceSet taken_ = 0, strangers_ = 0, with_strangers_ = 0;
  std::array<uint32_t, model::kNodeDevicesMax> pods_{};  // by device, that have it
};

// What of its node's devices a pod is charged: a share, or whole ones of those that are listed.
struct DeviceUse {
  int32_t device = -1;                       // of SharedDevices; -1: none
  bool guessed = false;                      // nobody has said that it is this device, or these
  ShareHolder holder = ShareHolder::kStays;  // as whose it counts
  bool gone = false;           // `device` stands for one that the pod names and that is not there any more
  model::DeviceSet whole = 0;  // of ListedDevices
  int64_t amount = 0;    // units of `device`; without one, replicas of the node's resource, beside the pod's requests
  int64_t replicas = 0;  // of one device that nobody knows, those of the pod's requests among them
  bool none() const { return device < 0 && whole == 0; }
  friend bool operator==(const DeviceUse&, const DeviceUse&) = default;
};

}  // namespace berth::engine
