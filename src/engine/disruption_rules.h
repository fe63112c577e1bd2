// DisruptionRules: which placed pods may be taken away for others, and which of them a PodDisruptionBudget speaks for.
//
// Owner thread only. A budget is broken only when nothing else makes room, as in kube-scheduler; a protected pod never
// leaves for another: it says so itself (berth.dev/preemptible: "false") and its namespace allows it to.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/flat_hash_set.h>

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
  void set_protects(const std::string& namespace_name, bool protects, State& state);

  bool is_protected(const model::Pod& pod) const {
    return !pod.preemptible && protecting_namespaces_.contains(pod.namespace_name);
  }
  // Which of the pods, taken away one after the other in this order, would go beyond some budget.
  // Source: kube-scheduler's filterPodsWithPDBViolation.
  std::vector<bool> violations(const std::vector<PodSlot>& pods, const State& state) const;

 private:
  static void touch_covered(const model::DisruptionBudget& budget, State& state);

  absl::btree_map<std::string, absl::btree_map<std::string, model::DisruptionBudget>> budgets_;  // by namespace, name
  absl::flat_hash_set<std::string> protecting_namespaces_;
};

}  // namespace berth::engine
