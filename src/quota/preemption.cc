#include "quota/preemption.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace berth::quota {
namespace {

using model::PreemptionPolicy;

constexpr int kPlaceTries = 8;

// Why a holder may be taken from, which decides while of what borrowing it may.
enum class Right : uint8_t { kOwnQueue, kHierarchy, kOnlyWithinNominal, kWhileBorrowing };

struct Candidate {
  WorkloadId id;
  Right right = Right::kOwnQueue;
  QuotaNode common;  // the lowest node above both queues
};

std::vector<WorkloadId> ids_of(const std::vector<Victim>& victims) {
  std::vector<WorkloadId> out;
  for (const Victim& victim : victims) out.push_back(victim.id);
  return out;
}

VictimReason reason_of(Right right) {
  switch (right) {
    case Right::kOwnQueue: return VictimReason::kInClusterQueue;
    case Right::kWhileBorrowing: return VictimReason::kInCohortReclaimWhileBorrowing;
    case Right::kHierarchy:
    case Right::kOnlyWithinNominal: break;
  }
  return VictimReason::kInCohortReclamation;
}

// One search by priority and borrowing. Candidates in other queues stand in two lists: below the lowest subtree that
// has quota for the request, where the preemptor has the better right, and outside of it.
class ClassicalSearch {
 public:
  ClassicalSearch(Ledger& ledger, const PreemptionRequest& request)
      : ledger_(ledger), tree_(ledger.tree()), request_(request) {
    collect_own_queue();
    collect_cohort();
  }

  std::vector<WorkloadId> candidates() {
    for (auto* list : {&hierarchy_, &others_, &own_}) sort(*list);
    std::vector<WorkloadId> out;
    for (const auto* list : {&hierarchy_, &others_, &own_})
      for (const Candidate& candidate : *list) out.push_back(candidate.id);
    return out;
  }

  std::vector<Victim> run() {
    const std::vector<bool> ways = attempts();
    if (std::ranges::none_of(ways, [&](bool borrowing) { return may_find(borrowing); })) return {};
    const std::vector<WorkloadId> all = candidates();
    if (all.empty() || is_hopeless(request_, all)) return {};
    for (const bool borrowing : ways)
      if (std::vector<Victim> found = attempt(borrowing); !found.empty()) return found;
    return {};
  }

 private:
  const model::QueuePreemption& policy() const { return request_.queue->preemption; }

  void sort(std::vector<Candidate>& list) const {
    std::vector<WorkloadId> ids;
    for (const Candidate& candidate : list) ids.push_back(candidate.id);
    std::vector<Candidate> sorted;
    for (const size_t at : order_of(ledger_, request_, ids)) sorted.push_back(list[at]);
    list = std::move(sorted);
  }

  Right right_over(const Holder& holder, bool hierarchy) const {
    if (hierarchy) return Right::kHierarchy;
    if (!policy().borrow_within_cohort) return Right::kOnlyWithinNominal;
    const bool too_important = holder.priority >= request_.preemptor.priority ||
                               (policy().borrow_threshold && holder.priority > *policy().borrow_threshold);
    return too_important ? Right::kOnlyWithinNominal : Right::kWhileBorrowing;
  }

  void collect_own_queue() {
    for (const WorkloadId id : ledger_.holders(request_.preemptor.queue)) {
      if (is_candidate(ledger_, request_, policy().within_queue, ledger_.holder(id)))
        own_.push_back({id, Right::kOwnQueue, request_.preemptor.queue});
    }
  }

  void collect_cohort() {
    if (policy().reclaim_within_cohort == PreemptionPolicy::kNever) return;
    Amounts rest = request_.usage;
    bool hierarchy = fits_in_quota(request_.preemptor.queue, rest);
    QuotaNode below = request_.preemptor.queue;
    for (QuotaNode top = tree_.parent(below); top.valid(); top = tree_.parent(top)) {
      collect_below(top, top, below, hierarchy);
      hierarchy = fits_in_quota(top, rest) || hierarchy;
      below = top;
    }
  }

