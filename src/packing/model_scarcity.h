// ModelScarcity: how early the devices of each model run short, by what requests name and what the fleet has.
//
// Where T4 is named by a quarter of the demand and is an eighth of the fleet, whoever could go elsewhere should leave
// the T4s alone. For demand of 1/8, 2/8, … 16/8 of the fleet's devices, in the proportions of the mix, a linear program
// serves as much as can be served; a device's price there is what one more of its model would add: 1 where it is short,
// 0 where it is not. The scarcity is the mean of these prices, 0 … 1: smooth, so that no threshold is crossed at once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "packing/node.h"

namespace berth::packing {

// By model, like `devices`, of which the fleet has so many. All 0 without requests for devices.
std::vector<double> model_scarcity(std::span<const Request> requests, const std::vector<int64_t>& devices);

}  // namespace berth::packing
