// WorkloadGroup: the places that a workload of a queue has, for pods that have come and for those that have not.
//
// QueuedWorkloads has one for each workload that is given places, waits for them, or has pods that came to one. Plain
// values, which it keeps true (engine/queued_workloads.h).
#pragma once

#include <absl/container/btree_map.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/ids.h"
#include "engine/stand_ins.h"

namespace berth::engine {

struct WorkloadGroup {
  // Equal pods of the workload as it was given its flavors.
  struct Set {
    std::string name;
    StandIns::Spec spec;
    int32_t wanted = 0;  // pods and stand-ins
    int32_t came = 0;
    std::vector<std::pair<PodSlot, int32_t>> stand_ins = {};  // with their numbers
  };
  struct Came {
    size_t set = 0;
    int32_t number = -1;  // in a set with slices
  };
  // kReserved: its places are kept, and no pod may come yet.
  enum class Stage : uint8_t { kWaiting, kReserved, kAdmitted };

  std::vector<Set> sets;
  absl::btree_map<std::string, Came> came;  // by UID
  Stage stage = Stage::kWaiting;
  bool begun = false;  // some of its pods have run, and may not be there any more
  bool keeps_places() const { return stage != Stage::kWaiting; }
};

// What is asked about a pod that has a place: when it has ended as it declares (none: it declares nothing), and for how
// long it has run.
struct PodTimes {
  std::function<std::optional<Time>(PodSlot)> end;
  std::function<Duration(PodSlot)> age;
};

}  // namespace berth::engine
