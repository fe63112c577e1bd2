// ClassKey: what makes two pods one class: a spec, a priority, the weights of their queues and the selectors that see
// the pod. Points into the pods and identities that it is about.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/ids.h"
#include "model/pod.h"

namespace berth::engine {

struct ClassKey {
  const model::SchedulingSpec* spec;
  const std::vector<SelectorId>* seen_by;
  int32_t priority;
  bool preempts, gave_up;
  uint32_t queue_weights;  // PodClass::queue_weights
  friend bool operator==(const ClassKey& a, const ClassKey& b) {
    return a.priority == b.priority && a.preempts == b.preempts && a.gave_up == b.gave_up &&
           a.queue_weights == b.queue_weights && *a.seen_by == *b.seen_by && (a.spec == b.spec || *a.spec == *b.spec);
  }
  template <typename H>
  friend H AbslHashValue(H state, const ClassKey& k) {
    return H::combine(std::move(state), *k.spec, *k.seen_by, k.priority, k.preempts, k.gave_up, k.queue_weights);
  }
};

}  // namespace berth::engine
