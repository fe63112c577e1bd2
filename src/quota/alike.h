// Which workloads are alike: what one that waits is told of quota and places holds for the others, too, as long as it
// was there first and nothing changes. Pure functions.
#pragma once

#include <cstdint>

#include "model/queues.h"

namespace berth::quota {

// The same for workloads that are alike for quota; of others nearly always another. Differs from one process to the
// next.
uint64_t likeness(const model::Workload& workload);

// Whether they ask for the same in the same LocalQueue with the same priority. Labels that name a Job or a group, which
// all pods of it have, do not count: a selector that sees them is a part of what is asked for.
bool alike(const model::Workload& a, const model::Workload& b);
// The same but for all labels of their pods, which quota does not see, and places may.
bool alike_for_quota(const model::Workload& a, const model::Workload& b);

}  // namespace berth::quota
