// Room that is kept, and for whom (quota/admission_keeper.h).
#include "quota/admission_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace berth::quota {
namespace {

constexpr size_t kFirstOnes = 4;                         // of a queue, beside those for whom room is kept
constexpr Duration kPauseMax = Duration::seconds(3600);  // between looks at one for whom no room could be kept

}  // namespace

bool Admission::Keeper::is_due(const Record& record) const {
  return record.waits_since && *record.waits_since + options().after <= admission.now_;
}

// By priority, then by age, whomever others have been evicted for.
bool Admission::Keeper::before(WorkloadId a, WorkloadId b) const {
  const OrderKey &x = admission.record(a).key, &y = admission.record(b).key;
  return std::tie(x.less_important, x.since, x.uid) < std::tie(y.less_important, y.since, y.uid);
}

// Whether the one for which room is kept would have its turn before the entry: of one queue, by what their LocalQueues
// have used where that counts; of two, by who borrows less or has the smaller share with it; then as above.
bool Admission::Keeper::has_first_turn(WorkloadId id, const KeptRoom& room, const Entry& entry) const {
  if (room.queue == entry.queue) {
    const double used = admission.local_usage(*entry.spec, admission.record(id).status.workload),
                 others = admission.local_usage(*entry.spec, admission.record(entry.id).status.workload);
    return used != others ? used < others : before(id, entry.id);
  }
  QuotaTree& tree = admission.ledger_->tree();
  if (!admission.options_.fair) {
    if (room.borrowing != entry.assignment.borrowing) return room.borrowing < entry.assignment.borrowing;
    return before(id, entry.id);
  }
  const auto share_in = [&](QuotaNode queue, QuotaNode other, const Amounts& usage) {
    const std::vector<QuotaNode> around = above(queue), others = above(other);
    const auto shared =
        std::ranges::find_if(around, [&](QuotaNode node) { return std::ranges::find(others, node) != others.end(); });
    tree.add_usage(queue, usage);
    const FairShare share = tree.share(*std::prev(shared));
    tree.remove_usage(queue, usage);
    return share;
  };
  const FairShare own = share_in(room.queue, entry.queue, room.usage),
                  others = share_in(entry.queue, room.queue, entry.assignment.usage);
  return own < others || (!(others < own) && before(id, entry.id));
}

// The node and those above it, up to the root.
std::vector<QuotaNode> Admission::Keeper::above(QuotaNode node) const {
  std::vector<QuotaNode> out;
  for (; node.valid(); node = admission.ledger_->tree().parent(node)) out.push_back(node);
  return out;
}

std::vector<WorkloadId> Admission::Keeper::holders_around(QuotaNode queue) const {
  const Ledger& ledger = *admission.ledger_;
  std::vector<WorkloadId> out;
  for (const QuotaNode each : ledger.tree().queues_below(ledger.tree().root(queue)))
    out.insert(out.end(), ledger.holders(each).begin(), ledger.holders(each).end());
  return out;
}

// The first in order for which no room is kept, and may be.
std::vector<WorkloadId> Admission::Keeper::first_ones(const Admission& admission, const Waiting& waiting) {
  std::vector<WorkloadId> out;
  auto pending = waiting.pending.begin();
  auto parked = waiting.parked.begin();
  for (int32_t kept = 0; out.size() < kFirstOnes && kept < admission.options_.reservations.per_queue;) {
    const bool has_pending = pending != waiting.pending.end(), has_parked = parked != waiting.parked.end();
    if (!has_pending && !has_parked) break;
    const WorkloadId id = has_parked && (!has_pending || *parked < *pending) ? (parked++)->id : (pending++)->id;
    if (admission.kept_.rooms.contains(id)) ++kept;
    else out.push_back(id);
  }
  return out;
}

// When room may be kept for it.
Time Admission::Keeper::due_at(const Admission& admission, const Record& record) {
  if (!record.waits_since) return Time{INT64_MAX};
  return std::max(*record.waits_since + admission.options_.reservations.after, record.keeps_from);
}

std::optional<Time> Admission::keeps_from() const {
  std::optional<Time> next;
  if (!options_.reservations.enabled) return next;
  for (const auto& [name, waiting] : waiting_)
    for (const WorkloadId id : Keeper::first_ones(*this, waiting))
      if (const Time due = Keeper::due_at(*this, record(id)); due > now_ && due < Time{INT64_MAX})
        next = std::min(next.value_or(due), due);
  return next;
}

void Admission::Keeper::forget(WorkloadId id) {
  const KeptRoom room = admission.kept_.rooms.at(id);
  admission.kept_.rooms.erase(id);
  const Standing standing = admission.record(id).standing;
  if (standing == Standing::kPending || standing == Standing::kParked) admission.release_places(id);
  if (room.queue.valid()) admission.wake_tree(room.queue);  // who has been held up for it
}

