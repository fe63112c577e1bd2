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

std::optional<Time> Engine::expected_end(quota::WorkloadId id) const {
  const model::Workload& workload = admission().status(id).workload;
  const std::optional<quota::Term> term = admission().term(id);
  if (!term) return std::nullopt;
  std::optional<Time> out;
  if (workload.runtime) out = term->since + *workload.runtime;
  if (workload.max_execution) {
    const Time limit = term->since + (*workload.max_execution - term->before);
    out = std::min(out.value_or(limit), limit);
  }
  return out;
}

// Its place is its own, and it goes without having been asked to.
void Engine::note_runtime(const PodState& ended) {
  const bool ran = ended.phase >= PodPhase::kReserved;
  if (ran && ended.pod.runtime && !ended.evicting && !ended.pod.terminating)
    ratios_.note(began(ended), *ended.pod.runtime);
}

std::string Engine::time_text(Time time) const {
  if (!options_.wall_offset) return format_duration(time - Time{});
  const int64_t second = Duration::seconds(1).nanos, nanos = (time + *options_.wall_offset).nanos;
  return format_rfc3339(Time{(nanos + second - 1) / second * second});
}

}  // namespace berth::engine
