// Room that is kept for workloads which have waited long, and quota that those keep who wait in a cycle: what Admission
// remembers of it. Plain values that Admission alone changes (quota/admission_keeper.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "quota/decision.h"
#include "quota/ledger.h"

namespace berth::quota {

// What is kept for a workload that has waited long: the quota that it asks for and, once that is free, its places.
struct KeptRoom {
  std::string cluster_queue;
  std::vector<PodSetAssignment> pod_sets = {};  // with the flavors that it would get
  QuotaNode queue;                              // by the ledger's tree
  Amounts usage = {};                           // the same
  int borrowing = 0;                            // as Assignment's, were nothing else in use
  std::set<WorkloadId> gives_way = {};          // who will have given back his quota, those with room before it, too
  Amounts held = {};                            // in this cycle, as usage that is there for it only
  bool in_nodes = false;                        // places are kept, for all of its pods;
  bool in_part = false;                         // or for those that could have some as GPUs are cut
  bool lacks_quota = false;                     // when it was looked at
  bool wants_cut = false;                       // it has its quota, and no node could have it as its GPUs are cut
  Time free_by{INT64_MAX};                      // when who is in the way has ended, by what they declare
  // When it will have been there and left, as it declares; INT64_MAX: nobody knows. None: others do not wait for that.
  std::optional<Time> left_by = {};
  Time quota_by{INT64_MAX};  // when its quota alone is free, by what they declare
  bool slid = false;         // that time has become a later one, and its quota is not free yet
  bool lent_now = false;     // what it has to wait for is a place, as long as others lend it more than it would borrow
  bool hedged = false;       // it borrows, or comes after one that does: whoever lends may want back what he lends
  Time looked_at;
  Time woken{INT64_MIN};  // it had its turn since free_by
  bool outrun = false;    // somebody has been admitted since looked_at who may end later than free_by
  bool may_lose = false;  // it was told that who comes before it may take it
  // Where shares count: its place in the order of its tree (Kept::in_order), and who of those that do not come before
  // it there would be the first without shares.
  size_t turn = 0;
  WorkloadId first_behind = {};
  Time again_at{INT64_MIN};  // when it was to be looked at again since others have theirs elsewhere,
  int again = 0;             // so often at that time

  bool keeps_places() const { return in_nodes || in_part; }
  // It borrows, and nobody knows when it is lent so much: it keeps no quota from those of its queue who borrow nothing.
  bool may_never_be_lent() const { return borrowing > 0 && (slid || free_by == Time{INT64_MAX}); }
};

struct KnownRoom {
  WorkloadId id;
  const KeptRoom* room = nullptr;
  Amounts spare = {};  // so much others of its tree may have beside it, as far as that was looked at
};

// Usage that is there for a cycle only, of one who waits.
struct Reservation {
  WorkloadId id;
  QuotaNode queue;
  Amounts amounts;
  bool operator==(const Reservation&) const = default;
};
using Temporary = std::vector<Reservation>;

// Who waits aside until others do not keep the quota any more that they keep in each cycle while they wait on.
struct Aside {
  Temporary reserved = {};        // by those others, in the last cycle
  std::set<WorkloadId> ids = {};  // each for those alike, too
  bool due = false;               // some of that is kept no longer
  uint64_t woken = 0;             // the epoch in which they last had their turn for it
};

struct Kept {
  std::map<WorkloadId, KeptRoom> rooms = {};
  std::map<std::string, std::map<WorkloadId, KeptRoom*>, std::less<>> of_queue = {};  // the same, by their ClusterQueue
  uint64_t in_all = 0;                // how often some has begun to be kept
  std::optional<Time> next_due = {};  // when it may begin for another
  Aside aside = {};
  std::set<WorkloadId> behind = {};      // for whom none could be kept beside what is kept for others
  std::set<WorkloadId> to_look_at = {};  // whose room is to be looked at again
  WorkloadId first_roomless = {};        // of all queues: Waiting::first_roomless
  std::optional<Ledger> alone = {};      // the same queues without holders
  bool by_usage = false;                 // in some ClusterQueue it counts what LocalQueues have used
  // By the root of their tree, in the order in which they have their quota; empty: that is to be found out. True until
  // rooms or what is in use have changed.
  std::map<QuotaNode, std::vector<KnownRoom>> in_order = {};

  KeptRoom& put(WorkloadId id, KeptRoom room) {
    in_order.clear();
    KeptRoom& kept = rooms.insert_or_assign(id, std::move(room)).first->second;
    of_queue[kept.cluster_queue][id] = &kept;
    return kept;
  }
  std::optional<KeptRoom> take(WorkloadId id) {
    auto node = rooms.extract(id);
    if (node.empty()) return std::nullopt;
    in_order.clear();
    const auto others = of_queue.find(node.mapped().cluster_queue);
    others->second.erase(id);
    if (others->second.empty()) of_queue.erase(others);
    return std::move(node.mapped());
  }
};

}  // namespace berth::quota
