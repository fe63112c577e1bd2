#include "queueing/held.h"

#include <algorithm>
#include <utility>

namespace berth::queueing {
namespace {

std::optional<Time> time_of(const SeenWorkload& seen, const char* type) {
  const auto since = seen.is(type) ? parse_rfc3339(seen.condition(type)->since) : Result<Time>(Time{});
  return since && *since != Time{} ? std::optional(*since) : std::nullopt;
}

// Somebody has made it active since it was evicted for good: the Workload is another by then (metadata.generation).
bool was_reactivated(const SeenWorkload& seen) {
  const StoredCondition* evicted = seen.is("Evicted") ? seen.condition("Evicted") : nullptr;
  return evicted != nullptr && evicted->reason.starts_with("Deactivated") && seen.workload.active &&
         seen.workload.metadata.generation > evicted->observed_generation;
}

std::optional<model::Requeue> requeue_of(const SeenWorkload& seen) {
  if (!seen.requeue && !seen.is("Evicted")) return std::nullopt;
  model::Requeue out;
  if (seen.requeue) {
    out.count = seen.requeue->count;
    out.at = seen.requeue->at;
  }
  if (!seen.is("Evicted")) return out;
  out.reason = seen.condition("Evicted")->reason;
  out.message = seen.condition("Evicted")->message;
  out.evicted = time_of(seen, "Evicted").value_or(Time{});
  return out;
}

}  // namespace

std::optional<quota::HeldQuota> held_by(const SeenWorkload& seen) {
  if (!seen.admission || !seen.is("QuotaReserved")) return std::nullopt;
  std::vector<quota::PodSetAssignment> given;  // in the order of the pod sets
  for (const api::WorkloadPodSet& set : seen.workload.pod_sets) {
    const auto at = std::ranges::find(seen.admission->pod_sets, set.name, &quota::PodSetAssignment::name);
    if (at == seen.admission->pod_sets.end()) return std::nullopt;
    given.push_back(*at);
  }
  return quota::HeldQuota{.cluster_queue = seen.admission->cluster_queue,
                          .assignment = std::move(given),
                          .evicted = seen.is("Evicted") ? seen.condition("Evicted")->reason : "",
                          .reserved = time_of(seen, "QuotaReserved"),
                          .admitted = time_of(seen, "Admitted"),
                          .quota_only = !seen.is("Admitted"),
                          .lent_room = seen.is(kRoomLent)};
}

Time queued_since(const SeenWorkload& seen, Time wall) {
  const Time created = seen.workload.metadata.created.value_or(wall);
  const bool was_evicted = seen.is("Evicted") || seen.condition("Requeued") != nullptr;
  if (!was_evicted) return created;
  const std::optional<Time> requeued = time_of(seen, "Requeued"), evicted = time_of(seen, "Evicted");
  return requeued && (!evicted || *evicted <= *requeued) ? *requeued : wall;
}

Time reserved_since(const SeenWorkload& seen, Time wall) { return time_of(seen, "QuotaReserved").value_or(wall); }

void tell_past(const SeenWorkload& seen, model::Workload& workload) {
  if (was_reactivated(seen)) workload.past_execution = {};
  else workload.requeue = requeue_of(seen);
}

void tell_time(engine::Event& event, Time now, Duration ahead) {
  if (auto* ready = std::get_if<engine::WorkloadPodsReady>(&event))
    ready->at = ready->at == Time{} ? now : ready->at + (Duration{} - ahead);
  if (auto* check = std::get_if<engine::WorkloadCheckReported>(&event)) check->at = now;
  const auto here = [&](std::optional<Time>& time) {
    if (time) time = *time + (Duration{} - ahead);
  };
  auto* held = std::get_if<engine::WorkloadAdmitted>(&event);
  auto* upserted = std::get_if<engine::WorkloadUpserted>(&event);
  model::Workload* workload = held != nullptr ? &held->workload : upserted != nullptr ? &upserted->workload : nullptr;
  if (held != nullptr) {
    here(held->held.reserved);
    here(held->held.admitted);
  }
  if (workload == nullptr) return;
  here(workload->checkpoints.last);
  if (!workload->requeue) return;
  here(workload->requeue->at);
  workload->requeue->evicted = workload->requeue->evicted + (Duration{} - ahead);
}

}  // namespace berth::queueing
