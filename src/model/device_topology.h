// DeviceTopology: how the devices of a node are connected, and which of those that are free go best together.
//
// A set of devices is as close as the worst way between two of it, since a ring that goes through all is as fast as its
// slowest part (NCCL): NVLink before one PCIe switch, one root port, one CPU (NUMA node), and that before two. Of sets
// that are equally close the one is better with the higher score: the sum over its pairs, of which each counts 100 for
// each NVLink, and by the way from one to the other that is left without: 50 under one PCIe switch, 30 under one root
// port, 20 under one CPU, else 10. These numbers are those of the NVIDIA device plugin's preferred allocation
// (go-gpuallocator, best-effort policy), which goes by the sum alone.
//
// Nodes of the same make have equal topologies; make one object for all of them. Making one takes 2^devices steps, and
// up to eight devices every answer is known from then on; with more, choose() looks at each set of the size, 12,870 at
// most, and remembers its latest answers. One thread.
//
//   const DeviceTopology dgx(devices);
//   dgx.choose(0b1111'0011, 4)   // of devices 0, 1, 4 … 7 the four that go best together
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/devices.h"

namespace berth::model {

// The way between two devices, the best first. kUntold: not even their NUMA nodes are known, and they count as far.
enum class DeviceLink : uint8_t { kNvlink, kPcieSwitch, kPcieRoot, kNuma, kSystem, kUntold };
// "NVLink", "PCIe switch", "PCIe root port", "CPU", "between CPUs", "connection not told".
std::string_view to_string(DeviceLink link);

class DeviceTopology {
 public:
  // Of at most kNodeDevicesMax devices.
  explicit DeviceTopology(const NodeDevices& devices);

  int size() const { return static_cast<int>(pairs_.size()); }
  // The best `count` devices of `free`. Of equals those that leave the rest of `free` with the highest score, then
  // those with the lowest places, compared from the first on. Empty if `free` has not so many, or for 0.
  DeviceSet choose(DeviceSet free, int count) const;
  // Whether a is closer than b, or as close with a higher score; of sets of one size.
  bool better(DeviceSet a, DeviceSet b) const {
    return worst_[a] != worst_[b] ? worst_[a] < worst_[b] : scores_[a] > scores_[b];
  }

  // The sum over the pairs of the set.
  int32_t score(DeviceSet set) const { return scores_[set]; }
  // How close the devices of the set are, whatever their model, by its worst pair: 1000 for NVLink, 700 for one PCIe
  // switch, 500 for one root port, 300 for one CPU and 0 for two; of those alike, by the mean, which adds up to a
  // twentieth. A set of one is 1000.
  int32_t closeness(DeviceSet set) const;
  // The worst way between any two of the set; kNvlink for a set of one.
  DeviceLink weakest(DeviceSet set) const { return worst_[set]; }
  DeviceLink link(int a, int b) const { return pairs_[static_cast<size_t>(a)][static_cast<size_t>(b)].link; }

 private:
  struct Pair {
    DeviceLink link = DeviceLink::kUntold;
    int32_t score = 0;
  };
  DeviceSet search(DeviceSet free, int count) const;

  std::vector<std::vector<Pair>> pairs_;
  std::vector<int32_t> scores_;                                 // by DeviceSet
  std::vector<int32_t> close_pairs_;                            // by DeviceSet: the sum over its pairs
  std::vector<DeviceLink> worst_;                               // by DeviceSet
  std::vector<std::vector<uint8_t>> answers_;                   // by count and free set, where the devices are few
  mutable std::unordered_map<uint64_t, DeviceSet> remembered_;  // by the same, where they are more
};

// Those that may be given whole to new work: healthy, and not cut into MIG instances.
DeviceSet whole_devices(const NodeDevices& devices);

// For people: "; 1 of 4 GPUs is unhealthy (GPU-b: XID 79)", of those that are, with who has them; empty: none is.
std::string ill_gpus(const NodeDevices& devices);

}  // namespace berth::model
