// What room is to be kept for one who has waited long: its quota, beside those before it, and its places
// (quota/admission_keeper.h).
#include <algorithm>
#include <string_view>
#include <tuple>
#include <utility>

#include "quota/admission_keeper.h"

namespace berth::quota {

// Nothing is known of one that runs longer than it said, unless it can be told to leave, or has been.
Time Admission::Keeper::given_back_by(const Holder& holder) const {
  if (holder.evicted || admission.is_late(holder.id)) return admission.now_;
  const std::optional<Time> end = admission.expected_end(holder.id);
  return end && *end > admission.now_ ? *end : Time{INT64_MAX};
}

// Of the queue's tree, in the order in which they give back what they have.
std::span<const Admission::Keeper::GivesBack> Admission::Keeper::holders_around(QuotaNode queue) {
  const Ledger& ledger = *admission.ledger_;
  const QuotaNode root = ledger.tree().root(queue);
  const auto [at, is_new] = holders.try_emplace(root);
  std::vector<GivesBack>& out = at->second;
  if (!is_new) return out;
  for (const QuotaNode each : ledger.tree().queues_below(root))
    for (const WorkloadId id : ledger.holders(each)) {
      const Holder& held = ledger.holder(id);
      out.emplace_back(given_back_by(held), held.reserved, held.uid, id);
    }
  std::sort(out.begin(), out.end());
  return out;
}

// What it would get if nobody had quota but those that come before it and for whom room is kept. `counts`: of pods, by
// pod set; empty: all.
Assignment Admission::Keeper::when_alone(const Entry& entry, const std::vector<int32_t>& counts,
                                         const PassedFlavors& without) const {
  const Record& record = admission.record(entry.id);
  Ledger& alone = *admission.kept_.alone;
  const Preemption preemption(alone, admission.options_.fair, admission.places_, admission.now_);
  const FlavorRequest request{
      admission.claimant(record), &record.status.workload, entry.spec, counts, 0, nullptr, &without};
  return assign_flavors(alone, preemption, admission.flavors_, request);
}

// Borrows at most as much as it would alone: what it borrows beyond that its lenders may want back before its time.
bool Admission::Keeper::has_own_room(const KeptRoom& room) const {
  const QuotaTree& tree = admission.ledger_->tree();
  return tree.has_room(room.queue, room.usage) && std::ranges::all_of(room.usage, [&](const auto& part) {
           return tree.lowest_subtree_that_fits(room.queue, part.first, part.second).height <= room.borrowing;
         });
}

// Whom it can have evicted for the quota that it lacks, once it has places: that is why it has not yet.
std::vector<WorkloadId> Admission::Keeper::may_evict(const Entry& entry, const Assignment& assignment) const {
  Ledger& ledger = *admission.ledger_;
  std::vector<FlavorResource> scarce;
  for (const auto& [fr, amount] : assignment.usage)
    if (amount > ledger.tree().available(entry.queue, fr)) scarce.push_back(fr);
  if (scarce.empty()) return {};
  const Record& record = admission.record(entry.id);
  const Preemption preemption(ledger, admission.options_.fair, admission.places_, admission.now_);
  std::vector<WorkloadId> out;
  for (const Victim& victim : preemption.victims({admission.claimant(record), entry.spec, std::move(scarce),
                                                  assignment.usage, record.spares_winners_of(admission.epoch_)})) {
    if (record.taken_from.too_often(victim.id, admission.epoch_)) return {};
    out.push_back(victim.id);
  }
  return out;
}

// Those whose quota it waits for: whom it may have evicted; all that have given it back by the time when that is
// enough; those of whom nobody knows when, in the order in which they got it. `passing`: who comes before it, and will
// have left.
void Admission::Keeper::find_who_gives_way(const std::set<WorkloadId>& passing, const std::vector<WorkloadId>& evicted,
                                           KeptRoom& room) {
  Ledger& ledger = *admission.ledger_;
  QuotaTree& tree = ledger.tree();
  room.free_by = admission.now_;
  std::vector<GivesBack> before;
  for (const WorkloadId other : passing) {
    const KeptRoom& theirs = admission.kept_.rooms.at(other);
    tree.add_usage(theirs.queue, theirs.usage);
    before.emplace_back(*theirs.left_by, Time{INT64_MAX}, admission.record(other).key.uid, other);
  }
  std::sort(before.begin(), before.end());
  const std::span<const GivesBack> all = holders_around(room.queue);
  for (const WorkloadId each : evicted)
    if (room.gives_way.insert(each).second) ledger.take_out(each);
  bool enough = tree.has_room(room.queue, room.usage);
  room.lent_now = enough && !has_own_room(room);
  if (!enough)
    for (size_t i = 0, j = 0; i < all.size() || j < before.size();) {
      const bool holds = j == before.size() || (i < all.size() && all[i] < before[j]);
      const auto& [end, reserved, uid, each] = holds ? all[i++] : before[j++];
      if (enough && (end > room.free_by || end == Time{INT64_MAX})) break;
      if (room.gives_way.contains(each)) continue;
      if (holds) ledger.take_out(each);
      else tree.remove_usage(admission.kept_.rooms.at(each).queue, admission.kept_.rooms.at(each).usage);
      room.gives_way.insert(each);
      if (enough) continue;
      room.free_by = end;
      enough = has_own_room(room);
    }
  for (const WorkloadId each : room.gives_way)
    if (!passing.contains(each)) ledger.put_back(each);
  for (const WorkloadId each : passing) {
    const KeptRoom& theirs = admission.kept_.rooms.at(each);
    if (!room.gives_way.contains(each)) tree.remove_usage(theirs.queue, theirs.usage);
  }
}

// Places are kept where it has its quota, or where it is known when: else they would stand idle for nobody knows how
// long. False: with these flavors it would have no place even if all others had left.
bool Admission::Keeper::look_at_places(const Entry& entry, const Assignment& assignment, KeptRoom& room) {
  Entry given = entry;
  given.assignment = assignment;
  if (admission.places_ == nullptr || admission.provisions(given)) return true;
  const bool has_quota = room.gives_way.empty();
  room.lacks_quota = !has_quota;
  room.wants_cut = room.in_part = false;
  std::vector<WorkloadId> over;
  for (const auto& [id, other] : admission.kept_.rooms)
    if (id != entry.id && other.keeps_places() && takes_places_of(entry, room, id, other)) over.push_back(id);
  PlaceRequest request = admission.place_of(given);
  request.over = &over;
  const CouldFit could_fit = admission.places_->could_fit(request);
  if (could_fit == CouldFit::kNever) return false;
  if (room.free_by == Time{INT64_MAX}) return true;
  if (room.slid && !has_quota) return true;  // no nodes stand idle for who may never be lent so much
  const std::optional<Time> free_by = admission.places_->keep(request, room.free_by);
  if (!free_by && has_quota && could_fit == CouldFit::kIfCut) {  // whoever cuts is given the time to begin
    const std::optional<Time> some = admission.places_->keep_some(request, room.free_by);
    room.in_part = some.has_value();
    room.free_by = some.value_or(room.free_by);
    const auto known = admission.kept_.rooms.find(entry.id);
    const bool is_first = known == admission.kept_.rooms.end() || !known->second.wants_cut ||
                          known->second.free_by > known->second.looked_at;
    room.wants_cut = is_first || room.free_by > admission.now_ || admission.places_->waits_for_cut(entry.id);
    if (!room.wants_cut && std::exchange(room.in_part, false)) admission.release_places(entry.id);
    return room.wants_cut;
  }
  if (!free_by) return !has_quota;
  room.in_nodes = !admission.places_->kept_nodes(entry.id).empty();
  room.free_by = *free_by;
  return true;
}

// What those before it in its tree could have now is theirs.
bool Admission::Keeper::move(WorkloadId id, KeptRoom& room) const {
  const auto spec = admission.queues_.find(room.cluster_queue);
  if (spec == admission.queues_.end()) return false;
  QuotaTree& tree = admission.ledger_->tree();
  std::vector<const KeptRoom*> before;
  for (const KnownRoom& each : rooms_around(room.queue)) {
    if (each.id == id) break;
    if (!tree.has_room(each.room->queue, each.room->usage)) continue;
    tree.add_usage(each.room->queue, each.room->usage);
    before.push_back(each.room);
  }
  const bool has_quota = tree.has_room(room.queue, room.usage);
  for (const KeptRoom* each : before) tree.remove_usage(each->queue, each->usage);
  if (!has_quota) return false;
  Entry entry{id, room.queue, &spec->second, {}, {}, {}, {}};
  entry.assignment.pod_sets = room.pod_sets;
  entry.assignment.usage = room.usage;
  entry.assignment.borrowing = room.borrowing;
  const auto moves = [&] { return admission.places_->move_kept(admission.place_of(entry)); };
  const bool moved = moves();  // if it may be, beside what is kept for others
  for (const auto& [other, kept] : admission.kept_.rooms)
    if (!moved && other != id && kept.keeps_places() && takes_places_of(entry, room, other, kept))
      entry.over.push_back(other);
  if (!moved && (entry.over.empty() || !moves())) return false;
  wake(id, room);
  for (const WorkloadId other : entry.over) wake(other, admission.kept_.rooms.at(other));
  return true;
}

// A budget of its queues is spent before, by those that run there, as far as it is known when they end.
bool Admission::Keeper::is_spent_by(const Entry& entry, Time then) const {
  const model::Workload& workload = admission.record(entry.id).status.workload;
  const Spending::Queue local{workload.namespace_name, workload.queue}, all{"", entry.spec->name};
  const Spending& spending = admission.spending_;
  if (then == Time{INT64_MAX} || (!spending.has(local) && !spending.has(all))) return false;
  std::vector<std::pair<Time, Spending::Rate>> ends, local_ends;
  for (const WorkloadId id : admission.ledger_->holders(entry.queue)) {
    const std::optional<Charge>& charge = admission.record(id).charge;
    const std::optional<Time> end = admission.expected_end(id);
    if (!charge || !end) continue;
    if (charge->cluster_queue == all) ends.emplace_back(*end, charge->rate);
    if (charge->local_queue == local) local_ends.emplace_back(*end, charge->rate);
  }
  return spending.is_spent_by(all, then, ends) || spending.is_spent_by(local, then, local_ends);
}

// What those wait for who come before it counts as in use until they will have left: who they are is known once it is
// how far it borrows.
bool Admission::Keeper::find_room(const Entry& entry, const std::vector<int32_t>& counts, bool only_own,
                                  KeptRoom& room) {
  QuotaTree &tree = admission.ledger_->tree(), &alone = admission.kept_.alone->tree();
  rooms_around(entry.queue);              // in their order, by what is in use now
  std::set<WorkloadId> passing, staying;  // of whom it is known when they will have left, and of whom it is not
  const auto known = admission.kept_.rooms.find(entry.id);
  const bool is_known = known != admission.kept_.rooms.end();
  int own_rank = 0;
  const auto count_those_before = [&](int borrowing) {
    own_rank = std::max(own_rank, rank(borrowing));
    const Turn own{entry.id, 0, own_rank, is_known ? known->second.may_never_be_lent() : borrowing > 0};
    for (const auto& [id, other] : admission.kept_.rooms) {
      const bool of_one_tree = id != entry.id && tree.root(other.queue) == tree.root(entry.queue);
      if (!of_one_tree) continue;
      const bool is_before = !admission.options_.fair     ? comes_before(turn_of(id, other), own)
                             : other.queue == entry.queue ? before_in_queue(turn_of(id, other), own)
                                                          : has_first_turn(id, other, entry);
      if (!is_before) continue;
      if (other.left_by.value_or(Time{INT64_MAX}) < Time{INT64_MAX}) passing.insert(id);
      else if (staying.insert(id).second)
        for (QuotaTree* each : {&tree, &alone}) each->add_usage(other.queue, other.usage);
    }
  };
  count_those_before(0);
  PassedFlavors without;
  bool found = false, for_others = false;  // who keep what it lacks
  for (bool goes_on = true; goes_on && !found;) {
    const Assignment assignment = when_alone(entry, counts, without);
    Entry given = entry;
    given.assignment = assignment;
    if (assignment.outcome != Outcome::kFit) {
      for_others |= assignment.waits_for_quota;
      break;
    }
    if (admission.exceeds_user_limit(given)) break;
    if (only_own && assignment.borrowing > 0) {  // its queue's room is used up
      admission.kept_.behind.insert(entry.id);
      break;
    }
    if (rank(assignment.borrowing) > own_rank) {
      count_those_before(assignment.borrowing);
      continue;
    }
    room.pod_sets = assignment.pod_sets;
    room.usage = assignment.usage;
    room.borrowing = assignment.borrowing;
    room.gives_way.clear();
    find_who_gives_way(passing, may_evict(entry, assignment), room);
    room.quota_by = room.free_by;
    room.slid = is_known && room.borrowing > 0 && room.quota_by > admission.now_ &&
                (known->second.slid || (known->second.quota_by < room.quota_by && known->second.borrowing > 0));
    found = look_at_places(entry, assignment, room);
    for_others |= !found;
    goes_on = pass_over(assignment, *entry.spec, without);
  }
  for (const WorkloadId id : staying) {
    const KeptRoom& other = admission.kept_.rooms.at(id);
    for (QuotaTree* each : {&tree, &alone}) each->remove_usage(other.queue, other.usage);
  }
  if (!found && for_others && !staying.empty()) admission.kept_.behind.insert(entry.id);
  return found;
}

}  // namespace berth::quota
