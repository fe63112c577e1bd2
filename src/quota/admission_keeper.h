// Keeper: the part of Admission that keeps room for workloads which have waited long, so that a stream of smaller or
// later ones does not pass them for ever (design I9), and lets those use it meanwhile who will have ended in time.
//
// A workload is due when it has waited for ReservationOptions::after, and neither fits nor can have others evicted. Of
// each ClusterQueue the first in order for which there is room at all, were nothing in use, has some kept; of a
// StrictFIFO one its head. Who comes after it and is of its queue, or would borrow, is not let in where the workload
// could not have its quota then, with what those give back for whom it waits. The order is that of a cycle: by
// borrowing or fair shares, what LocalQueues have used, priority, age. Once its quota is free its places are kept as
// well. Quota that a queue lends is its own queue's first: who borrows nothing is held up by nobody of another queue,
// and in his own comes before those that may never be lent so much.
//
// Where those in the way declare when they end it is known when enough is free, and who has ended by then may have the
// room meanwhile (EASY backfill: Lifka, The ANL/IBM SP scheduling system, 1995). One that has not ended then is the
// first to be evicted.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "quota/admission.h"

namespace berth::quota {

struct Admission::Keeper {
  Admission& admission;
  static constexpr size_t kLooksMax = 4;  // at what could be kept, in one cycle; others have theirs in the next
  size_t looks_left = kLooksMax;
  bool has_kept = false;  // places, in this cycle: who was found a place before may have lost it to them
  // By the room that they have now these may come before those for whom they were held up; or what they were told of
  // the time when it is free is true no more.
  std::vector<WorkloadId> have_another_turn = {};
  // Who has quota, by the root of the tree: when he gives it back, and got it, the uid. Nobody gets any while room is
  // looked for.
  using GivesBack = std::tuple<Time, Time, std::string_view, WorkloadId>;
  std::map<QuotaNode, std::vector<GivesBack>> holders = {};

  // The queues, or the workload's facts, are others than before: so is what is kept for it.
  void measure(WorkloadId id);
  // Before anybody has his turn: forgets who waits no more, and wakes whose time has come.
  void begin_cycle();
  // Keeps room for the entry, which has found none, if it is due, or looks again at what is kept.
  void consider(Entry& entry);
  // Where it has its quota, and places that are free, it keeps those, until its turn comes.
  bool move(WorkloadId id, KeptRoom& room) const;
  // What was kept for the entry is its own now; who was told of it is told anew.
  void end_room(const Entry& entry);
  // Its quota is kept for somebody who comes first, so that places are kept for it no longer.
  void leave_nodes(WorkloadId id);
  // No room is kept for it for a while.
  void put_off(Record& record);
  // Whether what the entry would get is kept for nobody, or only for those who have no need of it before it has ended;
  // else Entry::held_up, and Assignment::no_place says for whom.
  bool may_have(Entry& entry) const;
  // Whether the entry has places beside those that are kept for others, or else with those that it may use, which are
  // in Entry::over then.
  bool has_place(Entry& entry, std::string* why) const;
  // The same for one that waits until `gone` have left: nobody lends it what he wants back.
  bool has_place_without(Entry& entry, const std::vector<WorkloadId>& gone) const;
  // For whom places are kept to which the entry has the better right.
  std::vector<WorkloadId> places_behind(const Entry& entry) const;
  // The entry has been admitted: it ends before some room is needed, or has taken places that were kept.
  void note_admitted(const Entry& entry);
  // It has taken places, or is to have them when others have left, that were kept for those who come after it: these
  // look for others.
  void note_taken(const Entry& entry);
  // At the end of a cycle, whose room is to be looked at again: as many as the next has looks have their turn in it,
  // the first of all, since the others look for theirs beside them.
  void look_again();
  // What is kept at the end of a cycle by those who wait on. True: others that waited aside for what was kept before
  // have their turn.
  bool note_reserved(Temporary reserved, bool decided);
  void look_at_queue(const std::string& cluster_queue) const;  // for whom room may be kept now is another
  void wake(WorkloadId id, KeptRoom& room) const;              // it is to be looked at again
  // Adds to the workload's message that room is kept for it.
  void tell(WorkloadId id) const;

