// PromisedPeers: what inter-pod terms would say of nodes if pods that wait had the places that they have been promised.
//
// For planners that stand beside the engine and promise nodes before any pod has one (mig/repartition_plan.h). Required
// affinity and anti-affinity are exact, and so is topology spread over the domains that Candidates know.
//
// Owner thread only; the state does not change meanwhile. Cost: a class's terms for each question; O(nodes) where the
// promised pods may have made the fewest of a domain more.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <utility>
#include <vector>

#include "engine/candidates.h"
#include "engine/group_shape.h"
#include "engine/state.h"

namespace berth::engine {

class PromisedPeers {
 public:
  explicit PromisedPeers(const State& state) : state_(&state) {}

  void add(PodSlot pod, NodeSlot node);
  // It has a place, and is to have another, or none.
  void leave(PodSlot pod);
  // Whether the filters of groups let one more pod of the class onto the node. `groups`: of the class's candidates, up
  // to date; null, where they are not yet: nobody is let in whose class has to be spread.
  bool admit(const PolicySet& policies, ClassId cls, const Groups* groups, NodeSlot node);
  // The domain of the node in which the class's next pod would have to stay with those that follow; invalid where these
  // may be anywhere, or have a pod already that says where.
  DomainId gathers_in(ClassId cls, NodeSlot node);

 private:
  struct Count {
    int32_t matching = 0, anti_owners = 0;
  };

  void count(PodSlot pod, NodeSlot node, int32_t by);
  const GroupShape& shape(ClassId cls);
  Count at(TermId term, DomainId domain) const;
  bool anywhere(const std::vector<TermId>& terms) const;
  GroupFacts::Spread spread(const PodClass& cls, size_t rule, const Groups& groups, NodeSlot node) const;
  int64_t change_in(const ClassPeers::Spread& rule, DomainId domain) const;

  const State* state_;
  absl::flat_hash_map<ClassId, GroupShape> shapes_;
  absl::flat_hash_map<std::pair<TermId, DomainId>, Count> counts_;  // promised, and not placed; below 0: who leaves
  absl::flat_hash_map<SelectorId, std::vector<NodeSlot>> seen_;     // where a selector would see them,
  absl::flat_hash_map<SelectorId, std::vector<NodeSlot>> unseen_;   // and sees those who leave
};

}  // namespace berth::engine
