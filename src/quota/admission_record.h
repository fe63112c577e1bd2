// What Admission remembers: of each workload, of those that wait in a queue, and of one whose turn it is in a cycle.
//
// Plain values that Admission alone changes; its invariants hold between its calls.
#pragma once

#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "quota/flavors.h"
#include "quota/kept_room.h"
#include "quota/spending.h"
#include "quota/status.h"
#include "quota/waiting.h"

namespace berth::quota {

// Where a workload is. kPending: it is to have its turn. kParked: it waits until something could help it; kBehind: so
// do others that are like it, and the first has a turn for all (quota/waiting.h). kHolding: it has quota reserved,
// perhaps on its way out.
enum class Standing : uint8_t { kNone, kPending, kParked, kBehind, kHeldBack, kHolding };
inline bool waits(Standing standing) {
  return standing == Standing::kPending || standing == Standing::kParked || standing == Standing::kBehind;
}

// Reasons of evictions after which a workload is requeued later, at a place of its own.
inline constexpr std::string_view kPodsReadyTimeout = "PodsReadyTimeout", kCheckEviction = "AdmissionCheck";
inline constexpr std::string_view kBudgetSpent = "BudgetSpent", kNodeFailures = "NodeFailures";

// Why a workload that holds quota has to give it back.
struct EvictionReason {
  std::string reason, message;           // of the condition Evicted
  bool deactivates = false;              // and it waits no more, until somebody makes it active again
  std::optional<Time> requeue_at = {};   // it waits in no queue before
  std::optional<Time> ranks_since = {};  // it waits in its queue as if it had come then; none: when it was created
};

// Of an admitted workload: have its pods all been ready, and are they?
enum class Readiness : uint8_t { kStarting, kReady, kRecovering };

// What an admitted workload has in use for its LocalQueue (namespace and name).
struct UsedLocally {
  std::pair<std::string, std::string> local_queue;
  model::ResourceList amounts = {};
};

// What an admitted workload spends, of the budgets of its ClusterQueue and of its LocalQueue.
struct Charge {
  Spending::Queue cluster_queue, local_queue;
  Spending::Rate rate;
};

// What began or ended since the last cycle; it is counted with the next one, whose time is known.
struct Uncounted {
  std::vector<WorkloadId> restored;
  std::vector<UsedLocally> no_longer_used;
  std::vector<Charge> no_longer_charged;
};

// Who has been evicted for a workload in an epoch, and how often.
struct TakenFrom {
  static constexpr int kTimesMax = 5;  // then it takes nothing more from one until something happens from outside
  uint64_t epoch = 0;
  std::map<WorkloadId, int> times = {};

  void count(WorkloadId victim, uint64_t now) {
    if (std::exchange(epoch, now) != now) times.clear();
    ++times[victim];
  }
  bool too_often(WorkloadId victim, uint64_t now) const {
    const auto found = times.find(victim);
    return epoch == now && found != times.end() && found->second >= kTimesMax;
  }
};

struct Record {
  WorkloadStatus status;
  Standing standing = Standing::kNone;
  OrderKey key;
  uint64_t likeness = 0;  // quota/alike.h
  NextFlavors next_flavor;
  std::optional<Assignment> promised = {};  // for which others have been evicted,
  std::vector<Victim> made_way = {};        // these
  bool lacks_quota = false;                 // its message says what, as it was when it was tried
  std::string kept_for_it = {};             // what its message adds: of room that is kept, or who leaves
  std::shared_ptr<const std::vector<PlaceOption>> options = {};  // while it wants a place
  int tries = 0;                                                 // with flavors that were left over from the one before
  uint64_t evicted_in = 0;                                       // the epoch in which it last was, for others
  // PreemptionRequest: in that epoch it takes nothing from those for whom others have been evicted.
  uint64_t spares_winners_of(uint64_t epoch) const { return evicted_in == epoch ? epoch : 0; }
  TakenFrom taken_from = {};  // since it last had quota
  // Times: admission_times.cc.
  std::optional<Time> admitted = {};            // since when it is, in this term
  Duration ran = {};                            // in terms before this
  bool begins_anew = false;                     // made active again while it leaves: what it has run counts no more
  Readiness readiness = Readiness::kStarting;   // of its pods, in this term
  Time recovers_since;                          // kRecovering
  std::optional<EvictionReason> eviction = {};  // the last, until it has quota again
  std::optional<Time> due = {};                 // when time alone may change something
  // AdmissionChecks, and usage of LocalQueues.
  Time checks_retry_at = {};                // the latest that a check that is to be retried has named
  bool placeless = false;                   // has quota and no place, for nodes are yet to be made for it
  std::optional<UsedLocally> counted = {};  // in the usage of its LocalQueue
  std::optional<Charge> charge = {};        // to budgets, since it was admitted
  // Room that is kept: admission_keeper.h.
  std::optional<Time> waits_since = {};  // in its queue, without quota
  Time keeps_from{INT64_MIN};            // no room could be kept for it; that is looked at again from then on
  Duration keeps_pause = {};             // before that, the last time

