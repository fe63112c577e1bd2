#include "packing/node.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/check.h"

namespace berth::packing {
namespace {

size_t shape_of(const Request& request) { return request.is_share() ? 0 : static_cast<size_t>(request.devices); }

}  // namespace

int64_t Devices::free() const { return std::accumulate(free_milli.begin(), free_milli.end(), int64_t{0}); }

int Devices::idle() const {
  return static_cast<int>(std::count(free_milli.begin(), free_milli.end(), kMilliPerDevice));
}

int Devices::tightest(int32_t milli) const {
  int best = -1;
  for (int d = 0; d < count; ++d)
    if (free_milli[d] >= milli && (best < 0 || free_milli[d] < free_milli[best])) best = d;
  return best;
}

Node::Node(int64_t cpu_milli, int64_t memory_bytes, int devices, ModelIndex model)
    : cpu_milli_(cpu_milli), memory_bytes_(memory_bytes), model_(model) {
  check(cpu_milli >= 0 && memory_bytes >= 0 && devices >= 0 && devices <= kDevicesMax && model < kModelsMax,
        "a node within the bounds");
  devices_.count = devices;
  std::fill_n(devices_.free_milli.begin(), devices, kMilliPerDevice);
}

bool Node::fits(const Request& request) const {
  if (request.cpu_milli > cpu_milli_ || request.memory_bytes > memory_bytes_) return false;
  if (request.devices == 0) return true;
  if ((request.models >> model_ & 1) == 0) return false;
  int with_room = 0;
  for (int d = 0; d < devices_.count; ++d) with_room += devices_.free_milli[d] >= request.milli_each ? 1 : 0;
  return with_room >= request.devices;
}

DeviceMask Node::first_idle(const Request& request) const {
  DeviceMask mask = 0;
  int wanted = request.devices;
  for (int d = 0; d < devices_.count && wanted > 0; ++d) {
    if (devices_.free_milli[d] != kMilliPerDevice) continue;
    mask |= DeviceMask{1} << d;
    --wanted;
  }
  check(wanted == 0, "there are as many idle devices as the request asks for");
  return mask;
}

void Node::take(const Request& request, DeviceMask devices) {
  check(std::popcount(devices) == request.devices && request.cpu_milli <= cpu_milli_ &&
            request.memory_bytes <= memory_bytes_,
        "what is taken is there");
  cpu_milli_ -= request.cpu_milli;
  memory_bytes_ -= request.memory_bytes;
  for (int d = 0; d < kDevicesMax; ++d) {
    if ((devices >> d & 1) == 0) continue;
    check(devices_.free_milli[d] >= request.milli_each, "the device has room");
    devices_.free_milli[d] -= request.milli_each;
  }
  if (request.devices > 0) ++placed_[shape_of(request)];
}

void Node::give_back(const Request& request, DeviceMask devices) {
  check(std::popcount(devices) == request.devices, "what is given back is what was taken");
  cpu_milli_ += request.cpu_milli;
  memory_bytes_ += request.memory_bytes;
  for (int d = 0; d < kDevicesMax; ++d) {
    if ((devices >> d & 1) == 0) continue;
    devices_.free_milli[d] += request.milli_each;
    check(d < devices_.count && devices_.free_milli[d] <= kMilliPerDevice, "the device was given before");
  }
  if (request.devices == 0) return;
  check(--placed_[shape_of(request)] >= 0, "the request was on the node");
}

}  // namespace berth::packing
