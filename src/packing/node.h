// Node and Request: what packing looks at, exact to the device.
//
// A node is what is free on it: CPU, memory, and of each device its thousandths. A request asks for whole devices, for
// a share of one device, or for none. Which devices a request gets is part of its place (DeviceMask), so that a share
// can be given back to the device that it came from. Plain values; no thread, no cluster, no trace.
//
// Invariants: 1. nothing free is ever negative or above what the node began with; 2. a device serves at most 1,000
// thousandths.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>

namespace berth::packing {

inline constexpr int32_t kMilliPerDevice = 1000;
inline constexpr int kDevicesMax = 16;      // on one node
inline constexpr uint32_t kModelsMax = 63;  // in one fleet

// A device model, as an index that whoever builds the nodes hands out from 0; below kModelsMax.
using ModelIndex = uint32_t;
// Bit m: model m is allowed.
using ModelSet = uint64_t;
inline constexpr ModelSet kAnyModel = ~ModelSet{0};

// Bit d: device d of the node.
using DeviceMask = uint32_t;

// `devices` devices of which each gives `milli_each`: a share only of one device (1 … 999), otherwise whole ones
// (1000); 0 and 0 for a request without devices, whose `models` say nothing.
struct Request {
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int32_t devices = 0;
  int32_t milli_each = 0;
  ModelSet models = kAnyModel;

  bool is_share() const { return devices == 1 && milli_each < kMilliPerDevice; }
  int64_t device_milli() const { return int64_t{devices} * milli_each; }
  friend bool operator==(const Request&, const Request&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const Request& r) {
    return H::combine(std::move(state), r.cpu_milli, r.memory_bytes, r.devices, r.milli_each, r.models);
  }
};

// Thousandths that are free, device by device; entries from `count` on are 0.
struct Devices {
  std::array<int32_t, kDevicesMax> free_milli{};
  int count = 0;

  int64_t free() const;
  // How many have nothing on them.
  int idle() const;
  // The fullest device with room for `milli`, the first of equals; -1 without one.
  int tightest(int32_t milli) const;
};

class Node {
 public:
  Node(int64_t cpu_milli, int64_t memory_bytes, int devices, ModelIndex model);

  int64_t cpu_milli() const { return cpu_milli_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  const Devices& devices() const { return devices_; }
  ModelIndex model() const { return model_; }
  // How many requests for a share (index 0) and for n whole devices (index n) are on the node.
  const std::array<int32_t, kDevicesMax + 1>& placed() const { return placed_; }

  bool fits(const Request& request) const;
  // The lowest idle devices, as many as the request asks for. It fits.
  DeviceMask first_idle(const Request& request) const;
  // `devices` are as many as the request asks for, each with room.
  void take(const Request& request, DeviceMask devices);
  // Undoes a take() of the same.
  void give_back(const Request& request, DeviceMask devices);

 private:
  int64_t cpu_milli_;  // free, as is all that follows
  int64_t memory_bytes_;
  Devices devices_;
  ModelIndex model_;
  std::array<int32_t, kDevicesMax + 1> placed_{};
};

}  // namespace berth::packing