  // Whether the node's own quota holds the rest of the request; that which it has not left is the rest of its parent.
  bool fits_in_quota(QuotaNode node, Amounts& rest) const {
    bool fits = true;
    for (auto& [fr, amount] : rest) {
      if (tree_.borrows_with(node, fr, amount)) fits = false;
      amount -= std::min(tree_.local_available(node, fr), amount);
    }
    return fits;
  }

  // Those below `node` that borrow, but for what is below `except`.
  void collect_below(QuotaNode node, QuotaNode common, QuotaNode except, bool hierarchy) {
    for (const QuotaNode child : tree_.children(node)) {
      if (child == except || tree_.within_nominal(child, request_.scarce)) continue;
      if (!tree_.is_queue(child)) {
        collect_below(child, common, except, hierarchy);
        continue;
      }
      for (const WorkloadId id : ledger_.holders(child)) {
        const Holder& holder = ledger_.holder(id);
        if (is_candidate(ledger_, request_, policy().reclaim_within_cohort, holder))
          (hierarchy ? hierarchy_ : others_).push_back({id, right_over(holder, hierarchy), common});
      }
    }
  }

  // Whether to try with borrowing, and in what order.
  std::vector<bool> attempts() const {
    const bool never_borrows = !policy().borrow_within_cohort;
    if ((hierarchy_.empty() && others_.empty()) || (never_borrows && !under_nominal())) return {true};
    if (never_borrows && hierarchy_.empty()) return {false, true};
    return {true, false};
  }

  bool under_nominal() const {
    return std::ranges::all_of(request_.scarce, [&](FlavorResource fr) {
      return tree_.usage(request_.preemptor.queue, fr) < tree_.quota(request_.preemptor.queue, fr).nominal;
    });
  }

  // Whether anybody would be tried.
  bool may_find(bool borrowing) const {
    const auto may_give = [&](const Candidate& each) { return !borrowing || each.right != Right::kOnlyWithinNominal; };
    return !own_.empty() || std::ranges::any_of(hierarchy_, may_give) || std::ranges::any_of(others_, may_give);
  }

  std::vector<Victim> attempt(bool borrowing) {
    std::vector<Victim> out;
    for (const bool evicted : {true, false})
      for (const auto* list : {&hierarchy_, &others_, &own_})
        for (const Candidate& candidate : *list) {
          const Holder& holder = ledger_.holder(candidate.id);
          if (holder.evicted != evicted || !valid(candidate, holder, borrowing)) continue;
          ledger_.take_out(candidate.id);
          out.push_back({candidate.id, reason_of(candidate.right)});
          if (request_fits(tree_, request_, out, borrowing))
            return fewest(ledger_, request_, std::move(out), borrowing);
        }
    for (const Victim& victim : out) ledger_.put_back(victim.id);
    return {};
  }

  // Another queue gives only while it and all above it, up to the common node, are beyond their own quota.
  bool valid(const Candidate& candidate, const Holder& holder, bool borrowing) const {
    if (candidate.right == Right::kOwnQueue) return true;
    if (borrowing && candidate.right == Right::kOnlyWithinNominal) return false;
    for (QuotaNode node = holder.queue; node != candidate.common; node = tree_.parent(node))
      if (tree_.within_nominal(node, request_.scarce)) return false;
    return true;
  }

  Ledger& ledger_;
  const QuotaTree& tree_;
  const PreemptionRequest& request_;
  std::vector<Candidate> hierarchy_, others_, own_;
};

}  // namespace

std::string_view to_string(VictimReason reason) {
  switch (reason) {
    case VictimReason::kInClusterQueue: return "InClusterQueue";
    case VictimReason::kInCohortReclamation: return "InCohortReclamation";
    case VictimReason::kInCohortFairSharing: return "InCohortFairSharing";
    case VictimReason::kInCohortReclaimWhileBorrowing: return "InCohortReclaimWhileBorrowing";
    case VictimReason::kPastRuntimeEstimate: return "PastRuntimeEstimate";
  }
  return "";
}

