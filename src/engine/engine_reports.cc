// The part of Engine that tells people what it decided not to do, and when it wants to be called again.
#include <algorithm>
#include <utility>

#include "engine/engine_reserve.h"
#include "quota/admission.h"

namespace berth::engine {

// kube-scheduler's words for a class that fits nowhere and for which no room can be made.
std::string Engine::verdict_text(const PodClass& cls, const Candidates& candidates, const PreemptionView& preemption,
                                 const FailureSets& sets) const {
  const std::string& objection = candidates.objection();
  if (!objection.empty() || state_.node_count() == 0) return objection_message(objection, state_.node_count());
  return fit_message(candidates.counts(), sets) + " no new claims to deallocate, " +
         preemption.why_not(cls, candidates, sets);
}

// Brings a blocked class's message up to its candidates.
void Engine::update_verdict(ClassQueue& cls) {
  if (cls.message && cls.message_of_view == cls.view_version()) return;
  cls.message_of_view = cls.view_version();
  std::string text =
      verdict_text(state_.pod_class(state_.pod(*cls.pods.begin()).cls), cls.candidates, cls.preemption, failure_sets_);
  if (cls.message && *cls.message == text) return;
  cls.message = std::make_shared<const std::string>(std::move(text));
  cls.verdict_version = ++verdict_texts_;
}

// Tells waiting pods why they wait: new ones at once, the others when the text changed, but not too often. A class that
// this cycle has not looked at is left to the next: its candidates are of no one state. False: more remain to be told
// than `limit` allows.
bool Engine::report(int64_t limit, CycleResult& result) {
  for (const ClassId id : queue_.blocked()) {
    ClassQueue& cls = queue_.of(id);
    if (cls.looked_at != cycle_) continue;
    const bool tell_all = cls.has_news() && now_ - cls.told_all_at >= options_.report_interval;
    if (cls.reports.empty() && !tell_all) continue;
    update_verdict(cls);
    if (tell_all && cls.told_all_version != cls.verdict_version) {
      cls.told_all_version = cls.verdict_version;
      cls.told_all_at = now_;
      for (const PodSlot waiting : cls.pods) {
        PodState& state = state_.mutable_pod(waiting);
        if (!std::exchange(state.awaits_report, true)) cls.reports.push_back(waiting);
      }
    }
    for (; !cls.reports.empty(); cls.reports.pop_front()) {
      PodState& state = state_.mutable_pod(cls.reports.front());
      if (!state.in_use || state.phase != PodPhase::kPending || state.cls != id) continue;
      if (!std::exchange(state.awaits_report, false) || state.reported_version == cls.verdict_version) continue;
      if (limit-- <= 0) {
        state.awaits_report = true;
        return false;
      }
      state.reported_version = cls.verdict_version;
      result.decisions.push_back(
          {DecisionKind::kUnschedulable, state.pod.uid, state.pod.namespace_name, state.pod.name, {}, cls.message, {}});
    }
  }
  return true;
}

void Engine::find_wakeup(CycleResult& result) const {
  const auto consider = [&](Time time) {
    result.wakeup = result.has_wakeup ? std::min(result.wakeup, time) : time;
    result.has_wakeup = true;
  };
  if (!backoff_.empty()) consider(backoff_.begin()->first);
  if (!refused_.empty()) consider(refused_.begin()->first);
  if (!pauses_.empty()) consider(pauses_.begin()->first);
  if (const std::optional<Time> due = admission().next_due()) consider(*due);
  for (const PodSlot pod : reserved_pods())
    if (const Time due = state_.pod(pod).free_by; due > now_ && due < Time{INT64_MAX}) consider(due);
  for (const ClassId id : queue_.blocked()) {
    const ClassQueue& cls = *queue_.find(id);
    if (cls.has_news()) consider(cls.told_all_at + options_.report_interval);
    if (cls.preemption.stale_until() < Time{INT64_MAX}) consider(cls.preemption.stale_until());
  }
  const bool something_else = result.has_wakeup;
  if (const std::optional<Time> due = admission().keeps_from()) consider(*due);
  for (const ClassId id : queue_.blocked())
    if (const Time due = Reserve::due_at(*this, *queue_.find(id)); due > now_ && due < Time{INT64_MAX}) consider(due);
  result.only_reserves = result.has_wakeup && !something_else;
}

size_t Engine::unschedulable_pods() const {
  size_t count = nominees_.size();
  for (const ClassId id : queue_.blocked()) count += queue_.find(id)->pods.size();
  return count;
}

size_t Engine::memory_bytes() const {
  size_t total = residents_.memory_bytes();
  for (const auto& cls : queue_.classes())
    if (cls != nullptr) total += sizeof(ClassQueue) + cls->candidates.memory_bytes() + cls->preemption.memory_bytes();
  return total;
}

std::pair<std::vector<std::string>, uint32_t> Engine::fitting_nodes(PodSlot pod) {
  std::vector<std::string> out;
  if (options_.list_feasible == 0) return {out, 0};
  const ClassId id = state_.pod(pod).cls;
  Candidates& candidates = queue_.of(id).candidates;
  WorkBudget unlimited{INT64_MAX};
  candidates.refresh(state_, policies_, state_.pod_class(id), failure_sets_, unlimited);
  uint32_t count = 0;
  for (const auto& [name, slot] : state_.nodes_by_name())
    if (candidates.failure(slot) == kFits && ++count <= options_.list_feasible) out.push_back(name);
  return {std::move(out), count};
}

}  // namespace berth::engine
