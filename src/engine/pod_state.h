// PodState: one pod as the engine accounts for it.
#pragma once

#include <absl/container/flat_hash_set.h>
#include <absl/hash/hash.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/ids.h"
#include "engine/shared_devices.h"
#include "model/pod.h"

namespace berth::engine {

// Where a pod stands. Reserved to kUnknown are Berth's own placement on its way to the API server: a pod goes
// Reserved → PreBinding → Binding → Bound, or Unknown when a bind got no answer; Unknown keeps its place until the
// server has been asked. A nominated pod waits for others to leave: its room is charged to the node beside theirs, so
// that nobody comes in between. A stand-in (model::Pod::stand_in) is nominated while its workload waits for others to
// leave, and held once that is admitted.
enum class PodPhase : uint8_t {
  kNotQueued,   // gated, terminating or another scheduler's
  kPending,     // in the queue
  kBackoff,     // waits before it is queued again
  kNominated,   // has been promised the room of pods that are leaving
  kHeld,        // keeps a place for a pod of an admitted workload that has not come yet
  kReserved,    // has a place in the engine
  kPreBinding,  // volumes and claims are being prepared
  kBinding,     // the Binding has been sent
  kUnknown,     // the Binding got no answer
  kBound,       // spec.nodeName is set
};

constexpr bool holds_room(PodPhase phase) { return phase >= PodPhase::kNominated; }
// "Pending", "Binding", … as shown to people.
std::string_view to_string(PodPhase phase);

struct PodState {
  model::Pod pod;
  ClassId cls;
  IdentityId identity;
  uint32_t index_in_identity = 0;  // in Identity::pods
  PodPhase phase = PodPhase::kNotQueued;
  NodeSlot node;               // valid when holds_room(phase)
  uint32_t index_on_node = 0;  // in NodeState::pods
  DeviceUse devices;           // of its node's
  uint32_t attempts = 0;       // failed binds in a row; sets the back-off
  // The time of the first cycle that found it in the queue.
  std::optional<Time> queued_at = {};
  Time backoff_until;
  Time placed_at;                     // when it got the place that it has, or was first seen with it
  bool paused = false;                // preempts nobody for a while
  uint32_t lost_nominations = 0;      // for which others had to leave, and which came to nothing
  bool nomination_cost = false;       // others had to leave for its nomination
  bool node_kept = false;             // nominated for a node that is kept for it, though nobody has to leave
  Time free_by{INT64_MAX};            // node_kept: when enough is free there; INT64_MAX: nobody knows
  Time told_free_by{INT64_MAX};       // the same, as people were told
  bool backfilled = false;            // has room that is kept for another, which it is to leave by its declared end
  bool takes_over = false;            // nominated for the place that a stand-in has kept for it
  bool evicting = false;              // an Evict decision about it is out
  bool makes_way = false;             // its workload has been evicted for one that waits for its room
  Time evictable_from;                // when the server may be asked again, after it refused to let go of it
  uint32_t nominated_generation = 0;  // of the node when its nomination was last found to hold
  uint64_t reported_version = 0;      // of its class's verdict that it was last told; 0: none
  bool awaits_report = false;         // listed in its class's reports
  bool in_use = false;
  // Its node's list named a pod of its name when Berth gave it the place, and is the same still: an earlier one.
  bool listed_before = false;
};

// Whether what the agent's list on its node says of its name can be about this very pod.
inline bool may_be_listed(const PodState& pod) { return pod.phase == PodPhase::kBound && !pod.listed_before; }

// What its share of a GPU is to those who come to its node.
inline ShareHolder holder_of(const PodState& pod) {
  if (pod.phase == PodPhase::kNominated) return ShareHolder::kPromised;
  return pod.evicting || pod.makes_way || pod.pod.terminating ? ShareHolder::kLeaves : ShareHolder::kStays;
}

// The slots of known pods, found by UID. The UID itself is kept once, in the pod.
struct PodByUid {
  using is_transparent = void;
  const std::vector<PodState>* pods;

  std::string_view uid(PodSlot slot) const { return (*pods)[slot.value].pod.uid; }
  static std::string_view uid(std::string_view uid) { return uid; }
};
struct PodUidHash : PodByUid {
  size_t operator()(const auto& key) const { return absl::Hash<std::string_view>()(uid(key)); }
};
struct PodUidEqual : PodByUid {
  bool operator()(const auto& a, const auto& b) const { return uid(a) == uid(b); }
};
using PodIndex = absl::flat_hash_set<PodSlot, PodUidHash, PodUidEqual>;

}  // namespace berth::engine
