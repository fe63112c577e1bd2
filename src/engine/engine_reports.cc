// The part of Engine that tells waiting pods why they wait.
#include <algorithm>
#include <utility>

#include "engine/engine.h"

namespace berth::engine {

// Brings a blocked class's message up to its candidates.
void Engine::update_verdict(ClassId id, ClassQueue& cls) {
  if (cls.message && cls.message_of_view == cls.candidates.version() && cls.message_of_tail == cls.tail_version())
    return;
  cls.message_of_view = cls.candidates.version();
  cls.message_of_tail = cls.tail_version();
  const std::string& objection = cls.candidates.objection();
  std::string text = objection.empty() ? fit_message(cls.candidates.counts(), failure_sets_) + preemption_tail(id, cls)
                                       : objection_message(objection, state_.node_count());
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
    update_verdict(id, cls);
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
  for (const ClassId id : queue_.blocked()) {
    const ClassQueue& cls = *queue_.find(id);
    if (cls.has_news()) consider(cls.told_all_at + options_.report_interval);
  }
}

}  // namespace berth::engine
