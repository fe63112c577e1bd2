// The part of Engine that gives waiting pods of one priority their places together (engine/set_search.h).
#include "engine/engine_set.h"

#include <algorithm>

#include "engine/set_search.h"

namespace berth::engine {

// From now on they have waited.
void Engine::note_new() {
  for (const PodSlot slot : newly_seen_) {
    PodState& pod = state_.mutable_pod(slot);
    if (pod.phase == PodPhase::kPending && !pod.queued_at) pod.queued_at = now_;
    if (holds_room(pod.phase) && pod.placed_at == Time{INT64_MAX}) pod.placed_at = now_;
  }
  newly_seen_.clear();
}

// Whether the pod, whose turn is next, may be one of a set: it is not due, and its priority has not had its search.
bool Engine::may_search_set(PodSlot head, SetTurn& turn) const {
  if (!options_.set_packing.enabled || set_too_large_) return false;
  const model::Pod& pod = state_.pod(head).pod;
  if (turn.priority != pod.priority) turn = {.priority = pod.priority, .due_until = due_until(pod.priority)};
  return !turn.searched && pod.created > turn.due_until;
}

// When the youngest pod of the priority was created that has waited for the bound; it is due, and so is who comes
// before it in the order of the queue. Classes that fit nowhere, whoever is placed, are passed over. O(pods of the
// priority).
Time Engine::due_until(int32_t priority) const {
  Time until{INT64_MIN};
  for (const auto& cls : queue_.classes()) {
    if (cls == nullptr || cls->pods.empty()) continue;
    const PodClass& pod_class = state_.pod_class(state_.pod(*cls->pods.begin()).cls);
    if (pod_class.priority != priority || (cls->blocked && pod_class.peers.hopes.empty())) continue;
    const auto due = std::find_if(cls->pods.rbegin(), cls->pods.rend(), [&](PodSlot slot) {
      const PodState& pod = state_.pod(slot);
      return pod.queued_at && now_ - *pod.queued_at >= options_.set_packing.head_bound;
    });
    if (due != cls->pods.rend()) until = std::max(until, state_.pod(*due).pod.created);
  }
  return until;
}

// Gives pods of one priority the places that a search finds best; those that it leaves out take ordinary turns, so that
// they may make room for themselves or hear why they wait. False: no further bind is allowed in this cycle.
bool Engine::place_set(const SetTurn& turn, const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  const SetPackingOptions& options = options_.set_packing;
  SetSearch search({state_, policies_, failure_sets_, queue_, rules_, nominees_, kept_gpus_}, *turn.priority,
                   turn.due_until);
  if (search.classes().size() < 2) return true;  // they are all alike
  const int64_t granted = std::min(options.work_max, work.left / 2);
  WorkBudget own{granted};
  const auto places = search.run(options.orders_max, own);
  work.left -= granted - std::max<int64_t>(own.left, 0);
  for (const ClassId id : search.classes()) queue_.set_blocked(id, false);  // its candidates are to be refreshed
  set_too_large_ = !places;
  if (!places) return true;
  for (const SetSearch::Place& at : *places) {
    if (static_cast<int64_t>(result.decisions.size()) >= limits.max_binds) return false;
    queue_.of(state_.pod(at.pod).cls).last_used = cycle_;
    queue_.erase(at.pod);
    place(at.pod, at.node, result);
  }
  return true;
}

}  // namespace berth::engine
