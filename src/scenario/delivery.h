// Delivery: the orders in which watches could bring a batch of events.
#pragma once

#include <vector>

#include "base/rng.h"
#include "engine/event.h"

namespace berth::scenario {

// Puts `events` into an order drawn from `rng`. Events about the same object stay in order, as one watch delivers them;
// what became of a bind is reported beside the watch and may come before or after it.
void shuffle_delivery(std::vector<engine::Event>& events, Rng& rng);

}  // namespace berth::scenario
