// evaluate(): one pod class against one node: the reasons why it does not fit, else its weighted score.
//
// The only place where filters and scores are run; ranking (engine/candidates.h) and explanations both call it.
#pragma once

#include <string>

#include "engine/policy_set.h"

namespace berth::engine {

// Why no node can do, whichever it is; empty when one might.
inline std::string run_pre_filters(const PolicySet& policies, const PodClass& cls, const State& state) {
  for (const PolicyInfo* policy : policies.filters) {
    if (policy->pre_filter == nullptr) continue;
    if (std::string objection = policy->pre_filter(cls, state); !objection.empty()) return objection;
  }
  return "";
}

// Appends the reasons of the first filter that objects; true when none does. `reasons` must be empty.
inline bool run_filters(const PolicySet& policies, const PodClass& cls, const NodeView& node, Reasons& reasons) {
  for (const PolicyInfo* policy : policies.filters) {
    policy->filter(cls, node, reasons);
    if (!reasons.empty()) return false;
  }
  return true;
}

// The same of those filters that heed what runs on the node; the others have no objection to it.
inline bool run_filters_of_pods(const PolicySet& policies, const PodClass& cls, const NodeView& node,
                                Reasons& reasons) {
  for (const PolicyInfo* policy : policies.filters) {
    if (!policy->heeds_pods) continue;
    policy->filter(cls, node, reasons);
    if (!reasons.empty()) return false;
  }
  return true;
}

// The same for the filters of groups.
inline void run_group_filters(const PolicySet& policies, const PodClass& cls, const GroupFacts& facts,
                              Reasons& reasons) {
  for (const PolicyInfo* policy : policies.group_filters) {
    policy->group_filter(cls, facts, reasons);
    if (!reasons.empty()) return;
  }
}

// Sum over the score policies of score × weight, by the weights of the pod's queue and the node's pool; for a node that
// fits.
inline int64_t run_scores(const PolicySet& policies, const PodClass& cls, const NodeView& node) {
  int64_t total = 0;
  for (const WeightedScore& score : policies.scores_on(cls, node))
    if (score.concerns(cls)) total += int64_t{score.policy->score(cls, node)} * score.weight;
  return total;
}

}  // namespace berth::engine
