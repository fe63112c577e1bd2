// convert_kueue(): an object of kueue.x-k8s.io in its other version, with nothing lost.
//
// What the other version cannot say is kept in an annotation of it (webhook/kept.h), berth.dev/kept-v1beta1 or
// berth.dev/kept-v1beta2, named after the version that can; the way back restores it and takes the annotation away. So
// converting there and back is the identity for a spec that its schema accepts. Of a status only topology assignments
// are kept: one whose slices are too large to be kept is packed anew, one that is too large for v1beta1 is left out
// there, and so are status.pendingWorkloadsStatus and status.flavors of v1beta1 in v1beta2. Members that Berth does not
// know are copied.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "webhook/topology_assignment.h"

namespace berth::webhook {

inline constexpr std::string_view kOlderVersion = "kueue.x-k8s.io/v1beta1";
inline constexpr std::string_view kStoredVersion = "kueue.x-k8s.io/v1beta2";

// All annotations of an object may have 256 KiB; of these what is kept takes at most this, in bytes. What of a status
// is more than that is left out: its controller writes it again.
inline constexpr size_t kKeptBytesMax = size_t{64} << 10;

// `object` as `version`, which may be the one that it has. Errors: another version or group, no object; a spec of which
// more than kKeptBytesMax would have to be kept; a budget for the request that this object exceeds.
Result<nlohmann::json> convert_kueue(nlohmann::json object, std::string_view version, UnpackBudget& budget);

}  // namespace berth::webhook
