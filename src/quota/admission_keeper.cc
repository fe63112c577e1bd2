// Room that is kept, and for whom (quota/admission_keeper.h).
#include "quota/admission_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace berth::quota {
namespace {

// Of a queue, beside those for whom room is kept: those that are looked at, and those for whom none could be kept
// lately.
constexpr size_t kFirstOnes = 4, kPausedMax = 64;
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

std::vector<WorkloadId> Admission::Keeper::holders_around(QuotaNode queue) const {
  const Ledger& ledger = *admission.ledger_;
  std::vector<WorkloadId> out;
  for (const QuotaNode each : ledger.tree().queues_below(ledger.tree().root(queue)))
    out.insert(out.end(), ledger.holders(each).begin(), ledger.holders(each).end());
  return out;
}

// When room may be kept for it.
Time Admission::Keeper::due_at(const Record& record) const {
  if (!record.waits_since) return Time{INT64_MAX};
  return std::max(*record.waits_since + options().after, record.keeps_from);
}

// Has those of a queue looked at whose time has come, of the first in order for which no room is kept, and may be.
void Admission::Keeper::wake_first_ones(Waiting& waiting) {
  if (waiting.quiet_until && *waiting.quiet_until > admission.now_) return consider_time(*waiting.quiet_until);
  std::array<WorkloadId, kFirstOnes> due;
  size_t seen = 0, is_due = 0, paused = 0;
  Time next_due{INT64_MAX};
  const std::array all = {&waiting.pending, &waiting.parked, &waiting.behind};
  std::array next = {all[0]->begin(), all[1]->begin(), all[2]->begin()};
  for (int32_t kept = 0; seen < kFirstOnes && kept < options().per_queue;) {
    size_t first = all.size();
    for (size_t i = 0; i < all.size(); ++i)
      if (next[i] != all[i]->end() && (first == all.size() || *next[i] < *next[first])) first = i;
    if (first == all.size()) break;
    const bool is_parked = first > 0;
    const WorkloadId id = (next[first]++)->id;
    if (admission.kept_.rooms.contains(id)) {
      ++kept;
      continue;
    }
    const Record& record = admission.record(id);
    const bool pauses = record.keeps_from > admission.now_;
    if (pauses && paused++ == kPausedMax) break;
    if (!pauses) ++seen;
    const Time at = due_at(record);
    if (at > admission.now_) next_due = std::min(next_due, at);
    else if (is_parked) due[is_due++] = id;
  }
  consider_time(next_due);
  waiting.quiet_until = next_due;
  for (size_t i = 0; i < is_due; ++i) admission.enqueue(due[i]);
}

void Admission::Keeper::look_at_queue(const std::string& cluster_queue) const {
  const auto waiting = admission.waiting_.find(cluster_queue);
  if (waiting != admission.waiting_.end()) waiting->second.quiet_until.reset();
}

void Admission::Keeper::consider_time(Time at) {
  std::optional<Time>& next = admission.kept_.next_due;
  if (at < Time{INT64_MAX}) next = std::min(next.value_or(at), at);
}

void Admission::Keeper::forget(WorkloadId id) {
  const KeptRoom room = std::move(admission.kept_.rooms.extract(id).mapped());
  look_at_queue(room.cluster_queue);
  const Standing standing = admission.record(id).standing;
  if (waits(standing)) admission.release_places(id);
  if (room.queue.valid()) admission.wake_tree(room.queue);  // who has been held up for it
}

void Admission::Keeper::end_room(const Entry& entry) {
  if (admission.kept_.rooms.erase(entry.id) == 0) return;
  look_at_queue(entry.spec->name);
  admission.wake_tree(entry.queue);
}

void Admission::Keeper::measure(WorkloadId id) {
  const auto kept = admission.kept_.rooms.find(id);
  if (kept == admission.kept_.rooms.end()) return;
  const QuotaTree& tree = admission.ledger_->tree();
  const model::Workload& workload = admission.record(id).status.workload;
  KeptRoom& room = kept->second;
  room.queue = tree.queue(room.cluster_queue);
  if (!room.queue.valid() || room.pod_sets.size() != workload.pod_sets.size()) return forget(id);
  room.usage = usage_of(tree, room.pod_sets, workload);
}

void Admission::Keeper::begin_cycle() {
  if (!options().enabled) return;
  std::vector<WorkloadId> over;
  for (auto& [id, room] : admission.kept_.rooms) {
    const Record& record = admission.record(id);
    if (!waits(record.standing) || record.status.cluster_queue != room.cluster_queue) over.push_back(id);
    if (!is_over(room) || room.woken >= room.free_by) continue;
    room.woken = admission.now_;
    if (record.standing == Standing::kParked || record.standing == Standing::kBehind) admission.enqueue(id);
  }
  for (const WorkloadId id : over) forget(id);
  admission.kept_.next_due.reset();
  for (auto& [name, waiting] : admission.waiting_) wake_first_ones(waiting);
}

std::string Admission::Keeper::since_when() const {
  return fmt::format("has waited for {}", format_duration(options().after));
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

// Borrows at most as much as it would alone: what it borrows beyond that its lenders may want back before its time.
bool Admission::Keeper::has_own_room(const KeptRoom& room) const {
  const QuotaTree& tree = admission.ledger_->tree();
  return tree.has_room(room.queue, room.usage) && std::ranges::all_of(room.usage, [&](const auto& part) {
           return tree.lowest_subtree_that_fits(room.queue, part.first, part.second).height <= room.borrowing;
         });
}

// Those whose quota it waits for: all that have given it back by the time when that is enough; those of whom nobody
// knows when, in the order in which they got it.
void Admission::Keeper::find_who_gives_way(WorkloadId id, KeptRoom& room) {
  Ledger& ledger = *admission.ledger_;
  room.free_by = admission.now_;
  if (ledger.tree().has_room(room.queue, room.usage)) return;
  std::vector<std::tuple<Time, Time, std::string, WorkloadId>> holders;
  for (const WorkloadId holder : holders_around(room.queue))
    if (holder != id) {
      const Holder& held = ledger.holder(holder);
      holders.emplace_back(given_back_by(held), held.reserved, held.uid, holder);
    }
  std::sort(holders.begin(), holders.end());
  bool enough = false;
  for (const auto& [end, reserved, uid, holder] : holders) {
    if (enough && (end > room.free_by || end == Time{INT64_MAX})) break;
    ledger.take_out(holder);
    room.gives_way.insert(holder);
    if (enough) continue;
    room.free_by = end;
    enough = has_own_room(room);
  }
  for (const WorkloadId holder : room.gives_way) ledger.put_back(holder);
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

// Places are kept where it has its quota, or where it is known when: else they would stand idle for nobody knows how
// long. False: with these flavors it would have no place even if all others had left.
bool Admission::Keeper::look_at_places(const Entry& entry, const Assignment& assignment, KeptRoom& room) {
  Entry given = entry;
  given.assignment = assignment;
  if (admission.places_ == nullptr || admission.provisions(given)) return true;
  const bool has_quota = room.gives_way.empty();
  room.lacks_quota = !has_quota;
  std::vector<WorkloadId> over;
  for (const auto& [id, other] : admission.kept_.rooms)
    if (id != entry.id && other.in_nodes && takes_places_of(entry, room, id, other)) over.push_back(id);
  PlaceRequest request = admission.place_of(given);
  request.over = &over;
  if (!admission.places_->could_fit(request)) return false;
  if (entry.held_up || room.free_by == Time{INT64_MAX}) return true;
  const std::optional<Time> free_by = admission.places_->keep(request, room.free_by);
  if (!free_by) return !has_quota;
  room.in_nodes = !admission.places_->kept_nodes(entry.id).empty();
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
    Entry given = entry;
    given.assignment = assignment;
    if (assignment.outcome != Outcome::kFit || admission.exceeds_user_limit(given)) break;
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

// The time has come by which there was to be enough.
bool Admission::Keeper::is_over(const KeptRoom& room) const {
  return room.free_by <= admission.now_ && room.free_by > room.looked_at;
}

// Places are kept where they are until they are lost or it turns out that they are not free when they should be: others
// may look better now and then, and be taken again.
bool Admission::Keeper::holds_still(WorkloadId id, const KeptRoom& room) const {
  const Time now = admission.now_;
  if (room.in_nodes && (room.looked_at == Time{INT64_MIN} || admission.places_->kept_nodes(id).empty())) return false;
  if (room.looked_at == now) return true;
  if (is_over(room)) return false;
  const bool lacks_quota = !admission.ledger_->tree().has_room(room.queue, room.usage);
  if (room.in_nodes) return lacks_quota || room.gives_way.empty();
  return lacks_quota && room.looked_at + options().retry > now;
}

// The head of a StrictFIFO queue waits: nobody behind it has a turn, and so no room.
void Admission::Keeper::forget_those_behind(const Entry& entry) {
  if (entry.spec->strategy != model::QueueingStrategy::kStrictFifo || !entry.assignment.user_limit.empty()) return;
  std::vector<WorkloadId> behind;
  for (const auto& [id, room] : admission.kept_.rooms)
    if (id != entry.id && room.cluster_queue == entry.spec->name) behind.push_back(id);
  for (const WorkloadId id : behind) forget(id);
}

void Admission::Keeper::consider(Entry& entry) {
  const bool fits = entry.assignment.outcome == Outcome::kFit || !entry.victims.empty();
  Record& record = admission.record(entry.id);
  if (!options().enabled || fits) return;
  forget_those_behind(entry);
  if (!is_due(record)) return;
  const auto known = admission.kept_.rooms.find(entry.id);
  const bool is_kept = known != admission.kept_.rooms.end();
  if (is_kept && entry.held_up) leave_nodes(entry.id);
  if (is_kept) take_back(entry, known->second);
  if (!entry.victims.empty() || (is_kept && holds_still(entry.id, known->second))) return;
  if (!is_kept && (record.keeps_from > admission.now_ || !may_keep(entry.id, entry.spec->name))) return;
  if (looks_left-- <= 0) return;
  if (entry.assignment.user_limit.empty() && keep(entry)) {
    record.keeps_pause = {};
    return;
  }
  if (is_kept) forget(entry.id);
  put_off(record);
}

void Admission::Keeper::leave_nodes(WorkloadId id) {
  const auto known = admission.kept_.rooms.find(id);
  if (known == admission.kept_.rooms.end() || !std::exchange(known->second.in_nodes, false)) return;
  admission.release_places(id);
}

void Admission::Keeper::put_off(Record& record) {
  if (!options().enabled) return;
  record.keeps_pause = std::clamp(record.keeps_pause * 2, options().retry, kPauseMax);
  record.keeps_from = admission.now_ + record.keeps_pause;
  consider_time(record.keeps_from);
  look_at_queue(record.status.cluster_queue);
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
  has_kept |= room.in_nodes;
  if (known == rooms.end()) {
    ++admission.kept_.in_all;
    look_at_queue(room.cluster_queue);
    if (entry.held_up) have_another_turn.push_back(entry.id);
  } else if (known->second.in_nodes && !room.in_nodes) {
    admission.release_places(entry.id);
  }
  rooms[entry.id] = std::move(room);
  return true;
}

// Whether somebody waits that comes before it and for whom no room is kept, though it may be: he may have his turn any
// time.
bool Admission::Keeper::somebody_comes_first(WorkloadId id) const {
  for (const auto& [name, waiting] : admission.waiting_)
    for (const auto* some : {&waiting.pending, &waiting.parked, &waiting.behind})
      for (const OrderKey& each : *some) {
        const bool comes_first = before(each.id, id);
        if (!comes_first && each.behind_sticky) break;
        const bool is_put_off = admission.record(each.id).keeps_from > admission.now_;
        if (comes_first && !is_put_off && !admission.kept_.rooms.contains(each.id)) return true;
      }
  return false;
}

void Admission::Keeper::tell(WorkloadId id) const {
  const auto kept = admission.kept_.rooms.find(id);
  if (kept == admission.kept_.rooms.end()) return;
  const KeptRoom& room = kept->second;
  const bool lacks_quota = !room.in_nodes || !admission.ledger_->tree().has_room(room.queue, room.usage);
  std::string what = lacks_quota ? "quota that becomes free" : "";
  if (room.in_nodes) {
    const std::vector<std::string> nodes = admission.places_->kept_nodes(id);
    what += fmt::format("{}what becomes free on node{} {}{}", lacks_quota ? ", and " : "", nodes.size() == 1 ? "" : "s",
                        fmt::join(nodes, ", "), lacks_quota ? "," : "");
  }
  Record& record = admission.record(id);
  std::string& kept_for_it = record.kept_for_it;
  kept_for_it =
      fmt::format("It {}: {} {} kept for it", since_when(), what, lacks_quota && room.in_nodes ? "are" : "is");
  if (room.free_by > admission.now_ && room.free_by < Time{INT64_MAX})
    kept_for_it += fmt::format("; by what {}, that is enough by {}{}",
                               lacks_quota ? "those declare who have it now" : "runs there declares",
                               time_text(room.free_by, admission.options_.created_ahead),
                               somebody_comes_first(id) ? " unless who comes before it takes it" : "");
  kept_for_it += '.';
  record.status.message = with_kept(record.status.message, record);
}

}  // namespace berth::quota