bool permits(PreemptionPolicy policy, const Claimant& preemptor, const Claimant& candidate) {
  switch (policy) {
    case PreemptionPolicy::kNever: return false;
    case PreemptionPolicy::kAny: return true;
    case PreemptionPolicy::kLowerPriority: return candidate.priority < preemptor.priority;
    case PreemptionPolicy::kLowerOrNewerEqualPriority:
      return candidate.priority < preemptor.priority ||
             (candidate.priority == preemptor.priority && preemptor.created < candidate.created);
  }
  return false;
}

Int128 lost_work(const Holder& holder, const model::VictimTerms& terms, Time now) {
  if (!holder.began || *holder.began >= now) return 0;
  const model::Checkpoints& saved = holder.checkpoints;
  Duration lost = now - *holder.began;
  if (saved.last) lost = now - std::clamp(*saved.last, *holder.began, now);
  else if (saved.interval && saved.interval->nanos > 0) lost = Duration{lost.nanos % saved.interval->nanos};
  const int64_t counts = std::min(lost, terms.loss_max).nanos / Duration::millis(1).nanos;
  return Int128{counts} * (holder.gpu_micros > 0 ? holder.gpu_micros : model::kWholeGpu);
}

namespace {

using VictimKey = std::tuple<bool, bool, bool, Int128, int32_t, int64_t, int64_t, std::string_view>;

VictimKey key_of(const Ledger& ledger, const PreemptionRequest& request, const Holder& h) {
  const bool over_budget = request.keeper != nullptr && request.keeper->may_leave(h.id) == Leave::kOverBudget;
  const Int128 loss = lost_work(h, ledger.terms(h.queue), request.now);
  return {!h.evicted,  h.queue == request.preemptor.queue,
          over_budget, request.queue->victims.least_loss_first ? loss : 0,
          h.priority,  -h.reserved.nanos,
          loss,        std::string_view(h.uid)};
}

}  // namespace

bool tried_before(const Ledger& ledger, const PreemptionRequest& request, WorkloadId a, WorkloadId b) {
  return key_of(ledger, request, ledger.holder(a)) < key_of(ledger, request, ledger.holder(b));
}

bool request_fits(const QuotaTree& tree, const PreemptionRequest& request, const std::vector<Victim>& gone,
                  bool borrowing) {
  const bool quota = std::ranges::all_of(request.usage, [&](const auto& asked) {
    const auto& [fr, amount] = asked;
    if (!borrowing && tree.borrows_with(request.preemptor.queue, fr, amount)) return false;
    return amount <= tree.available(request.preemptor.queue, fr);
  });
  return quota && (request.places == nullptr || request.places->fit(request.place, ids_of(gone)));
}

std::vector<size_t> order_of(const Ledger& ledger, const PreemptionRequest& request,
                             const std::vector<WorkloadId>& candidates) {
  const auto is_first = [&](size_t at) {
    return request.in_the_way != nullptr &&
           std::ranges::find(*request.in_the_way, candidates[at]) != request.in_the_way->end();
  };
  std::vector<std::pair<VictimKey, size_t>> keyed;
  for (size_t at = 0; at < candidates.size(); ++at)
    if (!request.only_in_the_way || is_first(at))
      keyed.emplace_back(key_of(ledger, request, ledger.holder(candidates[at])), at);
  std::ranges::sort(keyed);
  std::vector<size_t> out(keyed.size());
  std::ranges::transform(keyed, out.begin(), &std::pair<VictimKey, size_t>::second);
  if (request.in_the_way != nullptr) std::stable_partition(out.begin(), out.end(), is_first);
  return out;
}

bool is_hopeless(const PreemptionRequest& request, const std::vector<WorkloadId>& candidates) {
  return request.places != nullptr && !request.places->fit(request.place, candidates);
}

