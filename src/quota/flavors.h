// FlavorAssigner: which flavor each pod set of a workload takes of each resource group, and how well that goes.
//
// The rules are Kueue's: flavors in the queue's order, resuming after those tried before; the worst resource decides
// about a flavor; which of several is preferred, and whether to look further, FlavorFungibility says.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/preemption.h"

namespace berth::quota {

using Flavors = std::map<std::string, model::ResourceFlavor, std::less<>>;

enum class Outcome : uint8_t { kNoFit, kPreempt, kFit };

// By pod set and resource group (its first resource): the flavor to try next; absent: all have been.
using NextFlavors = std::map<std::pair<size_t, std::string>, size_t>;

// The same: flavors that are passed over.
using PassedFlavors = std::map<std::pair<size_t, std::string>, std::set<size_t>>;

struct Assignment {
  std::vector<PodSetAssignment> pod_sets;
  Amounts usage;
  int borrowing = 0;  // height of the lowest subtree that holds it; 0: the queue's own quota does
  Outcome outcome = Outcome::kFit;
  NextFlavors next_flavor;
  NextFlavors chosen = {};       // what was taken of each
  bool waits_for_quota = false;  // some flavor would do if less were in use
  bool exceeds_quota = false;    // some flavor would not do even with nothing in use
  std::string no_place = {};     // quota would do, and nodes do not: why
  std::string user_limit = {};   // its user would have more than he may: how much

  // "couldn't assign flavors to pod set main: …", of the sets that keep it from fitting.
  std::string message() const;
  // Of those that it needs and that are not free.
  std::vector<FlavorResource> scarce(const QuotaTree& tree) const;
  // All that it takes.
  std::vector<FlavorResource> taken() const;
};

struct FlavorRequest {
  Claimant claimant;
  const model::Workload* workload = nullptr;
  const model::ClusterQueue* queue = nullptr;
  std::vector<int32_t> counts;          // of each pod set; empty: all
  uint64_t spares_winners_of = 0;       // see PreemptionRequest
  const NextFlavors* resume = nullptr;  // Assignment::next_flavor of the last try
  const PassedFlavors* without = nullptr;
};

// Adds what was chosen to `passed`, but for the last flavor of a group; false: there is no other left.
bool pass_over(const Assignment& assignment, const model::ClusterQueue& queue, PassedFlavors& passed);

// So many tries are enough: pod sets that each go on from the flavor after their last would try some pairs of flavors
// again and again.
int tries_max(const model::ClusterQueue& queue, const model::Workload& workload);

Assignment assign_flavors(Ledger& ledger, const Preemption& preemption, const Flavors& flavors,
                          const FlavorRequest& request);

// The same with what is free alone: nobody is made to go, and it changes nothing meanwhile.
Assignment assign_free_flavors(const QuotaTree& tree, const Flavors& flavors, const FlavorRequest& request);

// Whether selectors, affinity and tolerations of the pod set's pods allow the flavor, which is one of the group's.
bool may_have_flavor(const Flavors& flavors, const model::ResourceGroup& group, const std::string& flavor,
                     const model::PodSet& pods);

// What one pod of the set asks for of the resource in the flavor, as quota counts it: of a share of a GPU's memory the
// part that it is of a GPU of that size, where the flavor's node labels tell it (model::gpu_memory), else a whole GPU.
int64_t asked_by_pod(const model::PodSet& pods, const std::string& resource, const Flavors& flavors,
                     const std::string& flavor);

// So many pods of an admitted pod set need something still.
int32_t still_needed(const PodSetAssignment& given, const model::PodSet& pods);

// What the flavors of a pod set add to its pods.
struct FlavorTerms {
  model::Labels node_labels = {};  // that their nodes have
  std::vector<model::Toleration> tolerations = {};
  bool empty() const { return node_labels.empty() && tolerations.empty(); }
};
FlavorTerms terms_of(const PodSetAssignment& given, const Flavors& flavors);
void add_terms(const FlavorTerms& terms, model::SchedulingSpec& spec);
// Their names, sorted.
std::set<std::string> flavor_names(const PodSetAssignment& given);

// What an admitted workload holds: its usage with the flavors that it was given, but for what it has reclaimed since.
Amounts usage_of(const QuotaTree& tree, const std::vector<PodSetAssignment>& pod_sets, const model::Workload& workload);

}  // namespace berth::quota