  bool deactivated() const { return eviction && eviction->deactivates; }  // by admission itself
};

void await_turn(Record& record);              // it is pending from now on
std::string turn_text(const Record& record);  // that it has to wait for its turn
struct Waiting;
using WaitingByQueue = std::map<std::string, Waiting, std::less<>>;  // by ClusterQueue
// Whether something could help it since it was told last; only the first of those alike has the turn (quota/waiting.h).
bool has_a_turn(const Record& record, const WaitingByQueue& waiting);

using Checks = std::map<std::string, model::AdmissionCheck, std::less<>>;  // that there are

inline constexpr std::string_view kInvalidSpec = "InvalidSpec";  // of the condition Active
// For people: why the queue is inactive, by the reason of its condition Active.
std::string why_inactive(const model::ClusterQueue& queue, const std::string& reason, const Flavors& flavors,
                         const Checks& checks, const Spending& spending);

// With `asked` more the user would have more of the queue than each may: how much; empty: he would not.
std::string beyond_user_limit(const Ledger& ledger, const std::string& user, const model::ClusterQueue& queue,
                              const model::ResourceList& asked);

// The message, and what room is kept for the workload.
std::string with_kept(std::string message, const Record& record);

// How long the workload runs at most in a term, as it declares or is allowed to.
std::optional<Duration> declared_runtime(const Record& record);

// A queue's head in a cycle.
struct Entry {
  WorkloadId id;
  QuotaNode queue;
  const model::ClusterQueue* spec = nullptr;
  NextFlavors resume;  // flavors tried before
  Assignment assignment;
  std::optional<Assignment> anew = {};  // what it would come to now, while it waits for those to leave who were told to
  std::vector<Victim> victims;
  std::optional<Assignment> promise = {};  // for which others have been evicted,
  std::vector<Victim> made_way = {};       // these
  std::vector<PlaceOption> options = {};   // that were tried
  bool admitted = false, preempts = false, passed_over = false, waits_for_pods = false;
  bool placeless = false;  // admitted, and has quota alone
  bool gives_way = false;  // it could have places, which may be wanted by those before it
  // Room that is kept for others: those whose places it may use, and whether it has to have ended before they can.
  std::vector<WorkloadId> over = {};
  bool borrows_room = false;
  bool waits = false;    // for those to leave who were told to: nobody else is looked for
  bool held_up = false;  // quota would do, but is kept for others: Assignment::no_place says for whom
  // passed_over: those without whose reservations in this cycle quota would do, or might; none: others were given it.
  std::vector<WorkloadId> passed_by = {};
  bool waits_aside = false;  // they wait on as they do, so that another cycle would not find anything else for it
};

// What those who have had their turn in a cycle make of it for the others.
struct SoFar {
  std::set<WorkloadId> preempted = {};
  Temporary temporary = {};
};

}  // namespace berth::quota
