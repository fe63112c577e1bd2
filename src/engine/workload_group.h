// WorkloadGroup: the places that a workload of a queue has, for pods that have come and for those that have not.
//
// QueuedWorkloads has one for each workload that is given places, waits for them, or has pods that came to one. Plain
// values, which it keeps true (engine/queued_workloads.h).
#pragma once

#include <absl/container/btree_map.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/ids.h"
#include "engine/stand_ins.h"
#include "engine/state.h"

namespace berth::engine {

struct WorkloadGroup {
  // A pod that its set names; its number is where it stands among them.
  struct Member {
    std::string uid;
    PodLooks looks;
  };
  // Equal pods of the workload as it was given its flavors.
  struct Set {
    std::string name;
    PodLooks looks;
    int32_t wanted = 0;  // pods and stand-ins
    int32_t came = 0;
    std::vector<std::pair<PodSlot, int32_t>> stand_ins = {};  // with their numbers, ascending
    std::vector<Member> members = {};                         // model::PodSet::members
    int32_t given_up = 0;  // of those wanted, that are kept no place until one more comes

    // Of the pod with the number, which may be one that nobody has named.
    const PodLooks& looks_of(int32_t number) const;
    // Whether the pod that the set names by the number is there.
    bool awaits(int32_t number, const State& state) const;
    // Which stand-in can go, of at least one: the last of those for whom nobody is there, else the last.
    size_t to_spare(const State& state) const;
  };
  struct Came {
    size_t set = 0;
    int32_t number = -1;  // in a set with slices or members
  };
  // kReserved: its places are kept, and no pod may come yet.
  enum class Stage : uint8_t { kWaiting, kReserved, kAdmitted };

  std::vector<Set> sets;
  absl::btree_map<std::string, Came> came;  // by UID
  Stage stage = Stage::kWaiting;
  bool begun = false;                // some of its pods have run, and may not be there any more
  Time filled_at{INT64_MIN};         // when places were looked for anew that it lacked,
  int fills = 0;                     // and how often then
  std::optional<Time> awaits_since;  // some of its pods have run: the next, for whom places are kept
  bool keeps_places() const { return stage != Stage::kWaiting; }

  // The numbers of pods of the set that have come, where it has these members: their own, and for others the first that
  // no member has. By UID.
  std::map<std::string, int32_t> numbers(size_t set, const std::vector<Member>& members) const;
  // The first number that neither a pod nor a stand-in of the set has.
  int32_t free_number(size_t set) const;
  // The pod's number in a set with members; none: no place is kept for it.
  std::optional<int32_t> number_for(size_t set, const model::Pod& pod, const State& state) const;
  // Has the set these members. Who was known keeps its number, and new ones have those of pods that have gone, as far
  // as there are some. Returns the stand-ins that do not look like the pod with their number any more.
  std::vector<PodSlot> name_members(size_t set, std::vector<Member> members);
};

// A node that could have pods of a set, whoever is there now.
struct Host {
  NodeSlot node;
  int64_t most = 0;  // of them, at most
};

// What is asked about a pod that has a place: when it has ended as it declares (none: it declares nothing), and for how
// long it has run.
struct PodTimes {
  std::function<std::optional<Time>(PodSlot)> end;
  std::function<Duration(PodSlot)> age;
};

// Pod sets, those that ask for the most GPUs first.
std::vector<size_t> by_scarcity(const std::vector<model::PodSet>& sets);

}  // namespace berth::engine
