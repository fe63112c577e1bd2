// Preemption: whose quota a workload may take, and which of them it has to.
//
// Two ways, as in Kueue (https://kueue.sigs.k8s.io/docs/concepts/preemption/): by priority and by what queues borrow,
// or by fair shares. Both look for the fewest at the end of an order of candidates, leave the ledger as it was, and
// find nobody rather than too few.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "quota/ledger.h"
#include "quota/options.h"
#include "quota/places.h"

namespace berth::quota {

enum class VictimReason : uint8_t {
  kInClusterQueue,
  kInCohortReclamation,
  kInCohortFairSharing,
  kInCohortReclaimWhileBorrowing,
  kPastRuntimeEstimate,  // it was lent room for as long as it declared
};
// The reason of the condition Preempted: "InClusterQueue", …
std::string_view to_string(VictimReason reason);

struct Victim {
  WorkloadId id;
  VictimReason reason = VictimReason::kInClusterQueue;
};

struct PreemptionRequest {
  Claimant preemptor;
  const model::ClusterQueue* queue = nullptr;  // the preemptor's
  std::vector<FlavorResource> scarce;          // of what it needs more than is free
  Amounts usage;                               // all that it asks for
  uint64_t spares_winners_of = 0;              // whoever won in this epoch is not taken from; 0: all may be
  // Where its pods must have a place, too; null: quota is all that is asked for.
  Places* places = nullptr;
  PlaceRequest place = {};
  Places* keeper = nullptr;  // as Preemption's
  Time now = {};
  // Of those that may be taken from these come first, be they the last by the order, or are the only ones; null: none.
  const std::vector<WorkloadId>* in_the_way = nullptr;
  bool only_in_the_way = false;
};

class Preemption {
 public:
  // `fair`: the rules of fair sharing, in order; none: without it. `keeper` knows which workloads may not be evicted;
  // null: all may be. All must outlive it, and the ledger is the same at every call.
  Preemption(Ledger& ledger, const std::optional<FairRules>& fair, Places* keeper = nullptr, Time now = {})
      : ledger_(&ledger), fair_(&fair), keeper_(keeper), now_(now) {}

  // Those who must go so that the request fits; empty: it would not fit, whoever went that may be taken.
  // Where places are asked for and the order alone finds nobody, those come first who stand where the request would.
  std::vector<Victim> victims(PreemptionRequest request) const;
  bool is_fair() const { return fair_->has_value(); }

 private:
  std::vector<Victim> search(const PreemptionRequest& request) const;
  const std::vector<Victim>& by_quota(const PreemptionRequest& request) const;
  std::vector<Victim> where_it_would_stand(PreemptionRequest request) const;

  Ledger* ledger_;
  const std::optional<FairRules>* fair_;
  Places* keeper_;
  Time now_;
  // The last answer by quota alone: who chooses flavors asks what whoever makes room asks again.
  mutable std::optional<std::pair<PreemptionRequest, std::vector<Victim>>> last_;
};

// Whether `preemptor` may take from `candidate` by the policy.
bool permits(model::PreemptionPolicy policy, const Claimant& preemptor, const Claimant& candidate);
// The work that would be lost with the holder's quota: since its last checkpoint, if it declares any, else since it
// began, up to the most that counts. In milliseconds of millionths of GPUs; work without GPUs counts as with one.
Int128 lost_work(const Holder& holder, const model::VictimTerms& terms, Time now);
// The order in which candidates are tried: those on their way out, other queues, those under no exhausted budget, low
// priority, late reservations, least work lost; the latter before priority where the preemptor's queue says so.
bool tried_before(const Ledger& ledger, const PreemptionRequest& request, WorkloadId a, WorkloadId b);

// The two ways, and who may be taken from by each, in their order; used by Preemption.
std::vector<Victim> classical_victims(Ledger& ledger, const PreemptionRequest& request);
std::vector<WorkloadId> classical_candidates(Ledger& ledger, const PreemptionRequest& request);
std::vector<Victim> fair_victims(Ledger& ledger, const PreemptionRequest& request, const FairRules& rules);
std::vector<WorkloadId> fair_candidates(Ledger& ledger, const PreemptionRequest& request, const FairRules& rules);

// Shared by both. Whether the holder may be taken from by the policy, and has something of what is scarce.
bool is_candidate(const Ledger& ledger, const PreemptionRequest& request, model::PreemptionPolicy policy,
                  const Holder& holder);
// Whether the request fits now that `gone` are out of the ledger; without `borrowing`, within the queue's nominal
// quota.
bool request_fits(const QuotaTree& tree, const PreemptionRequest& request, const std::vector<Victim>& gone,
                  bool borrowing);
// Of the candidates, by their indices: the order in which they are tried, as far as the request wants them tried.
std::vector<size_t> order_of(const Ledger& ledger, const PreemptionRequest& request,
                             const std::vector<WorkloadId>& candidates);
// Whether nodes have no room for the request even if all of these had gone, so that nobody need be tried.
bool is_hopeless(const PreemptionRequest& request, const std::vector<WorkloadId>& candidates);
// Puts back, from the last but one on, whoever need not go after all. All victims are out of the ledger.
std::vector<Victim> fewest(Ledger& ledger, const PreemptionRequest& request, std::vector<Victim> victims,
                           bool borrowing);

}  // namespace berth::quota
