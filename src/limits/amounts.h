// Amounts as Kubernetes writes them in its refusals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/resources.h"

namespace berth::limits {

// An amount of what a quota or a LimitRange names, in its canonical unit (api::quota_unit()), as Quantity.String() has
// it: "2", "500m", "10k", "64Gi". Amounts of bytes are in the binary form, in which they are nearly always given.
std::string amount_text(std::string_view resource, int64_t amount);

// "requests.cpu=500m,requests.nvidia.com/gpu=2"; empty for none.
std::string amounts_text(const model::ResourceList& amounts);

}  // namespace berth::limits
