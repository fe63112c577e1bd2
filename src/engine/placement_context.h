// PlacementContext: what it takes to try out placements of pods on the live state, beside Engine's own turns.
#pragma once

#include <absl/container/btree_set.h>

#include "engine/disruption_rules.h"
#include "engine/failure_sets.h"
#include "engine/kept_gpus.h"
#include "engine/pending_queue.h"
#include "engine/policy_set.h"
#include "engine/state.h"

namespace berth::engine {

// All of it is the engine's, and outlives who has this.
struct PlacementContext {
  State& state;
  const PolicySet& policies;
  FailureSets& sets;
  PendingQueue& queue;  // whose candidates of classes are used and kept up to date
  DisruptionRules& rules;
  const absl::btree_set<PodSlot, QueueOrder>& nominees;
  KeptGpus& kept_gpus;
};

}  // namespace berth::engine
