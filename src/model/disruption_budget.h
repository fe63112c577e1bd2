// DisruptionBudget: how many of a set of pods may still be taken away, as a PodDisruptionBudget says it.
//
// The disruption controller keeps `allowed` in the object's status; Berth reads it and never computes it.
// Source: k8s.io/api/policy/v1 (PodDisruptionBudget).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/peers.h"

namespace berth::model {

struct DisruptionBudget {
  std::string namespace_name;
  std::string name;
  LabelSelector pods;                  // of its namespace
  int32_t allowed = 0;                 // status.disruptionsAllowed
  std::vector<std::string> disrupted;  // names of pods that `allowed` takes as gone already; sorted

  // "namespace/name".
  std::string key() const { return namespace_name + "/" + name; }
  friend bool operator==(const DisruptionBudget&, const DisruptionBudget&) = default;
};

}  // namespace berth::model
