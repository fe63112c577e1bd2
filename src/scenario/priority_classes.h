// PriorityClasses: the number behind a pod's priorityClassName, as the API server's Priority admission resolves it.
// Source: k8s.io/kubernetes/plugin/pkg/admission/priority (1.35).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/cluster.h"
#include "api/pod.h"
#include "base/result.h"

namespace berth::scenario {

class PriorityClasses {
 public:
  // Starts with the two that every cluster has: system-node-critical and system-cluster-critical.
  PriorityClasses();

  void add(const api::PriorityClass& priority_class);
  struct Priority {
    int32_t value = 0;
    std::string preemption_policy = "PreemptLowerPriority";
    std::string name = {};  // of its class; empty: it has none
  };
  bool knows(const std::string& name) const { return classes_.contains(name); }
  // The pod's priority: that of its class, else of the global default (the lowest, if there are several), else 0. An
  // error, in the API server's words, for a class that is not there or a spec.priority that says otherwise. A pod that
  // a server has stored keeps the priority that it got then, whatever became of its class.
  Result<Priority> resolve(const api::PodSpec& spec, bool stored = false) const;
  // Why the API server refuses the preemptionPolicy of a new pod that gets this priority; empty if it does not.
  static std::string policy_problem(const api::PodSpec& spec, const Priority& priority);

 private:
  std::map<std::string, Priority, std::less<>> classes_;
  std::optional<Priority> global_default_;
};

}  // namespace berth::scenario
