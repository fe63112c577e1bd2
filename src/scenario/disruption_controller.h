// DisruptionController: keeps PodDisruptionBudgets' status, as the controller of that name does in a cluster.
//
// A budget whose manifest brings a status starts from it: what has been taken away since counts against it. Owner
// thread only. Source: k8s.io/kubernetes/pkg/controller/disruption.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <vector>

#include "api/disruption_budget.h"
#include "engine/event.h"

namespace berth::scenario {

class DisruptionController {
 public:
  explicit DisruptionController(std::vector<engine::Event>& outbox) : outbox_(outbox) {}

  void put(const api::PodDisruptionBudget& budget);
  bool empty() const { return budgets_.empty(); }
  // Counts pods anew: begin(), then every pod that exists, then end(), which tells the engine what changed.
  void begin();
  void count(const std::string& namespace_name, const model::Labels& labels, bool healthy);
  void end();

 private:
  struct Record {
    api::PodDisruptionBudget object;
    int64_t expected = 0, healthy = 0;
    int64_t healthy_at_first = -1;
    int32_t told = -1;  // disruptions allowed, as the engine knows it
  };
  std::vector<engine::Event>& outbox_;
  absl::btree_map<std::string, Record> budgets_;  // by "namespace/name"
};

}  // namespace berth::scenario
