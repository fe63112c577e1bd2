// How much the other devices of a node would lose by one of them: what a device's links to them are worth.
#pragma once

#include <cstdint>
#include <vector>

#include "model/devices.h"

namespace berth::model {

// By device, the sum of the scores (model/device_topology.h) of its pairs with others that are healthy and whole.
std::vector<int32_t> ties_to_whole(const NodeDevices& devices);

}  // namespace berth::model
