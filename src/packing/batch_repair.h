// repair_batch(): devices that a batch left partly free are filled with other requests of the batch.
//
// A node that has something free is emptied of the shares and single devices that this batch put there; then each of
// its devices is filled, with sizes that together leave the least, and requests that ask for no more CPU than there is
// for that much of a device. What comes out better stays.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "packing/batch.h"

namespace berth::packing {

// Changes `places`, and the fleet with them.
void repair_batch(Fleet& fleet, std::span<const WaitingRequest> waiting, std::vector<std::optional<Placement>>& places,
                  const BatchOptions& options);

}  // namespace berth::packing
