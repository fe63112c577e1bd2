// WantedPlaces: workloads that quota would let in and that no node has a place for, with what their pods are.
//
// For planners that stand beside the engine and could have nodes made ready for them (mig/repartition_plan.h).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/ids.h"
#include "quota/decision.h"

namespace berth::engine {

struct WantedPlaces {
  // Equal pods; those with the most GPUs come first.
  struct Set {
    PodSlot pod;  // a stand-in of their class
    int32_t count = 0;
    std::vector<NodeSlot> places;  // of the first of them, which have some as things are
  };
  // With one choice of flavors.
  struct Option {
    std::vector<Set> sets;
    quota::PlaceOption given;
  };
  std::vector<quota::WorkloadId> workloads;  // that were all told the same, in the order of their queue
  bool has_waited = false;                   // the first of them: as quota::WantsPlace says
  std::vector<PodSlot> kept;        // stand-ins with room that is kept for the first of them, as it has no other,
  std::vector<PodSlot> kept_after;  // and, where it has waited, for those after it
  std::vector<Option> options;      // in the order in which they are to be had
};

}  // namespace berth::engine