bool is_candidate(const Ledger& ledger, const PreemptionRequest& request, PreemptionPolicy policy,
                  const Holder& holder) {
  const bool spared = request.spares_winners_of != 0 && holder.won_in == request.spares_winners_of;
  if (spared || !permits(policy, request.preemptor, holder)) return false;
  const bool has_some = std::ranges::any_of(holder.usage, [&](const auto& used) {
    return used.second > 0 && std::ranges::find(request.scarce, used.first) != request.scarce.end();
  });
  if (!has_some || holder.evicted) return has_some;
  const Duration least = ledger.terms(holder.queue).min_runtime;
  if (least > Duration{} && holder.began && *holder.began + least > request.now) return false;
  return request.keeper == nullptr || request.keeper->may_leave(holder.id) != Leave::kNever;
}

std::vector<Victim> fewest(Ledger& ledger, const PreemptionRequest& request, std::vector<Victim> victims,
                           bool borrowing) {
  for (size_t i = victims.size() - 1; i-- > 0;) {
    ledger.put_back(victims[i].id);
    const Victim spared = std::exchange(victims[i], victims.back());
    victims.pop_back();
    if (request_fits(ledger.tree(), request, victims, borrowing)) continue;
    ledger.take_out(spared.id);
    victims.push_back(std::exchange(victims[i], spared));
  }
  for (const Victim& victim : victims) ledger.put_back(victim.id);
  return victims;
}

std::vector<Victim> classical_victims(Ledger& ledger, const PreemptionRequest& request) {
  return ClassicalSearch(ledger, request).run();
}

std::vector<WorkloadId> classical_candidates(Ledger& ledger, const PreemptionRequest& request) {
  return ClassicalSearch(ledger, request).candidates();
}

std::vector<Victim> Preemption::search(const PreemptionRequest& request) const {
  return *fair_ ? fair_victims(*ledger_, request, **fair_) : classical_victims(*ledger_, request);
}

const std::vector<Victim>& Preemption::by_quota(const PreemptionRequest& request) const {
  const auto same = [&](const PreemptionRequest& last) {
    return last.preemptor.id == request.preemptor.id && last.spares_winners_of == request.spares_winners_of &&
           last.scarce == request.scarce && last.usage == request.usage;
  };
  if (!last_ || !same(last_->first)) last_.emplace(request, search(request));
  return last_->second;
}

std::vector<Victim> Preemption::victims(PreemptionRequest request) const {
  request.keeper = keeper_;
  request.now = now_;
  Places* const places = std::exchange(request.places, nullptr);
  std::vector<Victim> found = by_quota(request);
  if (found.empty() || places == nullptr) return found;  // quota speaks against it, or is all that is asked for
  if (places->fit(request.place, ids_of(found))) return found;
  request.places = places;
  found = search(request);
  return !found.empty() ? found : where_it_would_stand(std::move(request));
}

// In the order of candidates a queue may have given all that it borrowed before it is the turn of who stands where the
// request would. So the first of the order are taken whose leaving gives it a place, and of these those that are in its
// way; where quota does not let these be taken, the next that are in its way elsewhere, a few times.
std::vector<Victim> Preemption::where_it_would_stand(PreemptionRequest request) const {
  Places* const places = request.places;
  std::vector<WorkloadId> left =
      *fair_ ? fair_candidates(*ledger_, request, **fair_) : classical_candidates(*ledger_, request);
  for (int tries = 0; tries < kPlaceTries; ++tries) {
    size_t too_few = 0, enough = left.size();
    if (enough == 0 || !places->fit(request.place, left)) return {};
    while (too_few + 1 < enough) {
      const size_t middle = (too_few + enough) / 2;
      const std::vector<WorkloadId> first(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(middle));
      (places->fit(request.place, first) ? enough : too_few) = middle;
    }
    const std::vector<WorkloadId> gone(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(enough));
    const std::vector<WorkloadId> in_the_way = places->in_the_way(request.place, gone);
    if (in_the_way.empty()) return {};
    request.in_the_way = &in_the_way;
    for (const bool only : {true, false}) {
      request.only_in_the_way = only;
      if (std::vector<Victim> found = search(request); !found.empty()) return found;
    }
    std::erase_if(left, [&](WorkloadId id) { return std::ranges::find(in_the_way, id) != in_the_way.end(); });
  }
  return {};
}

}  // namespace berth::quota
