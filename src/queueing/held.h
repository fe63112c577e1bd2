// What a stored Workload says of its past, for an engine that hears of it first: a scheduler that starts, or a
// simulation of a cluster as it was written down.
#pragma once

#include <optional>

#include "base/time.h"
#include "engine/event.h"
#include "model/queues.h"
#include "queueing/seen.h"
#include "quota/decision.h"

namespace berth::queueing {

// The quota that it holds; nothing where it holds none, or where one of its pod sets is missing in it. Times are the
// wall's.
std::optional<quota::HeldQuota> held_by(const SeenWorkload& seen);
// Since when it waits for quota, as Kueue counts it: since it was made, or since it was requeued the last time; now,
// `wall`, where people have not been told yet that it is. And since when it has quota: now where it has none.
Time queued_since(const SeenWorkload& seen, Time wall);
Time reserved_since(const SeenWorkload& seen, Time wall);
// Says what its last eviction, if there was one, leaves behind; times are the wall's. Whoever was made active again
// since then has all of his time and tries once more.
void tell_past(const SeenWorkload& seen, model::Workload& workload);
// Turns the times of an event about a workload from the wall's, which is `ahead`, to those of cycles; what controllers
// and pods say they say `now`, but for pods of which it is stored since when they are not ready.
void tell_time(engine::Event& event, Time now, Duration ahead);

}  // namespace berth::queueing
