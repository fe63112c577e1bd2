// Upper bounds: how much of a fleet's devices any way of placing requests could use.
//
// Linear programs over the patterns of shares that one device holds (packing/linear_program.h). Both let requests be
// divided, and let each share that a device holds belong to any request of that size. Pure functions; deterministic.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "packing/node.h"

namespace berth::packing {

struct CountedRequest {
  Request request;
  double count = 0;  // how many come; a fraction where it is a mean
};

// The most milli-devices that any subset of the requests can use on the empty nodes. It relaxes: requests and patterns
// may be divided, and CPU, memory and devices of nodes that are alike (model, devices, CPU, memory) are one pool, but a
// request of many devices needs a node with as many. Models, CPU, memory and the patterns of shares are obeyed. The
// value is concave in the counts: at mean counts it bounds the mean. None where the program is too large.
std::optional<double> batch_bound_milli(std::span<const Node> nodes, std::span<const CountedRequest> requests);

// The same for whoever places each request as it comes, and whatever fits: while an idle device is left, all is taken,
// and afterwards only what a remnant has room for. So of requests for whole devices, and of shares for which the mix
// leaves no remnant (above kLargeShareMilli), equal parts are taken, and of no other size a lesser part. It
// relaxes CPU, memory, models and nodes altogether. Holds in the mean of the order of arrival: an estimate, no proof.
std::optional<double> online_bound_milli(double devices, std::span<const CountedRequest> requests);

inline constexpr int32_t kLargeShareMilli = 700;

}  // namespace berth::packing
