// DisruptionRules: which placed pods may be taken away for others, and which of them a PodDisruptionBudget speaks for.
//
// Owner thread only. A budget is broken only when nothing else makes room, as in kube-scheduler; a protected pod never
// leaves for another: it says so itself (berth.dev/preemptible: "false") and its namespace allows it to.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_set.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/pod_state.h"
#include "engine/state.h"
#include "model/disruption_budget.h"

namespace berth::engine {

class DisruptionRules {
 public:
  // Each touches the nodes of the pods that the change concerns.
  void set_budget(model::DisruptionBudget budget, State& state);
  void remove_budget(const std::string& key, State& state);
  void replace_budgets(const std::vector<model::DisruptionBudget>& budgets, State& state);
  // True: that is new.
  bool set_protects(const std::string& namespace_name, bool protects, State& state);

  std::vector<model::DisruptionBudget> budgets() const;
  const absl::flat_hash_set<std::string>& protecting_namespaces() const { return protecting_namespaces_; }

  // Nobody is protected, and no budget speaks for anybody.
  bool empty() const { return budgets_.empty() && protecting_namespaces_.empty(); }
  bool is_protected(const model::Pod& pod) const {
    if (pod.stand_in) return true;
    return !pod.preemptible && protecting_namespaces_.contains(pod.namespace_name);
  }
  // Which of the pods, taken away one after the other in this order, would go beyond some budget.
  // Source: kube-scheduler's filterPodsWithPDBViolation.
  std::vector<bool> violations(const std::vector<PodSlot>& pods, const State& state);

 private:
  struct Rule {
    model::DisruptionBudget budget;
    uint64_t round = 0;  // of violations() that `left` is about
    int64_t left = 0;
  };
  // Which budgets speak for the pods of an identity. Ids are reused: it is about a namespace and labels.
  struct Cover {
    uint64_t version = 0;  // cover_version_ that it goes by
    std::string namespace_name;
    std::shared_ptr<const model::Labels> labels;
    std::vector<Rule*> rules;
  };
  static void touch_covered(const model::DisruptionBudget& budget, State& state);
  const std::vector<Rule*>& rules_of(IdentityId id, const State& state);

  absl::btree_map<std::string, absl::btree_map<std::string, std::unique_ptr<Rule>>> budgets_;  // by namespace, name
  std::vector<Cover> covers_;   // by IdentityId, as far as asked for
  uint64_t cover_version_ = 1;  // grows when a budget comes, goes or speaks for others
  uint64_t round_ = 0;          // of violations()
  absl::flat_hash_set<std::string> protecting_namespaces_;
};

}  // namespace berth::engine
