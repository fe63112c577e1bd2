// The annotation berth.dev/devices: read or refused; what is read is as model::NodeDevices promises.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "bridge/devices.h"
#include "model/device_topology.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace berth;
  const auto devices = bridge::read_devices(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!devices) return 0;
  check(devices->devices.size() <= model::kNodeDevicesMax, "no more devices than can be known one by one");
  for (size_t i = 0; i < devices->devices.size(); ++i) {
    for (const auto& [peer, links] : devices->devices[i].nvlinks) {
      check(peer < devices->devices.size() && peer != i, "a peer is another device");
      const auto& back = devices->devices[peer].nvlinks;
      check(std::count(back.begin(), back.end(), std::pair(static_cast<uint32_t>(i), links)) == 1,
            "links are the same from both ends");
    }
  }
  if (devices->devices.size() > 8) return 0;  // those would be slow
  const model::DeviceTopology topology(*devices);
  const model::DeviceSet free = model::whole_devices(*devices);
  check((topology.choose(free, 2) & ~free) == 0, "only what is free is given");
  return 0;
}
