// Ids of the engine: indexes into its tables, meaningful inside one Engine only. They never leave it in a decision.
#pragma once

#include "base/strong_id.h"

namespace berth::engine {

using NodeSlot = StrongId<struct NodeSlotTag>;
using PodSlot = StrongId<struct PodSlotTag>;
using ClassId = StrongId<struct ClassIdTag>;
using ResourceId = StrongId<struct ResourceIdTag>;
using FailureSetId = StrongId<struct FailureSetIdTag>;

}  // namespace berth::engine
