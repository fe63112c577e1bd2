// StandIns: pods of the engine's own, which stand for pods of workloads that have not come, and what is known of nodes
// for their classes. Owner thread only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/placement_context.h"
#include "model/queues.h"

namespace berth::engine {

// What a pod of a set is to nodes: as the set says, or as the pod itself, with what its flavors add.
struct PodLooks {
  std::shared_ptr<const model::SchedulingSpec> spec;  // null: no place is needed
  std::shared_ptr<const model::Labels> labels;
  friend bool operator==(const PodLooks& a, const PodLooks& b);  // by value
};

class StandIns {
 public:
  explicit StandIns(const PlacementContext& context) : context_(context) {}

  // The pod with that number of a set of the workload. Number −1: one that never gets a place for long.
  model::Pod make(const model::Workload& workload, size_t set, const PodLooks& looks, int32_t number);
  // Lets a pod in whose class knows by whom it is seen, by itself for example, which the first pod of a class learns
  // afterwards.
  PodSlot enter(model::Pod&& pod);
  // What is known of nodes for the pod's class is kept when it has gone, for the last few that were so kept.
  void keep_class(PodSlot pod);
  // The candidates of the pod's class, as of now.
  const Candidates& look(PodSlot pod);
  // What `question` says of the candidates of a pod of the set, which gets no place.
  template <typename Ask>
  auto ask(const model::Workload& workload, size_t set, const PodLooks& looks, const Ask& question) {
    const PodSlot pod = enter(make(workload, set, looks, -1));
    auto answer = question(pod, look(pod));
    keep_class(pod);
    context_.state.remove_pod(pod);
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
