#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "quota/preemption.h"

namespace berth::quota {
namespace {

using model::PreemptionPolicy;

// Which queue gives next: from the root down along the largest shares, among what has candidates left.
class Tournament {
 public:
  Tournament(const Ledger& ledger, const PreemptionRequest& request, const std::vector<WorkloadId>& candidates)
      : ledger_(ledger), tree_(ledger.tree()), request_(request), preemptor_(request.preemptor.queue) {
    for (const WorkloadId id : candidates) left_[ledger.holder(id).queue].push_back(id);
    for (QuotaNode node = tree_.parent(preemptor_); node.valid(); node = tree_.parent(node)) above_.insert(node);
  }

  // Invalid: nobody has a candidate left.
  QuotaNode next() {
    if (!tree_.has_parent(preemptor_)) return has_candidates(preemptor_) ? preemptor_ : QuotaNode{};
    const QuotaNode root = tree_.root(preemptor_);
    while (!pruned_.contains(root))
      if (const QuotaNode queue = descend(root); queue.valid()) return queue;
    return {};
  }

  bool has_candidates(QuotaNode queue) const {
    const auto found = left_.find(queue);
    return found != left_.end() && !found->second.empty();
  }
  WorkloadId pop(QuotaNode queue) {
    std::deque<WorkloadId>& left = left_[queue];
    const WorkloadId id = left.front();
    left.pop_front();
    return id;
  }
  void drop(QuotaNode queue) { pruned_.insert(queue); }

 private:
  struct Best {
    QuotaNode node;
    FairShare share;
  };

  QuotaNode descend(QuotaNode cohort) {
    Best queue, below;
    for (const QuotaNode child : tree_.children(cohort)) {
      if (pruned_.contains(child)) continue;
      const FairShare share = tree_.share(child);
      if (tree_.is_queue(child)) consider_queue(child, share, queue);
      else if (!share.borrows() && !above_.contains(child)) pruned_.insert(child);
      else if (!below.node.valid() || !(share < below.share)) below = {child, share};
    }
    if (below.node.valid() && (!queue.node.valid() || !(below.share < queue.share))) return descend(below.node);
    if (!queue.node.valid()) pruned_.insert(cohort);
    return queue.node;
  }

  void consider_queue(QuotaNode queue, const FairShare& share, Best& best) {
    if (!has_candidates(queue) || (!share.borrows() && queue != preemptor_)) {
      pruned_.insert(queue);
    } else if (!best.node.valid() || best.share < share ||
               (!(share < best.share) && first_goes_before(queue, best.node))) {
      best = {queue, share};
    }
  }

  bool first_goes_before(QuotaNode a, QuotaNode b) const {
    return tried_before(ledger_, request_, left_.at(a).front(), left_.at(b).front());
  }

  const Ledger& ledger_;
  const QuotaTree& tree_;
  const PreemptionRequest& request_;
  QuotaNode preemptor_;
  std::set<QuotaNode> above_, pruned_;
  std::map<QuotaNode, std::deque<WorkloadId>> left_;
};

class FairSearch {
 public:
  FairSearch(Ledger& ledger, const PreemptionRequest& request, const FairRules& rules)
      : ledger_(ledger), tree_(ledger.tree()), request_(request), rules_(rules), self_(request.preemptor.queue) {}

  std::vector<WorkloadId> candidates() const {
    const std::vector<WorkloadId> found = collect();
    std::vector<WorkloadId> out;
    for (const size_t at : order_of(ledger_, request_, found)) out.push_back(found[at]);
    return out;
  }

  std::vector<Victim> run() {
    const std::vector<WorkloadId> candidates = this->candidates();
    if (candidates.empty() || rules_.empty() || is_hopeless(request_, candidates)) return {};
    reclaims_ = within_nominal_with_request();
    tree_.add_usage(self_, request_.usage);  // shares are those with the workload
    const bool found = by_first_rule(candidates) || (rules_.size() > 1 && by_second_rule());
    tree_.remove_usage(self_, request_.usage);
    if (found) return fewest(ledger_, request_, std::move(victims_), true);
    for (const Victim& victim : victims_) ledger_.put_back(victim.id);
    return {};
  }

