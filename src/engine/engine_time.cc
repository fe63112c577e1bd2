// The part of Engine that goes by declared runtimes: when those that run have ended.
#include <algorithm>

#include "engine/engine.h"
#include "engine/queued_workloads.h"
#include "quota/admission.h"

namespace berth::engine {

// Since when the pod, which has a place, counts as running.
Time Engine::began(const PodState& pod) const {
  if (!options_.wall_offset || pod.pod.started == Time{}) return std::min(pod.placed_at, now_);
  return std::min(pod.pod.started + (Duration{} - *options_.wall_offset), now_);
}

std::optional<Time> Engine::expected_end(PodSlot slot) const {
  const PodState& pod = state_.pod(slot);
  if (pod.phase < PodPhase::kHeld) return std::nullopt;
  // Its place is its workload's, which gives it to another pod.
  if (!pod.pod.workload.empty())
    if (const auto workload = workloads_->find(pod.pod.workload)) return expected_end(*workload);
  if (!pod.pod.runtime || pod.phase == PodPhase::kHeld) return std::nullopt;
  return began(pod) + *pod.pod.runtime;
}

std::optional<Time> Engine::expected_end(quota::WorkloadId id) const { return admission().expected_end(id); }

// Its place is its own, and it goes without having been asked to.
void Engine::note_runtime(const PodState& ended) {
  const bool ran = ended.phase >= PodPhase::kReserved;
  if (ran && ended.pod.runtime && !ended.evicting && !ended.pod.terminating)
    ratios_.note(began(ended), *ended.pod.runtime);
}

std::string Engine::time_text(Time time) const {
  return quota::time_text(time, options_.wall_offset.value_or(Duration{}));
}

}  // namespace berth::engine
