// PodState: one pod as the engine keeps it: its facts, its class, where it stands on its way to a node.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/time.h"
#include "engine/ids.h"
#include "model/pod.h"

namespace berth::engine {

// Where a pod stands. kReserved to kUnknown are Berth's own placement on its way to the API server: a pod goes
// Reserved → PreBinding → Binding → Bound, or Unknown when a bind got no answer; Unknown keeps its place until the
// server has been asked.
enum class PodPhase : uint8_t {
  kNotQueued,   // gated, terminating or another scheduler's
  kPending,     // in the queue
  kBackoff,     // waits before it is queued again
  kNominated,   // keeps room that its victims are leaving; what it is charged may exceed what the node has
  kReserved,    // has a place in the engine
  kPreBinding,  // volumes and claims are being prepared
  kBinding,     // the Binding has been sent
  kUnknown,     // the Binding got no answer
  kBound,       // spec.nodeName is set
};

constexpr bool holds_room(PodPhase phase) { return phase >= PodPhase::kNominated; }
// On its node, or on the way there.
constexpr bool is_placed(PodPhase phase) { return phase >= PodPhase::kReserved; }
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
  uint32_t attempts = 0;       // failed binds in a row; sets the back-off
  Time backoff_until;
  uint64_t reported_version = 0;  // of its class's verdict that it was last told; 0: none
  bool awaits_report = false;     // listed in its class's reports
  bool evicting = false;          // its eviction has been decided
  bool goes_first = false;        // among pods of its priority: room is made for it; never changes while it is queued
  bool in_use = false;
};

}  // namespace berth::engine
