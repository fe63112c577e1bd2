// A cycle: heads are nominated, those that fit are admitted, others are evicted for those that need room.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <tuple>

#include "quota/admission_keeper.h"
#include "quota/fair_turns.h"

namespace berth::quota {
namespace {

// What a blocked head may keep others from taking in this cycle: its quota, or as much as it may borrow.
Amounts reservation(const QuotaTree& tree, QuotaNode queue, const Assignment& assignment) {
  Amounts kept;
  for (const auto& [fr, asked] : assignment.usage) {
    const model::ResourceQuota& quota = tree.quota(queue, fr);
    int64_t amount = asked;
    if (assignment.borrowing == 0)
      amount = std::max<int64_t>(0, std::min(asked, quota.nominal - tree.usage(queue, fr)));
    else if (quota.borrowing_limit)
      amount = std::min(asked, saturating_add(quota.nominal, *quota.borrowing_limit) - tree.usage(queue, fr));
    if (amount > 0) kept.emplace_back(fr, amount);
  }
  return kept;
}

// For the entry, until the end of the cycle.
void keep_quota(const Entry& entry, const Amounts& amounts, QuotaTree& tree, Kept& kept, Temporary& temporary) {
  tree.add_usage(entry.queue, amounts);
  kept.in_order.clear();
  temporary.push_back({entry.id, entry.queue, amounts});
  if (const auto room = kept.rooms.find(entry.id); room != kept.rooms.end()) room->second.held = amounts;
}

// Those without whose reservations the entry would have its quota: one of them where that would do, else the first
// ones.
std::vector<WorkloadId> who_keeps_quota(QuotaTree& tree, const Entry& entry, const Temporary& temporary) {
  const Amounts& asked = entry.assignment.usage;
  const auto concerns = [&](const Reservation& kept) {
    return tree.root(kept.queue) == tree.root(entry.queue) &&
           std::ranges::any_of(kept.amounts, [&](const auto& amount) {
             return std::ranges::any_of(asked, [&](const auto& each) { return each.first == amount.first; });
           });
  };
  Temporary all;
  std::ranges::copy_if(temporary, std::back_inserter(all), concerns);
  for (const Reservation& kept : all) {
    tree.remove_usage(kept.queue, kept.amounts);
    const bool would_do = tree.has_room(entry.queue, asked);
    tree.add_usage(kept.queue, kept.amounts);
    if (would_do) return {kept.id};
  }
  std::vector<WorkloadId> out;
  bool would_do = false;
  for (size_t i = 0; i < all.size() && !would_do; ++i) {
    tree.remove_usage(all[i].queue, all[i].amounts);
    out.push_back(all[i].id);
    would_do = tree.has_room(entry.queue, asked);
  }
  for (size_t i = 0; i < out.size(); ++i) tree.add_usage(all[i].queue, all[i].amounts);
  return would_do ? out : std::vector<WorkloadId>();
}

// The entry's victims, and those of others in whose room its places are, too: all of them are waited for.
std::vector<Victim> who_makes_way(Places& places, const PlaceRequest& request, const std::vector<Victim>& victims,
                                  const std::set<WorkloadId>& preempted) {
  std::vector<WorkloadId> own;
  for (const Victim& victim : victims) own.push_back(victim.id);
  std::vector<Victim> out = victims;
  if (preempted.size() == own.size() || places.fit(request, own)) return out;
  for (const WorkloadId id : places.in_the_way(request, {preempted.begin(), preempted.end()}))
    if (std::ranges::find(own, id) == own.end()) out.push_back({id, VictimReason::kInCohortReclamation});
  return out;
}

std::string kept_for(std::span<const WorkloadStatus* const> all) {
  constexpr size_t kNamedMax = 3;
  std::vector<std::string> names;
  for (const WorkloadStatus* each : all.first(std::min(all.size(), kNamedMax)))
    names.push_back(fmt::format("Workload {}, which comes first in ClusterQueue {}", each->workload.full_name(),
                                each->cluster_queue));
  std::string out = fmt::format("quota is kept for {}", fmt::join(names, ", and for "));
  if (all.size() > kNamedMax) out += fmt::format(", and for {} more", all.size() - kNamedMax);
  return out;
}

// What the message of one says that waits for others to leave; the first words are Kueue's.
std::string pending_preemption(const std::vector<std::string>& leaving) {
  constexpr size_t kNamedMax = 3;
  const std::span<const std::string> named(leaving.data(), std::min(leaving.size(), kNamedMax));
  return fmt::format("Pending the preemption of {} workload(s): {}{}.", leaving.size(), fmt::join(named, ", "),
                     leaving.size() > kNamedMax ? ", …" : "");
}

// Why the entry was not admitted; `passed_by`: those of Entry::passed_by.
void tell_why(const Entry& entry, const Assignment& found, std::span<const WorkloadStatus* const> passed_by,
              WorkloadStatus& status) {
  if (entry.waits_for_pods) {
    status.reason = "WaitingForPodsReady";
    status.message = "waiting for all admitted workloads to be in PodsReady condition";
  } else if (entry.gives_way) {
    status.reason = "WaitingForPlace";
    status.message = "gives way until it is known which GPUs are to be cut for those before it";
  } else if (entry.passed_over) {
    status.reason = entry.assignment.user_limit.empty() ? "WaitingForQuota" : "UserLimit";
    status.message = "Workload no longer fits after processing another workload";
    if (!passed_by.empty()) status.message += ": " + kept_for(passed_by);
  } else if (!entry.assignment.user_limit.empty()) {
    status.reason = "UserLimit";
    status.message = entry.assignment.user_limit;
  } else if (!found.no_place.empty()) {
    status.reason = entry.held_up ? "WaitingForQuota" : "WaitingForPlace";
    status.message = found.no_place;
  } else {
    status.reason = found.waits_for_quota ? "WaitingForQuota"
                    : entry.preempts      ? "WaitingForPlace"  // of those who leave
                    : found.exceeds_quota ? "ExceedsMaxQuota"
                                          : "NoMatchingFlavor";
    status.message = found.message();
  }
}

}  // namespace

void Admission::process(Entry& entry, SoFar& cycle, std::vector<AdmissionDecision>& decisions) {
  QuotaTree& tree = ledger_->tree();
  if (entry.assignment.outcome == Outcome::kNoFit) return;
  if (entry.assignment.outcome == Outcome::kPreempt && entry.victims.empty()) {
    if (entry.held_up) return;
    // What no node could have, whoever is there, keeps nobody from quota.
    const bool by_place = places_ != nullptr && !entry.assignment.no_place.empty() && !provisions(entry);
    if (by_place && places_->could_fit(place_of(entry)) == CouldFit::kNever) return;
    if (entry.spec->preemption.reclaim_within_cohort != model::PreemptionPolicy::kAny)
      keep_quota(entry, reservation(tree, entry.queue, entry.assignment), tree, kept_, cycle.temporary);
    return;
  }
  entry.passed_over = true;
  if (!Keeper{*this}.may_have(entry)) {  // when it was nominated it might: what is kept in this cycle makes it so
    for (const Reservation& kept : cycle.temporary)
      if (kept.id != entry.id && tree.root(kept.queue) == tree.root(entry.queue)) entry.passed_by.push_back(kept.id);
    return;
  }
  const auto is_taken = [&](const Victim& v) { return cycle.preempted.contains(v.id) && !leaving(record(v.id)); };
  if (std::ranges::any_of(entry.victims, is_taken)) return;
  // Who has to make room counts with all that others make in this cycle, and who waits for that with all that leave;
  // who is admitted now, with what is free now.
  std::set<WorkloadId> preempted_with = cycle.preempted;
  for (const Victim& victim : entry.victims) preempted_with.insert(victim.id);
  std::set<WorkloadId> gone = preempted_with;
  if (entry.anew) gone.insert(ledger_->leaving().begin(), ledger_->leaving().end());
  const bool waits_for_room = entry.assignment.outcome == Outcome::kPreempt;
  entry.waits_for_pods = !waits_for_room && waits_for_pods();
  if (entry.waits_for_pods) return;
  for (const WorkloadId id : gone)
    if (waits_for_room) ledger_->take_out(id);
  bool has_room = tree.has_room(entry.queue, entry.assignment.usage);
  if (!has_room) entry.passed_by = who_keeps_quota(tree, entry, cycle.temporary);
  for (const WorkloadId id : gone)
    if (waits_for_room) ledger_->put_back(id);
  if (has_room && places_ != nullptr && !waits_for_room && !provisions(entry) &&
      places_->gives_way(place_of(entry), want_place_)) {
    entry.gives_way = true;
    return;
  }
  if (has_room && places_ != nullptr) {
    // Of those whose places it may use some may have been promised theirs in this cycle.
    std::erase_if(entry.over, [&](WorkloadId id) { return !kept_.rooms.contains(id); });
    const std::vector<WorkloadId> leave(gone.begin(), gone.end());
    entry.placeless = !places_->hold(place_of(entry), waits_for_room ? leave : std::vector<WorkloadId>{});
    has_room = !entry.placeless || provisions(entry);
  }
  if (!has_room) return;
  entry.passed_over = false;
  cycle.preempted = std::move(preempted_with);
  if (entry.assignment.outcome == Outcome::kPreempt) {
    keep_quota(entry, entry.assignment.usage, tree, kept_, cycle.temporary);
    entry.preempts = true;
    Keeper{*this}.end_room(entry);                     // what becomes free is promised to it from now on
    if (!entry.anew) Keeper{*this}.note_taken(entry);  // else it waits on
    record(entry.id).promised = entry.assignment;
    record(entry.id).made_way = places_ == nullptr || entry.placeless
                                    ? entry.victims
                                    : who_makes_way(*places_, place_of(entry), entry.victims, gone);
    issue_preemptions(entry, decisions);
    return;
  }
  reserve(entry, decisions);
}

void Admission::issue_preemptions(Entry& entry, std::vector<AdmissionDecision>& decisions) {
  Record& preemptor = record(entry.id);
  for (const Victim& victim : entry.victims) {
    Record& taken = record(victim.id);
    if (leaving(taken)) continue;
    taken.evicted_in = epoch_;
    preemptor.taken_from.count(victim.id, epoch_);
    evict(victim.id, {"Preempted", "Preempted to accommodate a workload (UID: " + preemptor.status.workload.uid + ")"},
          decisions);
    AdmissionDecision& decision = decisions.back();
    decision.preemption = taken.status.preempted = to_string(victim.reason);
    decision.preemptor = entry.id;
    decision.preemptor_path = ledger_->tree().path(entry.queue);
    decision.preemptee_path = ledger_->tree().path(ledger_->holder(victim.id).queue);
  }
}

// Quota and place are the workload's; without checks it is admitted with that.
void Admission::reserve(Entry& entry, std::vector<AdmissionDecision>& decisions) {
  Record& record = this->record(entry.id);
  leave(entry.id);
  WorkloadStatus& status = record.status;
  status.phase = WorkloadPhase::kQuotaReserved;
  status.assignment = entry.assignment.pod_sets;
  Holder holder = holder_of(record);
  holder.usage = entry.assignment.usage;
  holder.reserved = now_;
  holder.won_in = record.key.behind_sticky ? 0 : epoch_;
  ledger_->reserve(std::move(holder));
  kept_.in_order.clear();
  record.standing = Standing::kHolding;
  record.key.behind_sticky = true;
  record.next_flavor.clear();
  record.taken_from = {};
  record.kept_for_it.clear();
  status.reason.clear();
  status.message.clear();
  status.evicted.clear();
  status.preempted.clear();
  record.waits_since.reset();
  status.lent_room = entry.borrows_room;
  Keeper{*this}.end_room(entry);
  Keeper{*this}.note_admitted(entry);
  entry.admitted = true;
  record.placeless = entry.placeless;
  record.eviction.reset();
  status.requeue_at.reset();
  if (options_.pods_ready.enabled) not_ready_.insert(entry.id);
  sync_checks(record);
  admit_if_ready(record, decisions);
  if (status.phase == WorkloadPhase::kAdmitted) return;
  AdmissionDecision& decision = decisions.emplace_back();
  decision.kind = AdmissionDecision::Kind::kReserve;
  decision.workload = entry.id;
  decision.cluster_queue = entry.spec->name;
  decision.assignment = entry.assignment.pod_sets;
}

// Where a head that was not admitted waits. True: another cycle may find something else for it.
bool Admission::requeue(Entry& entry) {
  Record& record = this->record(entry.id);
  WorkloadStatus& status = record.status;
  want_place_.erase(entry.id);
  record.options.reset();
  if (entry.waits_for_pods || entry.gives_way) {  // with the flavors that it has found, if nobody takes them
    tell_why(entry, entry.assignment, {}, status);
    record.next_flavor.clear();
    if (!record.key.behind_sticky) record.promised = entry.assignment;  // what was made room for stays kept
    return false;
  }
  const Assignment& found = entry.anew ? *entry.anew : entry.assignment;
  std::vector<const WorkloadStatus*> passed_by;
  for (const WorkloadId id : entry.passed_by) passed_by.push_back(&this->record(id).status);
  tell_why(entry, found, passed_by, status);
  record.kept_for_it.clear();
  const bool of_user = !entry.assignment.user_limit.empty();
  const bool has_room_kept = kept_.rooms.contains(entry.id);
  const auto leaves = [&](const Victim& v) { return ledger_->find(v.id) != nullptr && leaving(this->record(v.id)); };
  const bool waits_on = entry.passed_over && entry.promise && std::ranges::any_of(entry.made_way, leaves);
  const auto tell_who_leaves = [&] {
    std::vector<std::string> names;
    for (const Victim& victim : record.made_way)
      if (leaves(victim)) names.push_back(this->record(victim.id).status.workload.full_name());
    record.kept_for_it = names.empty() ? "" : pending_preemption(names);
    status.message = with_kept(status.message, record);
  };
  if (!entry.preempts && !waits_on && !has_room_kept) release_places(entry.id);
  const bool is_anothers = !entry.passed_by.empty() || (entry.passed_over && entry.held_up);  // its quota
  if (is_anothers && !waits_on) Keeper{*this}.leave_nodes(entry.id);
  record.lacks_quota = found.no_place.empty() && !of_user && !entry.passed_over;
  if (waits_on) {  // what would do now was another's turn: it waits for those who leave, as it did
    record.promised = std::move(entry.promise);
    record.made_way = std::move(entry.made_way);
    tell_who_leaves();
    return false;
  }
  if (entry.preempts) {
    record.next_flavor.clear();
    if (record.key.behind_sticky) make_sticky(entry.id);
    tell_who_leaves();
    return false;  // until they have gone
  }
  const int left = tries_max(*entry.spec, record.status.workload) - record.tries;
  const bool goes_on = !record.next_flavor.empty() && left > 0;
  if (goes_on || (!entry.resume.empty() && !entry.passed_over && left >= 0)) {
    if (!goes_on) record.next_flavor.clear();  // what it lacks in the flavors before is found out anew
    ++record.tries;
    return true;
  }
  // What one user may not have keeps nobody else waiting.
  const bool stays_head = entry.spec->strategy == model::QueueingStrategy::kStrictFifo && !of_user;
  if (entry.passed_over && (!entry.waits_aside || stays_head || !record.key.behind_sticky)) return false;
  record.next_flavor.clear();
  if (entry.waits_aside) {
    kept_.aside.ids.insert(entry.id);
    Keeper{*this}.put_off(record);
  }
  if (!stays_head) park(entry.id);
  if (!entry.assignment.no_place.empty() || !entry.options.empty()) want_place_.insert(entry.id);
  if (!entry.options.empty()) record.options = std::make_shared<const std::vector<PlaceOption>>(entry.options);
  if (!stays_head) park_alike(record);
  if (has_room_kept) Keeper{*this}.tell(entry.id);
  return !stays_head;
}

// In a cycle those come first for whom others have been evicted, with what they were promised; one that has found
// something else meanwhile, after the others of them.
int Admission::round_of(const Entry& entry) const {
  return record(entry.id).key.behind_sticky ? 2 : entry.waits ? 1 : 0;
}

bool Admission::run_cycle(Time now, std::vector<AdmissionDecision>& decisions) {
  now_ = now;
  rebuild(decisions);
  Keeper{*this}.begin_cycle();
  std::vector<Entry> entries = heads();
  bool changes = false;
  for (Entry& entry : entries) {
    if (nominate(entry)) continue;
    hold_back(entry.id, "Misconfigured", "workload namespace doesn't match ClusterQueue selector");
    entry.id = {};
    changes = true;
  }
  std::erase_if(entries, [](const Entry& entry) { return !entry.id.valid(); });
  for (const Entry& entry : entries)  // others are to see them in this cycle
    if (entry.assignment.outcome != Outcome::kFit && entry.victims.empty() && !entry.options.empty())
      want_place_.insert(entry.id);
  if (!options_.fair)
    std::ranges::sort(entries, [&](const Entry& a, const Entry& b) {
      const OrderKey &x = record(a.id).key, &y = record(b.id).key;
      const int first = round_of(a), second = round_of(b);
      return std::tie(first, a.assignment.borrowing, x.less_important, x.since, x.uid) <
             std::tie(second, b.assignment.borrowing, y.less_important, y.since, y.uid);
    });
  Keeper keeper{*this};
  for (Entry& entry : entries) keeper.consider(entry);
  SoFar cycle;
  std::vector<FairTurns::Claim> claims;
  for (const Entry& entry : entries)
    if (options_.fair) claims.push_back({entry.queue, &entry.assignment.usage, &record(entry.id).key, round_of(entry)});
  FairTurns turns(ledger_->tree(), std::move(claims));
  for (size_t turn = 0; turn < entries.size(); ++turn) {
    const size_t i = options_.fair ? turns.next() : turn;
    process(entries[i], cycle, decisions);
    // What would do now is another's: it waits on for what was promised.
    if (entries[i].passed_over && entries[i].waits)
      keep_quota(entries[i], entries[i].promise->usage, ledger_->tree(), kept_, cycle.temporary);
  }
  for (const Reservation& kept : cycle.temporary) ledger_->tree().remove_usage(kept.queue, kept.amounts);
  for (auto& [id, room] : kept_.rooms) room.held.clear();
  std::set<WorkloadId> wait_on;  // as they do
  for (Entry& entry : entries) {
    if (entry.admitted || (entry.passed_over && !entry.waits)) continue;
    if (requeue(entry)) changes = true;
    else wait_on.insert(entry.id);
  }
  const auto waits_on = [&](WorkloadId id) { return wait_on.contains(id); };
  for (Entry& entry : entries) {
    if (entry.admitted || !entry.passed_over || entry.waits) continue;
    entry.waits_aside = !entry.passed_by.empty() && std::ranges::all_of(entry.passed_by, waits_on);
    if (requeue(entry) || keeper.has_kept) changes = true;
    if (!decisions.empty()) record(entry.id).tries = 0;
  }
  keeper.look_again();
  for (const WorkloadId id : keeper.have_another_turn) {
    if (!waits(record(id).standing)) continue;
    enqueue(id);
    changes = true;
  }
  std::erase_if(cycle.temporary, [&](const Reservation& kept) { return !waits_on(kept.id); });
  if (keeper.note_reserved(std::move(cycle.temporary), !decisions.empty())) changes = true;
  return changes || !decisions.empty();
}

}  // namespace berth::quota
