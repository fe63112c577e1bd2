// StandIns: pods of the engine's own, which stand for pods of workloads that have not come, and what is known of nodes
// for their classes. Owner thread only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/placement_context.h"
#include "model/queues.h"

namespace berth::engine {

class StandIns {
 public:
  using Spec = std::shared_ptr<const model::SchedulingSpec>;  // a pod set's, with what its flavors add

  explicit StandIns(const PlacementContext& context) : context_(context) {}

  // The pod with that number of a set of the workload. Number −1: one that never gets a place for long.
  model::Pod make(const model::Workload& workload, size_t set, const Spec& spec, int32_t number);
  // Lets a pod in whose class knows by whom it is seen, by itself for example, which the first pod of a class learns
  // afterwards.
  PodSlot enter(model::Pod&& pod);
  // What is known of nodes for the pod's class is kept when it has gone, for the last few that were so kept.
  void keep_class(PodSlot pod);
  // The candidates of the pod's class, as of now.
  const Candidates& look(PodSlot pod);
  // What `question` says of the candidates of a pod of the set, which gets no place.
  template <typename Ask>
  auto ask(const model::Workload& workload, size_t set, const Spec& spec, const Ask& question) {
    const PodSlot looks = enter(make(workload, set, spec, -1));
    auto answer = question(looks, look(looks));
    keep_class(looks);
    context_.state.remove_pod(looks);
    return answer;
  }
  // Of those there are, the ones that keep a class: a pod without a place each.
  const std::vector<PodSlot>& keepers() const { return kept_; }
  // Work units that were spent on looking since the last call.
  int64_t take_used() { return std::exchange(used_, 0); }

 private:
  static constexpr size_t kKeptMax = 64;

  PlacementContext context_;
  std::vector<PodSlot> kept_;  // a ring
  size_t next_kept_ = 0;
  uint64_t names_made_ = 0;
  int64_t used_ = 0;
};

}  // namespace berth::engine
