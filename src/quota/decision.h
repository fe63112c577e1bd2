// What admission decides: who is admitted with which flavors, and who has to give them back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/strong_id.h"
#include "base/time.h"
#include "model/resources.h"

namespace berth::quota {

using WorkloadId = StrongId<struct WorkloadTag>;

// From worst to best. kNoCandidates: room might be made, but nobody may be taken now; kReclaim: only others give.
enum class FlavorMode : uint8_t { kNoFit, kNoCandidates, kPreempt, kReclaim, kFit };

struct FlavorPick {
  std::string flavor;
  FlavorMode mode = FlavorMode::kNoFit;
};

struct PodSetAssignment {
  std::string name;
  int32_t count = 0;
  std::map<std::string, FlavorPick> flavors = {};  // by resource; empty though it asks for something: none fits
  model::ResourceList usage = {};                  // of all its pods, of covered resources; in the units of quota
  std::vector<std::string> reasons = {};           // why not better, one for each flavor and resource that fell short
};

// Flavors with which quota would let a workload in, and with which no node has a place for it.
struct PlaceOption {
  std::vector<PodSetAssignment> pod_sets;
  int borrowing = 0;    // as Assignment's: who borrows less has the first turn
  bool evicts = false;  // only once others have given back quota
};

// A workload that waits for a place alone. Those that are alike may share what they would get, in the order of flavors.
struct WantsPlace {
  WorkloadId id;
  std::shared_ptr<const std::vector<PlaceOption>> options;
  bool has_waited = false;  // as long as those for whom room is kept
};

// Quota that a workload holds already, as its object says.
struct HeldQuota {
  std::string cluster_queue = {};
  std::vector<PodSetAssignment> assignment = {};  // an entry for each of its pod sets, in their order
  std::string evicted = {};                       // the reason, where it is on its way out
  std::optional<Time> reserved = {};              // since when it has it; none: since it was created
  std::optional<Time> admitted = {};              // since when it is; none: now
  bool quota_only = false;                        // it is not admitted, and waits for its checks
  bool lent_room = false;                         // it has what is kept for others, for as long as it declares
  std::optional<bool> ran = {};                   // whether pods of it have run; none: nobody knows
};

enum class CheckState : uint8_t { kPending, kReady, kRetry, kRejected };

// What the controller of an AdmissionCheck says of a workload.
struct CheckReport {
  std::string check;
  CheckState state = CheckState::kPending;
  std::string message = {};
  Duration requeue_after = {};  // kRetry: the workload is not to be queued again before
};

struct AdmissionDecision {
  enum class Kind : uint8_t {
    kAdmit,
    kEvict,
    kReserve,  // it has quota, and is admitted when its checks are ready
  };
  Kind kind = Kind::kAdmit;
  WorkloadId workload;
  std::string cluster_queue;
  std::vector<PodSetAssignment> assignment = {};         // kAdmit, kReserve
  bool had_quota = false;                                // kAdmit: before, for its checks or for a place
  std::string reason = {}, message = {};                 // kEvict: "Preempted", "ClusterQueueStopped", …
  std::string preemption = {};                           // for "Preempted": a VictimReason
  bool deactivates = false;                              // kEvict: spec.active is to become false
  WorkloadId preemptor = {};                             //
  std::string preemptor_path = {}, preemptee_path = {};  // "/org/team/queue"
};

}  // namespace berth::quota
