// What the status of a LocalQueue says that the queue has used of late, as Kueue's admission fair sharing keeps it:
//
//   status: {fairSharing: {weightedShare: 0, admissionFairSharingStatus: {
//     consumedResources: {nvidia.com/gpu: "3.25"}, lastUpdate: "2026-11-23T16:00:00.000000Z"}}}
//
// Pure functions.
#pragma once

#include <optional>
#include <string>

#include "api/reader.h"
#include "model/queues.h"

namespace berth::api {

// What the object says; none: it says nothing, or not up to when. An amount that cannot be read or is negative counts
// as nothing, a time before 1970 as that. Nothing of it is a problem: whoever may write a status could close the queue.
std::optional<model::UsedOfLate> used_of_late(const Reader& object);

// An amount as a quantity, to a thousand-millionth: "3.25".
std::string usage_text(double amount);

}  // namespace berth::api