void Admission::Keeper::begin_cycle() {
  if (!options().enabled) return;
  const QuotaTree& tree = admission.ledger_->tree();
  std::vector<WorkloadId> over;
  for (auto& [id, room] : admission.kept_.rooms) {
    const Record& record = admission.record(id);
    room.queue = tree.queue(room.cluster_queue);
    const bool waits = record.standing == Standing::kPending || record.standing == Standing::kParked;
    if (waits && room.queue.valid() && record.status.cluster_queue == room.cluster_queue)
      room.usage = usage_of(tree, room.pod_sets, record.status.workload);
    else over.push_back(id);
    if (room.free_by > admission.now_ || room.woken >= room.free_by) continue;
    room.woken = admission.now_;
    if (record.standing == Standing::kParked) admission.enqueue(id);
  }
  for (const WorkloadId id : over) forget(id);
  for (const auto& [name, waiting] : admission.waiting_) {
    for (const WorkloadId id : first_ones(admission, waiting)) {
      const Record& record = admission.record(id);
      if (record.standing == Standing::kParked && due_at(admission, record) <= admission.now_) admission.enqueue(id);
    }
  }
}

bool Admission::Keeper::ends_by(const Entry& entry, Time until) const {
  const std::optional<Duration> declared = declared_runtime(admission.record(entry.id));
  return until < Time{INT64_MAX} && declared && admission.now_ + *declared <= until;
}

// Whether the one for which room is kept would have its quota, when those have given theirs back for whom it waits,
// without the entry and not with it.
bool Admission::Keeper::delays(const Entry& entry, const KeptRoom& room) const {
  Ledger& ledger = *admission.ledger_;
  QuotaTree& tree = ledger.tree();
  std::vector<WorkloadId> gone;
  for (const WorkloadId id : room.gives_way)
    if (ledger.find(id) != nullptr) gone.push_back(id);
  for (const Victim& victim : entry.victims)
    if (!room.gives_way.contains(victim.id)) gone.push_back(victim.id);
  tree.remove_usage(room.queue, room.held);
  for (const WorkloadId id : gone) ledger.take_out(id);
  const bool without = tree.has_room(room.queue, room.usage);
  tree.add_usage(entry.queue, entry.assignment.usage);
  const bool with = tree.has_room(room.queue, room.usage);
  tree.remove_usage(entry.queue, entry.assignment.usage);
  for (const WorkloadId id : gone) ledger.put_back(id);
  tree.add_usage(room.queue, room.held);
  return without && !with;
}

std::string Admission::Keeper::since_when() const {
  return fmt::format("has waited for {}", format_duration(options().after));
}

bool Admission::Keeper::may_have(Entry& entry) const {
  if (admission.kept_.rooms.empty() || !admission.record(entry.id).key.behind_sticky) return true;
  std::string why = why_not(entry);
  entry.held_up = !why.empty();
  if (entry.held_up) entry.assignment.no_place = std::move(why);
  return !entry.held_up;
}

