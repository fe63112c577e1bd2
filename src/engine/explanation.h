// Explanation: why a pod is not running, as data. One object feeds events, conditions, the CLI and JSON.
//
// `message` is kube-scheduler's text; `nodes` is Berth's own: each node that turns the pod away with the exact taint,
// label or shortage. True at the state it was made from (design I8).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/state.h"

namespace berth::engine {

struct NodeReason {
  std::string text;    // as in the message: "Insufficient nvidia.com/gpu"
  std::string detail;  // "asks 4, free 2 of 8, short by 2"
  friend bool operator==(const NodeReason&, const NodeReason&) = default;
};

struct NodeExplanation {
  std::string node;
  std::vector<NodeReason> reasons;                    // empty: the pod fits
  std::string_view gpu_limit = {};                    // model::gpu_limit() of the pod there
  std::optional<model::DeviceMode> device_mode = {};  // model::device_mode() of the pod there
};

struct Explanation {
  bool known = false;  // the engine has such a pod
  PodPhase phase = PodPhase::kNotQueued;
  std::string reason;  // "Bound", "Unschedulable", "SchedulingGated", "Backoff", "Pending", …
  std::string message;
  std::string node;                    // where it is placed
  std::string_view gpu_limit = {};     // model::gpu_limit() there
  std::vector<NodeExplanation> nodes;  // by node name; only for pods that wait
};

}  // namespace berth::engine
