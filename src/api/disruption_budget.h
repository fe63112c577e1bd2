// PodDisruptionBudget: how many pods of a set may be taken away at a time.
// Source: k8s.io/api/policy/v1 (1.35).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/meta.h"
#include "model/peers.h"

namespace berth::api {

struct PodDisruptionBudget {
  ObjectMeta metadata;
  model::LabelSelector selector{.selects_nothing = true,
                                .requirements = {}};  // absent: no pod; {}: all of its namespace
  std::string min_available;                          // "2" or "50%"; empty: not given
  std::string max_unavailable;                        // the same
  bool has_status = false;
  int32_t disruptions_allowed = 0;          // status, by the disruption controller
  std::vector<std::string> disrupted_pods;  // status: names of pods that disruptions_allowed takes as gone; sorted
};

}  // namespace berth::api