std::string Admission::Keeper::why_not(Entry& entry) const {
  const QuotaTree& tree = admission.ledger_->tree();
  std::vector<WorkloadId> in_order;
  for (const auto& [id, room] : admission.kept_.rooms) in_order.push_back(id);
  std::ranges::sort(in_order, [&](WorkloadId a, WorkloadId b) { return before(a, b); });
  for (const WorkloadId id : in_order) {
    const KeptRoom& room = admission.kept_.rooms.at(id);
    if (id == entry.id || tree.root(entry.queue) != tree.root(room.queue)) continue;
    if (entry.queue != room.queue && entry.assignment.borrowing == 0) continue;
    if (!has_first_turn(id, room, entry) || !delays(entry, room)) continue;
    if (ends_by(entry, room.free_by)) {
      entry.borrows_room = true;
      continue;
    }
    return fmt::format("quota that is free, or becomes free, in ClusterQueue {} is kept for Workload {}, which {}",
                       room.cluster_queue, admission.record(id).status.workload.full_name(), since_when());
  }
  return "";
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

// Puts those into Entry::over whose places it may use; true: it has to have ended before some of them can.
bool Admission::Keeper::may_use_places(Entry& entry) const {
  bool borrows = false;
  entry.over.clear();
  for (const auto& [id, room] : admission.kept_.rooms) {
    if (id == entry.id || !room.in_nodes) continue;
    const bool comes_first = takes_first(entry, id, room);
    if (!comes_first && !ends_by(entry, room.free_by)) continue;
    entry.over.push_back(id);
    borrows |= !comes_first;
  }
  return borrows;
}

void Admission::Keeper::took_places(const Entry& entry) {
  for (const WorkloadId id : entry.over)
    if (KeptRoom& room = admission.kept_.rooms.at(id); takes_first(entry, id, room)) {
      room.looked_at = Time{INT64_MIN};
      admission.enqueue(id);
    }
}

// Whether the entry has the better right to places; of those who share no quota, by priority and age.
bool Admission::Keeper::takes_first(const Entry& entry, WorkloadId id, const KeptRoom& room) const {
  const QuotaTree& tree = admission.ledger_->tree();
  if (tree.root(entry.queue) != tree.root(room.queue)) return before(entry.id, id);
  return !has_first_turn(id, room, entry);
}

bool Admission::is_late(WorkloadId id) const {
  const std::optional<Time> end = expected_end(id);
  return record(id).lent_room && end && *end <= now_ && !leaving(record(id));
}

// Nothing is known of one that runs longer than it said, unless it can be told to leave, or has been.
Time Admission::Keeper::given_back_by(const Holder& holder) const {
  if (holder.evicted || admission.is_late(holder.id)) return admission.now_;
  const std::optional<Time> end = admission.expected_end(holder.id);
  return end && *end > admission.now_ ? *end : Time{INT64_MAX};
}

// What it would get if nobody had quota but those that come before it and for whom room is kept.
Assignment Admission::Keeper::when_alone(const Entry& entry, const PassedFlavors& without) {
  Ledger& ledger = *admission.ledger_;
  const std::vector<WorkloadId> holders = holders_around(entry.queue);
  for (const WorkloadId id : holders) ledger.take_out(id);
  const Record& record = admission.record(entry.id);
  const Preemption preemption(ledger, admission.options_.fair, admission.places_, admission.now_);
  const FlavorRequest request{
      admission.claimant(record), &record.status.workload, entry.spec, {}, 0, nullptr, &without};
  Assignment out = assign_flavors(ledger, preemption, admission.flavors_, request);
  for (const WorkloadId id : holders) ledger.put_back(id);
  return out;
}

// Those whose quota it waits for: all that have given it back by the time when that is enough; those of whom nobody
// knows when, in the order in which they got it.
void Admission::Keeper::find_who_gives_way(WorkloadId id, KeptRoom& room) {
  Ledger& ledger = *admission.ledger_;
  std::vector<std::tuple<Time, Time, std::string, WorkloadId>> holders;
  for (const WorkloadId holder : holders_around(room.queue))
    if (holder != id) {
      const Holder& held = ledger.holder(holder);
      holders.emplace_back(given_back_by(held), held.reserved, held.uid, holder);
    }
  std::sort(holders.begin(), holders.end());
  room.free_by = admission.now_;
  bool enough = ledger.tree().has_room(room.queue, room.usage);
  for (const auto& [end, reserved, uid, holder] : holders) {
    if (enough && (end > room.free_by || end == Time{INT64_MAX})) break;
    ledger.take_out(holder);
    room.gives_way.insert(holder);
    if (enough) continue;
    room.free_by = end;
    enough = ledger.tree().has_room(room.queue, room.usage);
  }
  for (const WorkloadId holder : room.gives_way) ledger.put_back(holder);
}

// False: with these flavors it would have no place even if all others had left.
bool Admission::Keeper::look_at_places(const Entry& entry, const Assignment& assignment, KeptRoom& room) {
  Entry given = entry;
  given.assignment = assignment;
  if (admission.places_ == nullptr || admission.provisions(given)) return true;
  const bool has_quota = room.gives_way.empty();
  std::vector<WorkloadId> over;
  for (const auto& [id, other] : admission.kept_.rooms)
    if (id != entry.id && other.in_nodes && before(entry.id, id)) over.push_back(id);
  PlaceRequest request = admission.place_of(given);
  request.over = &over;
  const std::optional<Time> free_by = admission.places_->keep(request, !has_quota);
  if (!free_by) return false;
  if (!has_quota) return true;
  room.in_nodes = true;
  room.free_by = *free_by;
  return true;
}

bool Admission::Keeper::find_room(const Entry& entry, KeptRoom& room) {
  QuotaTree& tree = admission.ledger_->tree();
  std::vector<const KeptRoom*> earlier;  // what they wait for counts as in use
  for (const auto& [id, other] : admission.kept_.rooms)
    if (id != entry.id && before(id, entry.id) && tree.root(other.queue) == tree.root(entry.queue))
      earlier.push_back(&other);
  for (const KeptRoom* other : earlier) tree.add_usage(other->queue, other->usage);
  PassedFlavors without;
  bool found = false;
  for (bool goes_on = true; goes_on && !found;) {
    const Assignment assignment = when_alone(entry, without);
    if (assignment.outcome != Outcome::kFit) break;
    room.pod_sets = assignment.pod_sets;
    room.usage = assignment.usage;
    room.borrowing = assignment.borrowing;
    room.gives_way.clear();
    find_who_gives_way(entry.id, room);
    found = look_at_places(entry, assignment, room);
    goes_on = pass_over(assignment, *entry.spec, without);
  }
  for (const KeptRoom* other : earlier) tree.remove_usage(other->queue, other->usage);
  return found;
}

// Whether the queue's share of kept room is not used up by those that come before; the last of the others gives way.
bool Admission::Keeper::may_keep(WorkloadId id, const std::string& cluster_queue) {
  std::vector<WorkloadId> others;
  for (const auto& [other, room] : admission.kept_.rooms)
    if (room.cluster_queue == cluster_queue && other != id) others.push_back(other);
  if (std::ssize(others) < options().per_queue) return true;
  const WorkloadId last = *std::ranges::max_element(others, [&](WorkloadId a, WorkloadId b) { return before(a, b); });
  if (!before(id, last)) return false;
  forget(last);
  return true;
}

bool Admission::Keeper::holds_still(WorkloadId id, const KeptRoom& room) const {
  const Time now = admission.now_;
  if (room.looked_at == now) return true;
  if (room.looked_at + options().retry <= now || room.free_by <= now) return false;
  if (room.in_nodes) return !admission.places_->kept_nodes(id).empty();
  return !admission.ledger_->tree().has_room(room.queue, room.usage);
}

void Admission::Keeper::consider(Entry& entry) {
  const bool fits = entry.assignment.outcome == Outcome::kFit || !entry.victims.empty();
  Record& record = admission.record(entry.id);
  if (!options().enabled || fits || !is_due(record)) return;
  const auto known = admission.kept_.rooms.find(entry.id);
  const bool is_kept = known != admission.kept_.rooms.end();
  if (is_kept) take_back(entry, known->second);
  if (!entry.victims.empty() || (is_kept && holds_still(entry.id, known->second))) return;
  if (!is_kept && (record.keeps_from > admission.now_ || !may_keep(entry.id, entry.spec->name))) return;
  if (looks_left-- <= 0) return;
  if (entry.assignment.user_limit.empty() && keep(entry)) {
    record.keeps_pause = {};
    return;
  }
  if (is_kept) forget(entry.id);
  record.keeps_pause = std::clamp(record.keeps_pause * 2, options().retry, kPauseMax);
  record.keeps_from = admission.now_ + record.keeps_pause;
}

// False: there is no room that could be.
bool Admission::Keeper::keep(const Entry& entry) {
  std::map<WorkloadId, KeptRoom>& rooms = admission.kept_.rooms;
  KeptRoom room;
  room.cluster_queue = entry.spec->name;
  room.queue = entry.queue;
  room.looked_at = admission.now_;
  const auto known = rooms.find(entry.id);
  if (!find_room(entry, room)) return false;
  if (known == rooms.end()) ++admission.kept_.in_all;
  else if (known->second.in_nodes && !room.in_nodes) admission.release_places(entry.id);
  rooms[entry.id] = std::move(room);
  return true;
}

// The room is needed now: those leave that should have ended, as few as must, where that is enough.
void Admission::Keeper::take_back(Entry& entry, const KeptRoom& room) {
  if (room.free_by > admission.now_) return;
  Ledger& ledger = *admission.ledger_;
  std::vector<std::pair<Time, WorkloadId>> late;
  for (const QuotaNode queue : ledger.tree().queues_below(ledger.tree().root(entry.queue)))
    for (const WorkloadId id : ledger.holders(queue))
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

void Admission::Keeper::tell(WorkloadId id) const {
  const auto kept = admission.kept_.rooms.find(id);
  if (kept == admission.kept_.rooms.end()) return;
  const KeptRoom& room = kept->second;
  std::string what = "quota that becomes free";
  if (room.in_nodes) {
    const std::vector<std::string> nodes = admission.places_->kept_nodes(id);
    what = fmt::format("what becomes free on node{} {}", nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
  }
  std::string& message = admission.record(id).status.message;
  if (!message.empty() && message.back() != '.') message += '.';
  message += fmt::format(" It {}: {} is kept for it", since_when(), what);
  if (room.free_by > admission.now_ && room.free_by < Time{INT64_MAX})
    message += fmt::format("; by what {} declares, that is enough by {}", room.in_nodes ? "runs there" : "uses it",
                           time_text(room.free_by, admission.options_.created_ahead));
  message += '.';
}

}  // namespace berth::quota
