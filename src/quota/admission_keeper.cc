// Room that is kept, and for whom (quota/admission_keeper.h).
#include "quota/admission_keeper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace berth::quota {
namespace {

constexpr Duration kPauseMax = Duration::seconds(3600);  // between looks at one for whom no room could be kept

}  // namespace

void Admission::Keeper::forget(WorkloadId id) {
  const KeptRoom room = *admission.kept_.take(id);
  look_at_queue(room.cluster_queue);
  const Standing standing = admission.record(id).standing;
  if (waits(standing)) admission.release_places(id);
  for (auto& [other, behind] : admission.kept_.rooms)  // who was to have his after it, may have it sooner
    if (behind.gives_way.erase(id) > 0) wake(other, behind);
  if (!room.queue.valid()) return;
  admission.wake_tree(room.queue);  // who has been held up for it
  look_at_those_behind(room.queue);
}

void Admission::Keeper::end_room(const Entry& entry) {
  if (!admission.kept_.take(entry.id)) return;
  look_at_queue(entry.spec->name);
  admission.wake_tree(entry.queue);
  look_at_those_behind(entry.queue);
}

// Those for whom none could be kept beside what was kept for others.
void Admission::Keeper::look_at_those_behind(QuotaNode queue) {
  const QuotaTree& tree = admission.ledger_->tree();
  std::erase_if(admission.kept_.behind, [&](WorkloadId id) {
    Record& record = admission.record(id);
    const QuotaNode own = waits(record.standing) ? tree.queue(record.status.cluster_queue) : QuotaNode{};
    if (own.valid() && tree.root(own) != tree.root(queue)) return false;
    record.keeps_from = Time{INT64_MIN};
    if (own.valid()) look_at_queue(record.status.cluster_queue);
    return true;
  });
}

