// KeptAside: a node without those that wait for what becomes free there, for as long as this lives: the pods that it is
// kept for (PodState::node_kept), and what workloads were promised that have had others evicted.
//
// What a workload has on a node is its own until it gives it back, whoever waits for what becomes free there: when one
// of its pods takes the place of another, those who wait are looked past. Pods with claims stay, since what was chosen
// for these could not be had again.
#pragma once

#include <algorithm>
#include <iterator>
#include <vector>

#include "engine/node_guesses.h"
#include "engine/state.h"

namespace berth::engine {

class KeptAside {
 public:
  KeptAside(State& state, NodeSlot node) : state_(state), node_(node), guesses_(state, node) {
    std::ranges::copy_if(state.node(node).pods, std::back_inserter(pods_), [&](PodSlot slot) {
      const PodState& pod = state.pod(slot);
      return pod.phase == PodPhase::kNominated && (pod.node_kept || pod.pod.stand_in) &&
             state.pod_class(pod.cls).claims.empty();
    });
    std::sort(pods_.begin(), pods_.end());
    for (const PodSlot pod : pods_) state_.unassign(pod, PodPhase::kNotQueued);
  }
  KeptAside(const KeptAside&) = delete;
  KeptAside& operator=(const KeptAside&) = delete;
  ~KeptAside() {
    for (const PodSlot pod : pods_) state_.assign(pod, node_, PodPhase::kNominated);
    guesses_.restore(state_);
  }

 private:
  State& state_;
  const NodeSlot node_;
  const NodeGuesses guesses_;
  std::vector<PodSlot> pods_;
};

}  // namespace berth::engine
