// plan_batch(): places for requests that wait, chosen together.
//
// A policy that takes one request after the other spoils devices that a later request would have filled. A batch sees
// all requests of its window before it settles the first:
//
//   1. requests that were passed over often enough are placed first, in the order of the queue, and keep their places;
//   2. the others follow as they wait. If all find a place, that is the plan; otherwise they are placed again: many
//      devices first, then what asks for most CPU for the part of a device that it stands for (ShareWorth);
//   3. repair: nodes that are not full are emptied of the shares and single devices that this batch put there, and
//      filled anew with what waits, so that each device becomes full; kept when more is used, or as much by more
//      requests. It ends when nothing improves or the work is spent. Should 2 have used more as they wait, that is the
//      plan after all;
//   4. whatever still fits is placed, requests without devices last.
//
// So it takes what uses most of the devices, not most requests: where more is asked for than there is, whole devices
// rather than shares that leave waste.
//
// Deterministic: the work is counted, not timed, and draws come from a seed. Nothing that ran before is moved.
//
// Invariants: 1. after a batch no request of its window fits that was not placed; 2. requests that were passed over
// kPassedOverMax times are placed before all others, in order, as long as they fit.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "packing/fleet.h"

namespace berth::packing {

// How many batches may prefer others to a request that fits when they begin; then it goes before all that are not due.
inline constexpr int32_t kPassedOverMax = 3;

struct WaitingRequest {
  Request request;
  int32_t passed_over = 0;  // batches that began when it fit, and did not place it
};

struct BatchOptions {
  // Work of the repair: how often a class of requests is looked at for a device. All of them take some two seconds.
  int64_t looks_max = 100'000'000;
  uint64_t seed = 1;
};

// The places of `waiting`, by its order; none where a request has to wait on. They are taken in the fleet, whose policy
// was told of the requests before (Fleet::observe). Costs two Fleet::place() for each request, and the repair.
std::vector<std::optional<Placement>> plan_batch(Fleet& fleet, std::span<const WaitingRequest> waiting,
                                                 const BatchOptions& options = {});

}  // namespace berth::packing