// What is kept for it is looked at again at its turn, which it is to have.
void Admission::Keeper::wake(WorkloadId id, KeptRoom& room) const {
  room.looked_at = Time{INT64_MIN};
  if (waits(admission.record(id).standing)) admission.enqueue(id);
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

// Quota is kept for no cut that nobody begins, and that nothing is kept for.
void Admission::Keeper::look_at_cut(WorkloadId id, KeptRoom& room) {
  const Time due = std::max(room.looked_at, room.woken) + options().retry;
  if (!room.wants_cut || room.free_by > admission.now_ || admission.places_->waits_for_cut(id)) return;
  if (due > admission.now_) return consider_time(due);
  const Standing standing = admission.record(id).standing;
  if (standing != Standing::kParked && standing != Standing::kBehind) return;
  admission.enqueue(id);
  room.woken = admission.now_;  // whatever comes of its turn, the next is a while later
  consider_time(admission.now_ + options().retry);
}

void Admission::Keeper::begin_cycle() {
  if (!options().enabled) return;
  admission.kept_.in_order.clear();
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
  for (auto& [id, room] : admission.kept_.rooms) look_at_cut(id, room);
  find_first_roomless();
}

// Wakes those whose time has come, and finds the first of each queue, and of all, for whom no room is kept. Those are
// told of them who have some.
void Admission::Keeper::find_first_roomless() {
  Kept& kept = admission.kept_;
  auto owners = kept.of_queue.begin();  // in the order of their queues' names, as those are that wait
  std::vector<Turn> of_queue;           // the first of each queue that has rooms; invalid: none
  Turn of_all;
  for (auto& [name, waiting] : admission.waiting_) {
    wake_first_ones(waiting);
    for (; owners != kept.of_queue.end() && owners->first < name; ++owners) of_queue.emplace_back();
    const bool has_rooms = owners != kept.of_queue.end() && owners->first == name;
    Turn first{waiting.first_roomless};
    if (first.id.valid()) first.key = has_rooms ? &key_among(first, owners->second) : &admission.record(first.id).key;
    if (first.id.valid() && (!of_all.id.valid() || before(first, of_all))) of_all = first;
    if (!has_rooms) continue;
    of_queue.push_back(first);
    ++owners;
  }
  of_queue.resize(kept.of_queue.size());
  kept.first_roomless = of_all.id;
  auto first = of_queue.begin();
  for (const auto& [name, rooms] : kept.of_queue) {
    for (const auto& [id, room] : rooms)
      if (room->may_lose != somebody_comes_first(id, *room, *first, of_all)) tell_anew(id, *room);
    ++first;
  }
}

std::string Admission::Keeper::since_when() const {
  return fmt::format("has waited for {}", format_duration(options().after));
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
  if (room.in_nodes && room.looked_at + options().retry <= now && admission.places_->waits_for_who_runs_on(id))
    return false;
  if (room.in_nodes) return lacks_quota || room.gives_way.empty();
  return (lacks_quota || room.wants_cut) && room.looked_at + options().retry > now;
}

// The head of a StrictFIFO queue waits: nobody behind it has a turn, and so no room.
void Admission::Keeper::forget_those_behind(const Entry& entry) {
  if (entry.spec->strategy != model::QueueingStrategy::kStrictFifo || !entry.assignment.user_limit.empty()) return;
  const auto known = admission.kept_.of_queue.find(entry.spec->name);
  if (known == admission.kept_.of_queue.end()) return;
  const std::map<WorkloadId, KeptRoom*> behind = known->second;
  for (const auto& [id, room] : behind)
    if (id != entry.id) forget(id);
}

void Admission::Keeper::consider(Entry& entry) {
  const bool fits = entry.assignment.outcome == Outcome::kFit || !entry.victims.empty();
  Record& record = admission.record(entry.id);
  if (!options().enabled || fits) return;
  forget_those_behind(entry);
  if (!is_due(record)) return;
  const auto known = admission.kept_.rooms.find(entry.id);
  const bool is_kept = known != admission.kept_.rooms.end();
  if (is_kept && !entry.assignment.user_limit.empty()) {
    forget(entry.id);
    return put_off(record);
  }
  admission.kept_.to_look_at.erase(entry.id);
  if (is_kept) take_back(entry, known->second);
  if (!entry.victims.empty() || (is_kept && holds_still(entry.id, known->second))) return;
  WorkloadId gives_way;
  bool only_own = false;
  if (!is_kept && (record.keeps_from > admission.now_ || !may_keep(entry.id, entry.spec->name, gives_way, only_own)))
    return;
  if (looks_left == 0) {
    if (is_kept) admission.kept_.to_look_at.insert(entry.id);
    return;
  }
  --looks_left;
  if (entry.assignment.user_limit.empty() && keep(entry, only_own)) {
    record.keeps_pause = {};
    if (gives_way.valid()) {
      forget(gives_way);
      look_again_at(entry.id, admission.kept_.rooms.at(entry.id));  // that may have counted before it
    }
    return;
  }
  if (is_kept) forget(entry.id);
  put_off(record);
}

void Admission::Keeper::leave_nodes(WorkloadId id) {
  const auto known = admission.kept_.rooms.find(id);
  if (known == admission.kept_.rooms.end() || !known->second.keeps_places()) return;
  known->second.in_nodes = known->second.in_part = false;
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
bool Admission::Keeper::keep(const Entry& entry, bool only_own) {
  std::map<WorkloadId, KeptRoom>& rooms = admission.kept_.rooms;
  KeptRoom room;
  room.cluster_queue = entry.spec->name;
  room.queue = entry.queue;
  room.looked_at = admission.now_;
  const auto known = rooms.find(entry.id);
  if (known != rooms.end()) {
    room.again_at = known->second.again_at;
    room.again = known->second.again;
  }
  const bool had_places = known != rooms.end() && known->second.keeps_places();
  std::vector<std::string> had;
  if (had_places) had = admission.places_->kept_nodes(entry.id);
  std::vector<int32_t> fewest;
  bool may_be_fewer = false;
  for (const model::PodSet& set : admission.record(entry.id).status.workload.pod_sets) {
    fewest.push_back(set.fewest());
    may_be_fewer |= set.fewest() < set.needed();
  }
  if (!find_room(entry, {}, only_own, room) && !(may_be_fewer && find_room(entry, fewest, only_own, room)))
    return false;
  if (is_spent_by(entry, room.free_by)) {
    if (room.keeps_places()) admission.release_places(entry.id);
    return false;
  }
  room.hedged = is_hedged(entry, room);
  has_kept |= room.in_nodes;
  const std::optional<Duration> declared = declared_runtime(admission.record(entry.id));
  // Where shares count, who comes first may change with them, so that two would wait for each other.
  if (!admission.options_.fair) room.left_by = Time{INT64_MAX};
  if (room.left_by && declared && room.free_by < Time{INT64_MAX} && !room.wants_cut)
    room.left_by = std::max(room.free_by, admission.now_) + *declared;
  bool is_another = known == rooms.end() || known->second.usage != room.usage || known->second.left_by < room.left_by;
  if (known == rooms.end()) {
    ++admission.kept_.in_all;
    look_at_queue(room.cluster_queue);
    if (entry.held_up) have_another_turn.push_back(entry.id);
  } else if (had_places && !room.keeps_places()) {
    admission.release_places(entry.id);
  }
  if (room.wants_cut) consider_time(admission.now_ + options().retry);
  is_another |= room.in_nodes && had != admission.places_->kept_nodes(entry.id);
  const KeptRoom& kept = admission.kept_.put(entry.id, std::move(room));
  if (is_another) look_again_behind(entry, kept);
  return true;
}

// Whether somebody waits that comes before it and for whom no room is kept, though it may be, or of whom nothing is
// known but that he comes first: he may have his turn any time.
bool Admission::Keeper::somebody_comes_first(WorkloadId id, const KeptRoom& room, const Turn& of_queue,
                                             const Turn& of_all) const {
  const Turn own = turn_of(id, room);
  const auto comes_first = [&](const Turn& first) { return first.id.valid() && before(first, own); };
  return comes_first(of_all) || comes_first(of_queue) || (room.in_nodes && admission.places_->may_lose_kept(id));
}

// Whether another for whom room is kept may have its room all the same: one that has not left again by then and comes
// before it, and whose own is free later or may be made by evicting others; or with the shares may come before it.
bool Admission::Keeper::may_be_passed(WorkloadId id, const KeptRoom& room) const {
  const QuotaTree& tree = admission.ledger_->tree();
  const Turn own = turn_of(id, room);
  const auto may_use = [&](const model::ClusterQueue& queue) {  // the flavors that this one is to have
    return std::ranges::any_of(room.usage, [&](const auto& used) {
      const std::string& flavor = tree.flavor(used.first);
      return std::ranges::any_of(queue.groups, [&](const model::ResourceGroup& group) {
        return std::ranges::find(group.flavors, flavor, &model::FlavorQuotas::flavor) != group.flavors.end();
      });
    });
  };
  return std::ranges::any_of(admission.kept_.rooms, [&](const auto& each) {
    const auto& [other, has] = each;
    const bool evicts = !has.gives_way.empty() && has.quota_by <= admission.now_;  // who may come back before this one
    if (other == id || (!evicts && has.left_by && *has.left_by <= room.free_by)) return false;
    const bool by_shares = admission.options_.fair && tree.root(has.queue) == tree.root(room.queue);
    const auto queue = admission.queues_.find(has.cluster_queue);
    if (queue == admission.queues_.end()) return false;
    const model::QueuePreemption& policies = queue->second.preemption;
    const bool may_evict = policies.within_queue != model::PreemptionPolicy::kNever ||
                           policies.reclaim_within_cohort != model::PreemptionPolicy::kNever;
    // Else it counts beside that one already.
    if (!by_shares && !may_evict && has.free_by <= room.free_by) return false;
    return may_use(queue->second) && (by_shares || before(turn_of(other, has), own));
  });
}

std::string Admission::Keeper::kept_text(WorkloadId id, KeptRoom& room) const {
  const auto waiting = admission.waiting_.find(room.cluster_queue);
  const Turn of_queue{waiting == admission.waiting_.end() ? WorkloadId{} : waiting->second.first_roomless};
  room.may_lose = somebody_comes_first(id, room, of_queue, {admission.kept_.first_roomless});
  const bool has_quota = admission.ledger_->tree().has_room(room.queue, room.usage);
  if (room.wants_cut && has_quota)
    return fmt::format("It {}: its quota is kept for it, until GPUs can be cut anew for it.", since_when());
  const bool lacks_quota = !room.in_nodes || !has_quota;
  std::string what = lacks_quota ? "quota that becomes free" : "";
  if (room.in_nodes) {
    const std::vector<std::string> nodes = admission.places_->kept_nodes(id);
    what += fmt::format("{}what becomes free on node{} {}{}", lacks_quota ? ", and " : "", nodes.size() == 1 ? "" : "s",
                        fmt::join(nodes, ", "), lacks_quota ? "," : "");
  }
  std::string out =
      fmt::format("It {}: {} {} kept for it", since_when(), what, lacks_quota && room.in_nodes ? "are" : "is");
  if (room.free_by > admission.now_ && room.free_by < Time{INT64_MAX}) {
    out += fmt::format("; by what {}, that is enough by {}",
                       lacks_quota ? "those declare who have it now" : "runs there declares",
                       time_text(room.free_by, admission.options_.created_ahead));
    std::vector<std::string> unless;
    if (room.may_lose || may_be_passed(id, room)) unless.emplace_back("who comes before it takes it");
    if (room.borrowing > 0 || room.lent_now) unless.emplace_back("who lends it quota wants that back");
    else if (room.hedged) unless.emplace_back("who comes before it has to wait for what is lent to it");
    const auto queue = admission.queues_.find(room.cluster_queue);
    if (queue != admission.queues_.end() && !queue->second.user_limits.empty() &&
        !admission.record(id).status.workload.user.empty())
      unless.emplace_back("other work of its user comes to what he may have of the queue");
    const model::Workload& workload = admission.record(id).status.workload;
    if (admission.spending_.has({"", room.cluster_queue}) ||
        admission.spending_.has({workload.namespace_name, workload.queue}))
      unless.emplace_back("the budget of its queue is spent before");
    if (queue != admission.queues_.end() && queue->second.usage_based)
      unless.emplace_back("another LocalQueue comes first that has used less by then");
    if (!unless.empty()) out += fmt::format(" unless {}", fmt::join(unless, ", or "));
  }
  return out + ".";
}

void Admission::Keeper::tell(WorkloadId id) const {
  const auto kept = admission.kept_.rooms.find(id);
  if (kept == admission.kept_.rooms.end()) return;
  Record& record = admission.record(id);
  record.kept_for_it = kept_text(id, kept->second);
  record.status.message = with_kept(record.status.message, record);
}

void Admission::Keeper::tell_anew(WorkloadId id, KeptRoom& room) const {
  Record& record = admission.record(id);
  std::string& message = record.status.message;
  if (record.kept_for_it.empty() || !message.ends_with(record.kept_for_it)) return;
  message.resize(message.size() - record.kept_for_it.size());
  if (message.ends_with(' ')) message.pop_back();
  record.kept_for_it = kept_text(id, room);
  message = with_kept(message, record);
}

}  // namespace berth::quota
