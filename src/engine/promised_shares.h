// Promised shares: where those shares of a node's devices lie that pods are promised (PodPhase::kNominated) and that
// no pod has yet.
//
// They have no device of their own: they take the room that is left of what others have, and as few devices beside
// these as they can. That hangs on who is there alone, not on the order in which all came. So they move with every
// change of the node, also with one that is only tried (engine/trial.h): were a promised share to stay where it lay
// while the pod that leaves for it was still there, it would take a device more than it will need, and others would be
// evicted for nothing.
//
// Example: of two devices one is full and one half full, and the half has to leave for 0.6. While it is there 0.6 needs
// a third device; without it 0.6 lies on the second, and 0.25 fits beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/shared_devices.h"

namespace berth::engine {

// The device that is shared next of those that nobody has; a number beyond those that are there if none is.
int32_t device_to_open(const ListedDevices& listed, const SharedDevices& shared);

// For each of the shares, the largest first, its device beside those that are there; `whole`: how much a device has.
// Bin packing: best fit, and where that opens more devices than the sum of all asks for, a search of bounded work. Who
// comes to the node beside what is promised is one of the shares, so that it fits wherever all of them can lie.
std::vector<int32_t> places_of_shares(const std::vector<int64_t>& amounts, int64_t whole, SharedDevices shared,
                                      const ListedDevices& listed);

}  // namespace berth::engine
