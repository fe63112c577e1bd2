// Who may have room that is kept for others, and who has to give it back (quota/admission_keeper.h).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "quota/admission_keeper.h"

namespace berth::quota {
namespace {

// How often room is looked at again, at one time, since others have theirs elsewhere: where they change in turns, that
// ends.
constexpr int kAgainMax = 8;

int64_t& spare_of(KnownRoom& known, FlavorResource fr) {
  const auto at = std::ranges::find(known.spare, fr, &Amounts::value_type::first);
  return at != known.spare.end() ? at->second : known.spare.emplace_back(fr, 0).second;
}

// What the entry would get is known to leave the one with the room his.
bool is_spare(KnownRoom& known, const Entry& entry) {
  return entry.queue != known.room->queue && std::ranges::all_of(entry.assignment.usage, [&](const auto& part) {
           return part.second <= spare_of(known, part.first);
         });
}

}  // namespace

// Of one that waits for checks first nobody knows when it begins.
bool Admission::Keeper::ends_by(const Entry& entry, Time until) const {
  if (!entry.spec->checks.empty()) return false;
  const std::optional<Duration> declared = declared_runtime(admission.record(entry.id));
  return until < Time{INT64_MAX} && declared && admission.now_ + *declared <= until;
}

// Whether the one for which room is kept would not have its quota beside the entry, when those have given theirs back
// for whom it waits. `before`: those whose rooms count as in use. `learns`: in this the entry is like any other of the
// tree, so that they may have as much, wherever in it they are.
bool Admission::Keeper::delays(const Entry& entry, KnownRoom& known, std::span<const KnownRoom> before,
                               bool learns) const {
  Ledger& ledger = *admission.ledger_;
  QuotaTree& tree = ledger.tree();
  const KeptRoom& room = *known.room;
  std::set<WorkloadId> gone;
  for (const WorkloadId id : room.gives_way)
    if (ledger.find(id) != nullptr) gone.insert(id);
  for (const Victim& victim : entry.victims)
    if (ledger.find(victim.id) != nullptr) gone.insert(victim.id);
  std::vector<const KeptRoom*> left;
  for (const KnownRoom& each : before)
    if (each.id != entry.id && room.gives_way.contains(each.id)) left.push_back(each.room);
  tree.remove_usage(room.queue, room.held);
  for (const KeptRoom* each : left) tree.remove_usage(each->queue, each->usage);
  for (const WorkloadId id : gone) ledger.take_out(id);
  const bool own = has_own_room(room);
  const auto has_it_beside = [&](QuotaNode node) {
    tree.add_usage(node, entry.assignment.usage);
    const bool has_it = own ? has_own_room(room) : tree.has_room(room.queue, room.usage);
    tree.remove_usage(node, entry.assignment.usage);
    return has_it;
  };
  const bool with = has_it_beside(entry.queue);
  // What others take counts for it most where it is in use right above its queue.
  if (with && learns && entry.queue != room.queue && has_it_beside(tree.parent(room.queue)))
    for (const auto& [fr, amount] : entry.assignment.usage) spare_of(known, fr) = std::max(spare_of(known, fr), amount);
  for (const WorkloadId id : gone) ledger.put_back(id);
  for (const KeptRoom* each : left) tree.add_usage(each->queue, each->usage);
  tree.add_usage(room.queue, room.held);
  return !with;
}

bool Admission::Keeper::may_have(Entry& entry) const {
  if (admission.kept_.rooms.empty() || admission.round_of(entry) == 0) return true;
  std::string why = why_not(entry);
  entry.held_up = !why.empty();
  if (entry.held_up) entry.assignment.no_place = std::move(why);
  return !entry.held_up;
}

// In their order, each beside those before it.
std::string Admission::Keeper::why_not(Entry& entry) const {
  QuotaTree& tree = admission.ledger_->tree();
  const auto may_lack = [&](const KeptRoom& room) {  // what the entry would get
    return entry.assignment.borrowing > 0 || (room.queue == entry.queue && !room.may_never_be_lent());
  };
  std::span<KnownRoom> in_order = rooms_around(entry.queue);
  while (!in_order.empty() && !may_lack(*in_order.back().room)) in_order = in_order.first(in_order.size() - 1);
  std::string why;
  size_t in_use = 0;  // of the rooms
  bool own_seen = false;
  for (size_t seen = 0; seen < in_order.size() && why.empty(); ++seen) {
    KnownRoom& known = in_order[seen];
    const KeptRoom& room = *known.room;
    own_seen |= known.id == entry.id;
    if (known.id == entry.id || !may_lack(room) || is_spare(known, entry) || !has_first_turn(known.id, room, entry))
      continue;
    for (; in_use < seen; ++in_use) {
      if (in_order[in_use].id == entry.id) continue;
      const KeptRoom& before = *in_order[in_use].room;
      tree.remove_usage(before.queue, before.held);
      tree.add_usage(before.queue, before.usage);
    }
    if (!delays(entry, known, in_order.first(seen), entry.victims.empty() && !own_seen)) continue;
    if (ends_by(entry, room.free_by)) entry.borrows_room = true;
    else
      why = fmt::format("quota that is free, or becomes free, in ClusterQueue {} is kept for Workload {}, which {}",
                        room.cluster_queue, admission.record(known.id).status.workload.full_name(), since_when());
  }
  for (const KnownRoom& each : in_order.first(in_use)) {
    if (each.id == entry.id) continue;
    tree.remove_usage(each.room->queue, each.room->usage);
    tree.add_usage(each.room->queue, each.room->held);
  }
  return why;
}

// Those of the queue's tree, in the order in which they have their quota.
std::span<KnownRoom> Admission::Keeper::rooms_around(QuotaNode queue) const {
  const QuotaTree& tree = admission.ledger_->tree();
  const QuotaNode root = tree.root(queue);
  std::vector<KnownRoom>& out = admission.kept_.in_order[root];
  if (!out.empty()) return out;
  for (const auto& [id, room] : admission.kept_.rooms)
    if (tree.root(room.queue) == root) out.push_back({id, &room});
  if (admission.options_.fair) return out = in_order_of_shares(std::move(out));
  std::ranges::sort(out, [&](const KnownRoom& a, const KnownRoom& b) {
    return comes_before(turn_of(a.id, *a.room), turn_of(b.id, *b.room));
  });
  return out;
}

bool Admission::Keeper::has_place(Entry& entry, std::string* why) const {
  Places* const places = admission.places_;
  if (places == nullptr || admission.provisions(entry)) return true;
  entry.over.clear();
  if (places->fit(admission.place_of(entry), {}, why)) return true;
  const bool borrows = may_use_places(entry);
  if (!entry.over.empty() && places->fit(admission.place_of(entry), {})) {
    entry.borrows_room |= borrows;
    return true;
  }
  entry.over.clear();
  return false;
}

bool Admission::Keeper::has_place_without(Entry& entry, const std::vector<WorkloadId>& gone) const {
  Places* const places = admission.places_;
  entry.over.clear();
  if (places == nullptr || admission.provisions(entry) || places->fit(admission.place_of(entry), gone)) return true;
  entry.over = places_behind(entry);
  if (!entry.over.empty() && places->fit(admission.place_of(entry), gone)) return true;
  entry.over.clear();
  return false;
}

std::vector<WorkloadId> Admission::Keeper::places_behind(const Entry& entry) const {
  std::vector<WorkloadId> out;
  const Turn own = with_key(turn_of(entry));
  for (const auto& [id, room] : admission.kept_.rooms)
    if (id != entry.id && room.keeps_places() && takes_first(entry, own, id, room)) out.push_back(id);
  return out;
}

// Puts those into Entry::over whose places it may use; true: it has to have ended before some of them can.
bool Admission::Keeper::may_use_places(Entry& entry) const {
  bool borrows = false;
  entry.over.clear();
  const Turn own = with_key(turn_of(entry));
  for (const auto& [id, room] : admission.kept_.rooms) {
    if (id == entry.id || !room.keeps_places()) continue;
    const bool comes_first = takes_first(entry, own, id, room);
    if (!comes_first && !ends_by(entry, room.free_by)) continue;
    entry.over.push_back(id);
    borrows |= !comes_first;
  }
  return borrows;
}

void Admission::Keeper::note_admitted(const Entry& entry) {
  const QuotaTree& tree = admission.ledger_->tree();
  for (auto& [id, room] : admission.kept_.rooms)
    if (tree.root(room.queue) == tree.root(entry.queue)) {
      if (ends_by(entry, room.free_by)) room.gives_way.insert(entry.id);
      else
        room.outrun |=
            room.free_by > admission.now_ && room.free_by < Time{INT64_MAX} && !tree.has_room(room.queue, room.usage);
    }
  note_taken(entry);
}

// It borrows, or one does that comes before it: in its tree, or on its nodes.
bool Admission::Keeper::is_hedged(const Entry& entry, const KeptRoom& room) const {
  if (room.borrowing > 0 || room.lent_now) return true;
  const QuotaTree& tree = admission.ledger_->tree();
  std::vector<std::string> nodes;
  if (room.in_nodes) nodes = admission.places_->kept_nodes(entry.id);
  return std::ranges::any_of(admission.kept_.rooms, [&](const auto& each) {
    const auto& [id, other] = each;
    if (id == entry.id || !other.hedged) return false;
    if (room.gives_way.contains(id)) return true;
    if (!room.in_nodes || !other.in_nodes || tree.root(other.queue) == tree.root(room.queue)) return false;
    return !takes_places_of(entry, room, id, other) &&
           std::ranges::any_of(admission.places_->kept_nodes(id),
                               [&](const std::string& node) { return std::ranges::binary_search(nodes, node); });
  });
}

void Admission::Keeper::look_again_at(WorkloadId id, KeptRoom& room) {
  room.looked_at = Time{INT64_MIN};
  admission.kept_.to_look_at.insert(id);
}

void Admission::Keeper::look_again() {
  for (auto& [id, room] : admission.kept_.rooms)
    if (std::exchange(room.outrun, false)) look_again_at(id, room);  // others have been given what it waits for
  const std::map<WorkloadId, KeptRoom>& rooms = admission.kept_.rooms;
  std::set<WorkloadId>& all = admission.kept_.to_look_at;
  std::erase_if(all, [&](WorkloadId id) { return !rooms.contains(id) || !waits(admission.record(id).standing); });
  std::vector<WorkloadId> next(std::min(all.size(), kLooksMax));
  std::ranges::partial_sort_copy(all, next, [&](WorkloadId a, WorkloadId b) {
    return comes_before(turn_of(a, rooms.at(a)), turn_of(b, rooms.at(b)));
  });
  for (const WorkloadId id : next) {
    all.erase(id);
    have_another_turn.push_back(id);
  }
}

// The entry's room is new, or another: those who come after it look for theirs beside it.
void Admission::Keeper::look_again_behind(const Entry& entry, const KeptRoom& room) {
  const QuotaTree& tree = admission.ledger_->tree();
  std::vector<std::string> nodes;
  if (room.in_nodes) nodes = admission.places_->kept_nodes(entry.id);
  const auto is_among_them = [&](const std::string& node) { return std::ranges::binary_search(nodes, node); };
  for (auto& [id, other] : admission.kept_.rooms) {
    if (id == entry.id) continue;
    if (std::exchange(other.again_at, admission.now_) != admission.now_) other.again = 0;
    if (other.again == kAgainMax) continue;
    const bool of_one_tree =
        tree.root(other.queue) == tree.root(room.queue) && comes_before(turn_of(entry.id, room), turn_of(id, other));
    if (of_one_tree || (room.in_nodes && other.in_nodes && takes_places_of(entry, room, id, other) &&
                        std::ranges::any_of(admission.places_->kept_nodes(id), is_among_them))) {
      ++other.again;
      look_again_at(id, other);
    }
  }
}

void Admission::Keeper::note_taken(const Entry& entry) {
  for (const WorkloadId id : entry.over) {
    const auto kept = admission.kept_.rooms.find(id);
    if (kept == admission.kept_.rooms.end() || !takes_first(entry, turn_of(entry), id, kept->second)) continue;
    wake(id, kept->second);
  }
}

// Once in an epoch, unless something was decided: flavors that are tried in turn change what is kept for ever.
bool Admission::Keeper::note_reserved(Temporary reserved, bool decided) {
  Aside& aside = admission.kept_.aside;
  const Temporary before = std::exchange(aside.reserved, std::move(reserved));
  const auto is_over = [&](const Reservation& each) {
    return std::ranges::find(aside.reserved, each) == aside.reserved.end();
  };
  aside.due = !aside.ids.empty() && (aside.due || std::ranges::any_of(before, is_over));
  if (!aside.due || (!decided && aside.woken == admission.epoch_)) return false;
  aside.due = false;
  aside.woken = admission.epoch_;
  for (const WorkloadId id : std::exchange(aside.ids, {})) {
    const Record& record = admission.record(id);
    const auto waiting = admission.waiting_.find(record.status.cluster_queue);
    if (waiting == admission.waiting_.end()) continue;
    const auto group = waiting->second.groups.find(record.likeness);
    if (record.standing == Standing::kParked) admission.enqueue(id);
    else if (group != waiting->second.groups.end()) waiting->second.wake(record.likeness, group->second);
  }
  return true;
}

bool Admission::is_late(WorkloadId id) const {
  const std::optional<Time> end = expected_end(id);
  return record(id).status.lent_room && end && *end <= now_ && !leaving(record(id));
}

// The room is needed now: those leave that should have ended, as few as must, where that is enough.
void Admission::Keeper::take_back(Entry& entry, const KeptRoom& room) {
  if (room.free_by > admission.now_) return;
  Ledger& ledger = *admission.ledger_;
  std::vector<std::pair<Time, WorkloadId>> late;
  for (const auto& [name, queue] : admission.queues_)
    for (const WorkloadId id : ledger.holders(ledger.tree().queue(name)))
      if (admission.is_late(id) && (admission.places_ == nullptr || admission.places_->may_leave(id) != Leave::kNever))
        late.emplace_back(*admission.expected_end(id), id);
  std::sort(late.begin(), late.end());
  Entry next = entry;
  next.assignment.pod_sets = room.pod_sets;
  next.assignment.usage = room.usage;
  next.assignment.outcome = Outcome::kPreempt;
  next.over.clear();
  const auto fits_without = [&](const std::vector<WorkloadId>& gone) {
    for (const WorkloadId id : gone) ledger.take_out(id);
    const bool has_quota = ledger.tree().has_room(entry.queue, room.usage);
    for (const WorkloadId id : gone) ledger.put_back(id);
    const bool wants_place = admission.places_ != nullptr && !admission.provisions(next);
    return has_quota && (!wants_place || admission.places_->fit(admission.place_of(next), gone));
  };
  std::vector<WorkloadId> gone;  // who is the latest leaves first
  for (const auto& [end, id] : late) gone.push_back(id);
  if (gone.empty() || !fits_without(gone)) return;
  for (size_t i = gone.size(); i-- > 0 && gone.size() > 1;) {
    std::vector<WorkloadId> fewer = gone;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (fits_without(fewer)) gone = std::move(fewer);
  }
  for (const WorkloadId id : gone) next.victims.push_back({id, VictimReason::kPastRuntimeEstimate});
  entry = std::move(next);
}

}  // namespace berth::quota
