// Ids of the engine: indexes into its tables, meaningful inside one Engine only. They never leave it in a decision.
#pragma once

#include "base/strong_id.h"

namespace berth::engine {

using NodeSlot = StrongId<struct NodeSlotTag>;
using PodSlot = StrongId<struct PodSlotTag>;
using ClassId = StrongId<struct ClassIdTag>;
using ResourceId = StrongId<struct ResourceIdTag>;
using FailureSetId = StrongId<struct FailureSetIdTag>;
using TopologyKeyId = StrongId<struct TopologyKeyIdTag>;
using DomainId = StrongId<struct DomainIdTag>;
using IdentityId = StrongId<struct IdentityIdTag>;
using SelectorId = StrongId<struct SelectorIdTag>;
using TermId = StrongId<struct TermIdTag>;
using GroupId = StrongId<struct GroupIdTag>;

}  // namespace berth::engine