 private:
  std::vector<WorkloadId> collect() const {
    std::vector<WorkloadId> found;
    const model::QueuePreemption& policy = request_.queue->preemption;
    const auto take = [&](QuotaNode queue, PreemptionPolicy allowed) {
      for (const WorkloadId id : ledger_.holders(queue))
        if (is_candidate(ledger_, request_, allowed, ledger_.holder(id))) found.push_back(id);
    };
    take(self_, policy.within_queue);
    if (policy.reclaim_within_cohort == PreemptionPolicy::kNever) return found;
    for (const QuotaNode queue : tree_.queues_below(tree_.root(self_)))
      if (queue != self_ && !tree_.within_nominal(queue, request_.scarce)) take(queue, policy.reclaim_within_cohort);
    return found;
  }

  // With what it asks for of the scarce resources, the queue stays within what is its own: it may reclaim whatever the
  // shares.
  bool within_nominal_with_request() const {
    return std::ranges::all_of(request_.usage, [&](const auto& asked) {
      const bool scarce = std::ranges::find(request_.scarce, asked.first) != request_.scarce.end();
      return !scarce || !tree_.borrows_with(self_, asked.first, asked.second);
    });
  }

  bool by_first_rule(const std::vector<WorkloadId>& candidates) {
    Tournament tournament(ledger_, request_, candidates);
    for (QuotaNode queue = tournament.next(); queue.valid(); queue = tournament.next()) {
      if (queue == self_) {
        if (take(tournament.pop(queue), VictimReason::kInClusterQueue)) return true;
        continue;
      }
      while (tournament.has_candidates(queue)) {
        const WorkloadId id = tournament.pop(queue);
        if (reclaims_) {
          if (take(id, VictimReason::kInCohortReclamation)) return true;
          break;
        }
        if (!allows(rules_.front(), id)) {
          refused_.push_back(id);
          continue;
        }
        if (take(id, VictimReason::kInCohortFairSharing)) return true;
        break;  // the shares are others now: another queue may be next
      }
    }
    return false;
  }

  // One try for each queue.
  bool by_second_rule() {
    Tournament tournament(ledger_, request_, refused_);
    for (QuotaNode queue = tournament.next(); queue.valid(); queue = tournament.next()) {
      const WorkloadId id = tournament.pop(queue);
      if (allows(rules_[1], id) && take(id, VictimReason::kInCohortFairSharing)) return true;
      tournament.drop(queue);
    }
    return false;
  }

  bool allows(FairRule rule, WorkloadId victim) {
    const auto [mine, theirs] = below_common(ledger_.holder(victim).queue);
    const FairShare own = tree_.share(mine);
    if (rule == FairRule::kLessThanInitialShare) return own < tree_.share(theirs);
    ledger_.take_out(victim);
    const FairShare after = tree_.share(theirs);
    ledger_.put_back(victim);
    return !(after < own);
  }

  // The children of the lowest common node, on the way to the preemptor's queue and to the other.
  std::pair<QuotaNode, QuotaNode> below_common(QuotaNode other) const {
    for (QuotaNode mine = self_; tree_.has_parent(mine); mine = tree_.parent(mine))
      for (QuotaNode theirs = other; tree_.has_parent(theirs); theirs = tree_.parent(theirs))
        if (tree_.parent(mine) == tree_.parent(theirs)) return {mine, theirs};
    return {self_, other};
  }

  // True if the request fits then.
  bool take(WorkloadId id, VictimReason reason) {
    ledger_.take_out(id);
    victims_.push_back({id, reason});
    tree_.remove_usage(self_, request_.usage);
    const bool fits = request_fits(tree_, request_, victims_, true);
    tree_.add_usage(self_, request_.usage);
    return fits;
  }

  Ledger& ledger_;
  QuotaTree& tree_;
  const PreemptionRequest& request_;
  const FairRules& rules_;
  QuotaNode self_;
  bool reclaims_ = false;
  std::vector<Victim> victims_;
  std::vector<WorkloadId> refused_;
};

}  // namespace

std::vector<Victim> fair_victims(Ledger& ledger, const PreemptionRequest& request, const FairRules& rules) {
  return FairSearch(ledger, request, rules).run();
}

std::vector<WorkloadId> fair_candidates(Ledger& ledger, const PreemptionRequest& request, const FairRules& rules) {
  return FairSearch(ledger, request, rules).candidates();
}

}  // namespace berth::quota
