// What a head would get: flavors, places, and who has to go for it. The first half of a cycle.
#include <algorithm>
#include <utility>

#include "quota/admission_keeper.h"
#include "quota/alike.h"

namespace berth::quota {

// Finds flavors, and who has to go. False: its namespace is not one of the queue's.
bool Admission::nominate(Entry& entry) {
  Record& record = this->record(entry.id);
  const auto labels = namespaces_.find(record.status.workload.namespace_name);
  if (!entry.spec->namespaces.matches(labels == namespaces_.end() ? model::Labels{} : labels->second)) return false;
  entry.promise = std::exchange(record.promised, std::nullopt);
  entry.made_way = std::exchange(record.made_way, {});
  if (entry.promise && keep_promise(entry, *entry.promise, {})) return true;
  Entry waits = entry;
  entry.waits = entry.promise && keep_promise(waits, *entry.promise, entry.made_way);
  try_assignment(entry, {});
  record.next_flavor = entry.assignment.next_flavor;
  if (entry.assignment.outcome == Outcome::kFit) return true;
  if (entry.waits) {
    if (entry.assignment.exceeds_quota) {  // others leave for fewer pods
      std::vector<int32_t> fewer;
      for (const PodSetAssignment& set : entry.promise->pod_sets) fewer.push_back(set.count);
      try_assignment(entry, fewer);
      if (entry.assignment.outcome == Outcome::kFit) return true;
    }
    waits.anew = std::move(entry.assignment);
    entry = std::move(waits);
    return true;
  }
  if (!entry.victims.empty()) return true;
  Entry fewer = entry;
  if (consider_fewer_pods(fewer)) {
    entry = std::move(fewer);
    return true;
  }
  entry.options = std::move(fewer.options);
  const bool fewer_wait = fewer.assignment.waits_for_quota || !fewer.assignment.no_place.empty();
  const bool of_user = !entry.assignment.user_limit.empty() && fewer.assignment.user_limit.empty() && fewer_wait;
  if (!entry.assignment.exceeds_quota && !of_user) return true;  // else so many never, but as few as will do
  entry.assignment.user_limit = fewer.assignment.user_limit;
  entry.held_up = fewer.held_up;
  if (fewer_wait) entry.anew = std::move(fewer.assignment);
  return true;
}

// What each would get were it its turn now, of at most so many that are not alike.
std::vector<WantsPlace> Admission::wanting_from(WorkloadId head, size_t looks) {
  std::vector<WantsPlace> out;
  const std::string& queue = record(head).status.cluster_queue;
  const auto spec = queues_.find(queue);
  const auto waiting = waiting_.find(queue);
  if (spec == queues_.end() || waiting == waiting_.end()) return out;
  const std::set<OrderKey>& pending = waiting->second.pending;
  for (auto at = pending.find(record(head).key); at != pending.end(); ++at) {
    Record& next = record(at->id);
    if (next.promised) continue;  // others have left for it
    if (!out.empty() && alike(record(out.back().id).status.workload, next.status.workload)) {
      out.push_back({at->id, out.back().options});
      continue;
    }
    if (looks-- == 0) break;
    Entry entry{at->id, ledger_->tree().queue(queue), &spec->second, next.next_flavor, {}, {}, {}};
    const NextFlavors flavors = next.next_flavor;
    const bool may = nominate(entry);
    next.next_flavor = flavors;
    const bool fits = entry.assignment.outcome == Outcome::kFit;
    if (fits) entry.options = {{entry.assignment.pod_sets, entry.assignment.borrowing}};
    if (may && (fits || entry.victims.empty()) && !entry.options.empty())
      out.push_back({at->id, std::make_shared<const std::vector<PlaceOption>>(entry.options)});
    if (spec->second.strategy == model::QueueingStrategy::kStrictFifo) break;
  }
  return out;
}

// Others were told to go for an assignment. Where it fits now, it is the one, although flavors tried anew in their
// order might now come to another, for which others would have to go. And where it will once the last of them have gone
// (that is asked with `made_way`), what has become free stays kept until then, whether or not they could be told to go
// now.
bool Admission::keep_promise(Entry& entry, const Assignment& promised, const std::vector<Victim>& made_way) {
  entry.victims.clear();
  for (const Victim& victim : made_way)
    if (ledger_->find(victim.id) != nullptr && leaving(record(victim.id))) entry.victims.push_back(victim);
  if (entry.victims.empty() != made_way.empty()) return false;
  std::vector<WorkloadId> gone;  // beside others who wait for theirs, all that leave
  if (!made_way.empty()) gone.assign(ledger_->leaving().begin(), ledger_->leaving().end());
  for (const WorkloadId id : gone) ledger_->take_out(id);
  const bool has_quota = ledger_->tree().has_room(entry.queue, promised.usage);
  for (const WorkloadId id : gone) ledger_->put_back(id);
  if (!has_quota) return false;
  entry.assignment = promised;
  entry.assignment.outcome = gone.empty() ? Outcome::kFit : Outcome::kPreempt;
  if (exceeds_user_limit(entry)) return false;
  return gone.empty() ? Keeper{*this}.has_place(entry, nullptr) : Keeper{*this}.has_place_without(entry, gone);
}

PlaceRequest Admission::place_of(const Entry& entry) const {
  return {entry.id, &record(entry.id).status.workload, &entry.assignment.pod_sets, &flavors_, &entry.over};
}

// The flavors that come first by quota, and who has to go for them. False: quota would do, or others could be made to
// give it, but no node has a place with these flavors.
bool Admission::try_flavors(Entry& entry, const std::vector<int32_t>& counts, const PassedFlavors& without) {
  const Record& record = this->record(entry.id);
  const Preemption preemption(*ledger_, options_.fair, places_, now_);
  const uint64_t spares = record.spares_winners_of(epoch_);
  const FlavorRequest request{claimant(record), &record.status.workload, entry.spec, counts,
                              spares,           &entry.resume,           &without};
  Assignment& assignment = entry.assignment;
  assignment = assign_flavors(*ledger_, preemption, flavors_, request);
  entry.victims.clear();
  entry.borrows_room = entry.held_up = false;
  if (assignment.outcome == Outcome::kNoFit || exceeds_user_limit(entry)) return true;
  const bool quota_fits = assignment.outcome == Outcome::kFit;
  Places* const places = provisions(entry) ? nullptr : places_;
  if (quota_fits && !Keeper{*this}.may_have(entry)) {
    assignment.outcome = Outcome::kPreempt;
    return false;
  }
  if (quota_fits && Keeper{*this}.has_place(entry, &assignment.no_place)) return true;
  if (quota_fits) entry.options.push_back({assignment.pod_sets, assignment.borrowing});
  if (entry.waits) {
    assignment.outcome = Outcome::kPreempt;
    return !quota_fits;
  }
  PreemptionRequest preempts{
      request.claimant, entry.spec, quota_fits ? assignment.taken() : assignment.scarce(ledger_->tree()),
      assignment.usage, spares,     places,
      place_of(entry)};
  assignment.outcome = Outcome::kPreempt;
  entry.victims = preemption.victims(preempts);
  if (places != nullptr && entry.victims.empty()) {
    entry.over = Keeper{*this}.places_behind(entry);
    if (!entry.over.empty()) entry.victims = preemption.victims(preempts);
    if (entry.victims.empty()) entry.over.clear();
  }
  const auto is_in_vain = [&](const Victim& victim) {
    return record.taken_from.too_often(victim.id, epoch_) && !leaving(this->record(victim.id));
  };
  const bool in_vain = std::ranges::any_of(entry.victims, is_in_vain);
  if (!entry.victims.empty() && (in_vain || !Keeper{*this}.may_have(entry))) {
    entry.victims.clear();
    return false;
  }
  if (quota_fits || places == nullptr || !entry.victims.empty()) return !quota_fits;
  preempts.places = nullptr;
  if (preemption.victims(preempts).empty()) return true;
  places->fit(place_of(entry), {}, &assignment.no_place);
  entry.options.push_back({assignment.pod_sets, assignment.borrowing, true});
  return false;
}

// Where nodes speak against the first flavors, others are tried, as long as they are not worse by quota than making
// room; else room is made with the first that allow it.
void Admission::try_assignment(Entry& entry, const std::vector<int32_t>& counts) {
  PassedFlavors without;
  if (try_flavors(entry, counts, without)) return;
  Entry next = entry;
  std::string why = entry.assignment.no_place;
  for (int tries = tries_max(*entry.spec, record(entry.id).status.workload); tries > 0; --tries) {
    const bool settled = (entry.waits || !entry.victims.empty()) && !entry.spec->fungibility.try_next_before_preempting;
    if (settled || !pass_over(next.assignment, *entry.spec, without)) break;
    const bool by_quota = try_flavors(next, counts, without);
    if (by_quota && next.assignment.outcome == Outcome::kFit) {
      entry = std::move(next);
      return;
    }
    const std::string told = next.assignment.no_place.empty() ? next.assignment.message() : next.assignment.no_place;
    if (entry.victims.empty() && !next.victims.empty()) entry = next;
    if (told.empty() || why.ends_with(told)) continue;
    if (why.ends_with('.')) why.pop_back();
    why += "; " + told;
  }
  entry.options = std::move(next.options);
  entry.assignment.no_place = std::move(why);
  entry.assignment.next_flavor.clear();
}

// Partial admission: the most pods that fit, all sets reduced by about the same part of what they can spare, and to
// whole slices.
bool Admission::consider_fewer_pods(Entry& entry) {
  const std::vector<model::PodSet>& sets = record(entry.id).status.workload.pod_sets;
  const auto can_spare = [](const model::PodSet& set) { return int64_t{set.needed()} - set.fewest(); };
  int64_t spare = 0;
  for (const model::PodSet& set : sets) spare += can_spare(set);
  const auto fits_without = [&](int64_t given_up) {
    std::vector<int32_t> counts;
    for (const model::PodSet& set : sets) {
      const int32_t count = set.needed() - static_cast<int32_t>(can_spare(set) * given_up / spare);
      const int32_t whole = count == set.needed() ? count : count / set.slice_size() * set.slice_size();
      counts.push_back(std::max(whole, set.fewest()));
    }
    try_assignment(entry, counts);
    return entry.assignment.outcome == Outcome::kFit || !entry.victims.empty();
  };
  if (spare <= 0 || !fits_without(spare)) return false;
  int64_t too_few = 0, enough = spare;
  while (too_few + 1 < enough) {
    const int64_t middle = (too_few + enough) / 2;
    (fits_without(middle) ? enough : too_few) = middle;
  }
  return fits_without(enough);
}

}  // namespace berth::quota
