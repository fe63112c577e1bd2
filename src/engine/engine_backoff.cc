// The part of Engine that has pods wait after an attempt that came to nothing.
#include <algorithm>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/queued_workloads.h"

namespace berth::engine {

Time Engine::backs_off_until(const PodState& pod) const {
  return std::max(pod.backoff_until, rejections_.until(pod.pod.owner_uid));
}

void Engine::back_off(PodSlot slot, Time until) {
  PodState& pod = state_.mutable_pod(slot);
  pod.phase = PodPhase::kBackoff;
  pod.backoff_until = until;
  backoff_.emplace(until, pod.pod.uid);
}

void Engine::release_backoffs(Time now) {
  while (!backoff_.empty() && backoff_.begin()->first <= now) {
    const PodSlot slot = state_.find_pod(backoff_.begin()->second);
    backoff_.erase(backoff_.begin());
    check(slot.valid() && state_.pod(slot).phase == PodPhase::kBackoff, "a pod in back-off is known");
    if (state_.pod(slot).pod.workload.empty()) {
      enqueue(slot);
    } else {
      state_.mutable_pod(slot).phase = PodPhase::kNotQueued;
      take_up(slot);
    }
  }
}

}  // namespace berth::engine
