// Of those for whom room is kept, or looked for: who comes first (quota/admission_keeper.h).
#include <algorithm>
#include <iterator>
#include <utility>

#include "quota/admission_keeper.h"
#include "quota/fair_turns.h"

namespace berth::quota {
// By how far it borrows, of those who borrow. Nobody holds up who borrows nothing; where one for whom room is kept
// would borrow nothing later on, that is no reason to let it borrow before others now.
int Admission::Keeper::rank(int borrowing) const { return admission.options_.fair ? 1 : std::max(1, borrowing); }

int Admission::Keeper::rank_of(const Entry& entry) const {
  const auto own = admission.kept_.rooms.find(entry.id);
  return rank(own == admission.kept_.rooms.end() ? entry.assignment.borrowing : own->second.borrowing);
}

Admission::Keeper::Turn Admission::Keeper::turn_of(WorkloadId id, const KeptRoom& room) const {
  const OrderKey& key = admission.record(id).key;
  const bool has_one_each = admission.kept_.of_queue.size() == admission.kept_.rooms.size();  // no queue has two rooms
  return by_shares(
      {id, key.behind_sticky ? 2 : 0, rank(room.borrowing), room.may_never_be_lent(), has_one_each ? &key : nullptr});
}

// One that is to have what it asks for now: it is lent that.
Admission::Keeper::Turn Admission::Keeper::turn_of(const Entry& entry) const {
  return by_shares({entry.id, admission.round_of(entry), rank_of(entry), false});
}

// Where shares count: with what is kept for it, if anything is, which is in order then. Beside other trees whoever has
// to wait for it in its own lends it his turn.
Admission::Keeper::Turn Admission::Keeper::by_shares(Turn turn) const {
  const auto room = admission.kept_.rooms.find(turn.id);
  if (!admission.options_.fair || room == admission.kept_.rooms.end()) return turn;
  rooms_around(room->second.queue);
  turn.room = &room->second;
  turn.key = &admission.record(room->second.first_behind).key;
  return turn;
}

// For who is compared with many.
Admission::Keeper::Turn Admission::Keeper::with_key(Turn turn) const {
  turn.key = &key_of(turn);
  return turn;
}

// What the workload's LocalQueue has used of late, where its ClusterQueue goes by that.
double Admission::Keeper::used_of_late(WorkloadId id) const {
  if (!admission.kept_.by_usage) return 0;
  const WorkloadStatus& status = admission.record(id).status;
  const auto queue = admission.queues_.find(status.cluster_queue);
  return queue == admission.queues_.end() ? 0 : admission.local_usage(queue->second, status.workload);
}

// Of one ClusterQueue: who may never be lent so much comes last; by what their LocalQueues have used, where that
// counts; by priority, then by age, whomever others have been evicted for.
bool Admission::Keeper::before_in_queue(const Turn& a, const Turn& b) const {
  if (a.may_never_be_lent != b.may_never_be_lent) return b.may_never_be_lent;
  const double used_by_a = used_of_late(a.id), used_by_b = used_of_late(b.id);
  if (used_by_a != used_by_b) return used_by_a < used_by_b;
  return comes_earlier(admission.record(a.id).key, admission.record(b.id).key);
}

// By which it comes before those of other queues: whoever has to wait for it in its own lends it his turn, so that both
// orders are one.
const OrderKey& Admission::Keeper::key_of(const Turn& turn) const {
  if (turn.key != nullptr) return *turn.key;
  const Record& record = admission.record(turn.id);
  const auto others = admission.kept_.of_queue.find(record.status.cluster_queue);
  return others == admission.kept_.of_queue.end() ? record.key : key_among(turn, others->second);
}

// The same; `others`: those of its queue for whom room is kept.
const OrderKey& Admission::Keeper::key_among(const Turn& turn, const std::map<WorkloadId, KeptRoom*>& others) const {
  const OrderKey* first = &admission.record(turn.id).key;
  for (const auto& [id, room] : others) {
    const bool may_wait = room->may_never_be_lent() || admission.kept_.by_usage;  // for a later one of its queue
    const OrderKey& key = admission.record(id).key;
    if (id == turn.id || !may_wait || !comes_earlier(key, *first)) continue;
    const Turn other = turn_of(id, *room);
    if (other.rank == turn.rank && before_in_queue(turn, other)) first = &key;
  }
  return *first;
}

bool Admission::Keeper::before(const Turn& a, const Turn& b) const {
  if (admission.record(a.id).status.cluster_queue == admission.record(b.id).status.cluster_queue)
    return before_in_queue(a, b);
  return comes_earlier(key_of(a), key_of(b));
}

// Who has his quota first, of one tree.
bool Admission::Keeper::comes_before(const Turn& a, const Turn& b) const {
  const QuotaTree& tree = admission.ledger_->tree();
  if (a.room != nullptr && b.room != nullptr && tree.root(a.room->queue) == tree.root(b.room->queue))
    return a.room->turn < b.room->turn;
  return a.rank != b.rank ? a.rank < b.rank : before(a, b);
}

// Whether the one for which room is kept would have its turn before the entry: of one queue, by what their LocalQueues
// have used where that counts; of two, by who borrows nearer or has the smaller share with it; then as above. Those for
// whom room is kept are compared by that, in one order over all, so that nobody waits in a circle. Nobody borrows
// before who may never be lent so much.
bool Admission::Keeper::has_first_turn(WorkloadId id, const KeptRoom& room, const Entry& entry) const {
  const auto own_room = admission.kept_.rooms.find(entry.id);
  const bool has_room = own_room != admission.kept_.rooms.end();
  Turn own = turn_of(id, room);
  own.may_never_be_lent = false;
  const Turn others_turn = turn_of(entry);
  if (admission.options_.fair && has_room) return comes_before(own, others_turn);
  if (room.queue == entry.queue && !has_room) return before_in_queue(own, others_turn);
  if (!admission.options_.fair) return comes_before(own, others_turn);
  QuotaTree& tree = admission.ledger_->tree();
  const auto share_in = [&](QuotaNode queue, QuotaNode other, const Amounts& usage) {
    const std::vector<QuotaNode> around = above(queue), others = above(other);
    const auto shared =
        std::ranges::find_if(around, [&](QuotaNode node) { return std::ranges::find(others, node) != others.end(); });
    return tree.share_with(*std::prev(shared), queue, usage);
  };
  tree.remove_usage(room.queue, room.held);
  const auto share = share_in(room.queue, entry.queue, room.usage),
             others = share_in(entry.queue, room.queue, entry.assignment.usage);
  tree.add_usage(room.queue, room.held);
  return share < others || (!(others < share) && before(own, others_turn));
}

// The node and those above it, up to the root.
std::vector<QuotaNode> Admission::Keeper::above(QuotaNode node) const {
  std::vector<QuotaNode> out;
  for (; node.valid(); node = admission.ledger_->tree().parent(node)) out.push_back(node);
  return out;
}

// Of a tree where shares count: quota and places are had in this one order, that of the turns in a cycle; of a queue,
// who may never be lent so much has his turn before others, too. By what is in use, without what is there for who waits
// in this cycle.
std::vector<KnownRoom> Admission::Keeper::in_order_of_shares(std::vector<KnownRoom> rooms) const {
  QuotaTree& tree = admission.ledger_->tree();
  std::ranges::sort(rooms, [&](const KnownRoom& a, const KnownRoom& b) {
    return a.room->queue == b.room->queue ? before_in_queue({a.id}, {b.id}) : a.room->queue < b.room->queue;
  });
  std::vector<FairTurns::Claim> claims;
  for (const KnownRoom& each : rooms) {
    claims.push_back({each.room->queue, &each.room->usage, &admission.record(each.id).key});
    tree.remove_usage(each.room->queue, each.room->held);
  }
  std::vector<KnownRoom> out;
  for (FairTurns turns(tree, std::move(claims)); !turns.empty();) out.push_back(rooms[turns.next()]);
  for (const KnownRoom& each : rooms) tree.add_usage(each.room->queue, each.room->held);
  WorkloadId first;
  for (size_t i = out.size(); i-- > 0;) {
    const OrderKey& key = admission.record(out[i].id).key;
    if (!first.valid() || comes_earlier(key, admission.record(first).key)) first = out[i].id;
    KeptRoom& room = admission.kept_.rooms.at(out[i].id);
    room.turn = i;
    room.first_behind = first;
  }
  return out;
}

// The order in which places are had, over all queues, so that of those for whom some are kept nobody waits in a circle:
// one for whom others have been evicted, who borrows nearer, then as above.
bool Admission::Keeper::has_first_place(const Turn& a, const Turn& b) const {
  return a.round != b.round ? a.round < b.round : comes_before(a, b);
}

// Whether the entry, `own` of which is turn_of() it, has the better right to places than the one for whom they are
// kept; while he waits for quota, of one tree whoever has that first.
bool Admission::Keeper::takes_first(const Entry& entry, const Turn& own, WorkloadId id, const KeptRoom& room) const {
  const QuotaTree& tree = admission.ledger_->tree();
  const bool is_promised = own.round == 0;
  if (room.lacks_quota && !is_promised && tree.root(room.queue) == tree.root(entry.queue))
    return !has_first_turn(id, room, entry);
  return has_first_place(own, turn_of(id, room));
}

// Where it waits for quota, those of others of its tree who do so, too, and have it after it.
bool Admission::Keeper::takes_places_of(const Entry& entry, const KeptRoom& room, WorkloadId id,
                                        const KeptRoom& other) const {
  const QuotaTree& tree = admission.ledger_->tree();
  const bool of_one_tree = tree.root(other.queue) == tree.root(room.queue);
  if (of_one_tree && other.lacks_quota) return !has_first_turn(id, other, entry);
  if (of_one_tree && room.lacks_quota) return false;
  return has_first_place(turn_of(entry.id, room), turn_of(id, other));
}

// Whether the queue's share of kept room is not used up by those that come before; where it is, the last of the others
// gives way once there is room for this one. Who may never be lent so much uses up nothing that those are to have who
// borrow nothing: `only_own`, it may borrow nothing for it.
bool Admission::Keeper::may_keep(WorkloadId id, const std::string& cluster_queue, WorkloadId& gives_way,
                                 bool& only_own) const {
  std::vector<Turn> others, lent;
  if (const auto known = admission.kept_.of_queue.find(cluster_queue); known != admission.kept_.of_queue.end())
    for (const auto& [other, room] : known->second) {
      if (other == id) continue;
      others.push_back(turn_of(other, *room));
      if (!others.back().may_never_be_lent) lent.push_back(others.back());
    }
  const Turn own{id, 2, 1, false};
  const auto has_its_own = [&](const std::vector<Turn>& all) {
    if (std::ssize(all) < options().per_queue) return true;
    Turn last = *std::ranges::max_element(all, [&](const Turn& a, const Turn& b) { return before_in_queue(a, b); });
    last.may_never_be_lent = false;
    if (!before_in_queue(own, last)) return false;
    gives_way = last.id;
    return true;
  };
  only_own = !has_its_own(others);
  return !only_own || has_its_own(lent);
}

}  // namespace berth::quota
