// FragmentMeasure: how much of what is free on a node is of no use to the requests that a fleet sees.
//
// For one request, a node's fragment is all of its free devices where the request cannot run there (too little CPU, too
// few devices with room, the wrong model, or it asks for no device at all), and otherwise the free parts of those
// devices that are too full for it. The node's fragment is the mean over the typical mix (Weng et al., "Beware of
// Fragmentation", ATC '23, §4.1). Memory does not count.
//
// To stay in integers, a fragment is the sum over the mix, not the mean: milli-devices times requests. unit() is one
// milli-device. What depends on CPU alone is summed up beforehand, and so is what one device is worth to requests of
// one device: a measurement costs, for each device of the node, the logarithm of how many sizes of shares there are,
// and one step for each distinct shape of several devices. Immutable; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "packing/typical_mix.h"

namespace berth::packing {

class FragmentMeasure {
 public:
  // An empty mix makes every fragment 0.
  explicit FragmentMeasure(const TypicalMix& mix);

  int64_t unit() const { return count_; }
  int64_t of(int64_t cpu_milli, const Devices& devices, ModelIndex model) const;
  int64_t of(const Node& node) const { return of(node.cpu_milli(), node.devices(), node.model()); }

 private:
  // Devices that a request asks for, whatever else it does.
  struct Shape {
    int32_t milli_each = 0;
    int32_t devices = 0;
    friend auto operator<=>(const Shape&, const Shape&) = default;
  };

  int64_t used_by_one(const int64_t* runnable, const Devices& devices) const;
  int64_t used_by_several(const int64_t* runnable, const Devices& devices) const;

  int64_t count_ = 0;
  std::vector<int64_t> cpu_demands_;          // distinct, ascending
  std::vector<int32_t> sizes_;                // in milli, of requests of one device; distinct, ascending
  std::vector<Shape> shapes_;                 // of several devices; ascending
  std::array<uint32_t, kModelsMax> kinds_{};  // by model; of one kind are those that the same requests may have
  // How many requests of one device and of the first k sizes a node of the kind with CPU for demand c can run:
  // [(kind * demands + c) * (sizes + 1) + k].
  std::vector<int64_t> of_one_;
  // How many requests of shape s: [(kind * demands + c) * shapes + s].
  std::vector<int64_t> of_several_;
};

}  // namespace berth::packing