 private:
  std::string why_not(Entry& entry) const;
  bool may_use_places(Entry& entry) const;
  const ReservationOptions& options() const { return admission.options_.reservations; }
  bool is_due(const Record& record) const;
  Time due_at(const Record& record) const;
  void find_first_roomless();
  void wake_first_ones(Waiting& waiting);
  bool stays_roomless(WorkloadId id, const Record& record) const;
  bool may_be_passed(WorkloadId id, const KeptRoom& room) const;
  std::string kept_text(WorkloadId id, KeptRoom& room) const;
  void tell_anew(WorkloadId id, KeptRoom& room) const;
  void consider_time(Time at);
  struct Turn {
    WorkloadId id;
    int round = 2, rank = 1;
    bool may_never_be_lent = false;
    const OrderKey* key = nullptr;   // key_of() it, where that has been found out
    const KeptRoom* room = nullptr;  // where shares count, what is kept for it
  };
  class InOrder;
  bool is_another_order(const Waiting& waiting) const;
  double used_of_late(WorkloadId id) const;
  bool before_in_queue(const Turn& a, const Turn& b) const;
  const OrderKey& key_of(const Turn& turn) const;
  const OrderKey& key_among(const Turn& turn, const std::map<WorkloadId, KeptRoom*>& others) const;
  bool before(const Turn& a, const Turn& b) const;
  int rank(int borrowing) const;
  int rank_of(const Entry& entry) const;
  Turn turn_of(WorkloadId id, const KeptRoom& room) const;
  Turn turn_of(const Entry& entry) const;
  Turn by_shares(Turn turn) const;
  Turn with_key(Turn turn) const;
  bool comes_before(const Turn& a, const Turn& b) const;
  bool has_first_turn(WorkloadId id, const KeptRoom& room, const Entry& entry) const;
  void look_at_those_behind(QuotaNode queue);
  void look_again_at(WorkloadId id, KeptRoom& room);
  void look_again_behind(const Entry& entry, const KeptRoom& room);
  bool has_first_place(const Turn& a, const Turn& b) const;
  bool takes_places_of(const Entry& entry, const KeptRoom& room, WorkloadId id, const KeptRoom& other) const;
  bool takes_first(const Entry& entry, const Turn& own, WorkloadId id, const KeptRoom& room) const;
  std::vector<QuotaNode> above(QuotaNode node) const;
  std::vector<KnownRoom> in_order_of_shares(std::vector<KnownRoom> rooms) const;
  bool ends_by(const Entry& entry, Time until) const;
  std::span<KnownRoom> rooms_around(QuotaNode queue) const;
  bool delays(const Entry& entry, KnownRoom& known, std::span<const KnownRoom> before, bool learns) const;
  bool may_keep(WorkloadId id, const std::string& cluster_queue, WorkloadId& gives_way, bool& only_own) const;
  bool is_over(const KeptRoom& room) const;
  void look_at_cut(WorkloadId id, KeptRoom& room);
  bool holds_still(WorkloadId id, const KeptRoom& room) const;
  bool keep(const Entry& entry, bool only_own);
  bool find_room(const Entry& entry, const std::vector<int32_t>& counts, bool only_own, KeptRoom& room);
  bool is_spent_by(const Entry& entry, Time then) const;
  bool is_hedged(const Entry& entry, const KeptRoom& room) const;
  bool look_at_places(const Entry& entry, const Assignment& assignment, KeptRoom& room);
  Assignment when_alone(const Entry& entry, const std::vector<int32_t>& counts, const PassedFlavors& without) const;
  bool has_own_room(const KeptRoom& room) const;
  void find_who_gives_way(const std::set<WorkloadId>& passing, const std::vector<WorkloadId>& evicted, KeptRoom& room);
  std::vector<WorkloadId> may_evict(const Entry& entry, const Assignment& assignment) const;
  Time given_back_by(const Holder& holder) const;
  void take_back(Entry& entry, const KeptRoom& room);
  std::span<const GivesBack> holders_around(QuotaNode queue);
  void forget(WorkloadId id);
  void forget_those_behind(const Entry& entry);
  bool somebody_comes_first(WorkloadId id, const KeptRoom& room, const Turn& of_queue, const Turn& of_all) const;
  std::string since_when() const;
};

}  // namespace berth::quota
