// The part of Engine that tells people what it decided not to do, and when it wants to be called again.
#include <algorithm>
#include <utility>

#include "engine/engine_reserve.h"
#include "engine/evaluate.h"
#include "engine/queued_workloads.h"
#include "engine/trial.h"
#include "quota/admission.h"

namespace berth::engine {
namespace {

std::string unfit_text(const FailureCounts& counts, const FailureSets& sets, const std::string& why_nobody_leaves) {
  return fit_message(counts, sets) + " no new claims to deallocate, " + why_nobody_leaves;
}

}  // namespace

// kube-scheduler's words for a class that fits nowhere and for which no room can be made.
std::string Engine::verdict_text(const PodClass& cls, const Candidates& candidates, const PreemptionView& preemption,
                                 const FailureSets& sets) const {
  const std::string& objection = candidates.objection();
  if (!objection.empty() || state_.node_count() == 0) return objection_message(objection, state_.node_count());
  return unfit_text(candidates.counts(), sets, preemption.why_not(cls, candidates, sets));
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

std::shared_ptr<const std::string> Engine::Reserve::verdict_for(PodSlot pod, const ClassQueue& cls) const {
  State& state = engine.state_;
  const std::string& uid = state.pod(pod).pod.uid;
  if (!engine.kept_gpus_.keeps_for(uid)) return cls.message;
  std::string text = *cls.message;
  if (cls.candidates.objection().empty()) {
    const PodClass& pod_class = state.pod_class(state.pod(pod).cls);
    const Groups* groups = cls.candidates.groups();
    FailureCounts counts = cls.candidates.counts();
    for (const auto& [node, kept] : engine.kept_gpus_.all()) {
      if (kept.owner != uid || !state.node(node).present) continue;
      Trial trial(state, node, pod_class);
      trial.take_out(kept.stand_in, state.pod_class(state.pod(kept.stand_in).cls).requests);
      Reasons reasons;
      if (run_filters(engine.policies_, pod_class, state.view(node), reasons) && groups != nullptr)
        run_group_filters(engine.policies_, pod_class, groups->facts(node, pod_class), reasons);
      if (reasons.empty()) continue;
      counts.add(cls.candidates.failure(node), -1);
      counts.add(engine.failure_sets_.intern(reasons, state.resources()), 1);
    }
    text = unfit_text(counts, engine.failure_sets_,
                      cls.preemption.why_not(pod_class, cls.candidates, engine.failure_sets_));
  }
  if (const std::string kept = gpus_text(uid); !kept.empty()) text += " " + kept;
  return std::make_shared<const std::string>(std::move(text));
}

void Engine::Reserve::retell_owners() {
  for (const std::string& uid : engine.kept_gpus_.take_news()) {
    const PodSlot pod = engine.state_.find_pod(uid);
    if (!pod.valid() || engine.state_.pod(pod).phase != PodPhase::kPending) continue;
    PodState& state = engine.state_.mutable_pod(pod);
    state.reported_version = 0;
    if (!std::exchange(state.awaits_report, true)) engine.queue_.await_report(pod);
  }
}

// Tells waiting pods why they wait: new ones at once, the others when the text changed, but not too often. A class that
// this cycle has not looked at is left to the next: its candidates are of no one state. False: more remain to be told
// than `limit` allows.
bool Engine::report(int64_t limit, CycleResult& result) {
  Reserve{*this}.retell_owners();
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
      const PodSlot waiting = cls.reports.front();
      PodState& state = state_.mutable_pod(waiting);
      if (!state.in_use || state.phase != PodPhase::kPending || state.cls != id) continue;
      if (!std::exchange(state.awaits_report, false) || state.reported_version == cls.verdict_version) continue;
      if (limit-- <= 0) {
        state.awaits_report = true;
        return false;
      }
      state.reported_version = cls.verdict_version;
      result.decisions.push_back({DecisionKind::kUnschedulable,
                                  state.pod.uid,
                                  state.pod.namespace_name,
                                  state.pod.name,
                                  {},
                                  Reserve{*this}.verdict_for(waiting, cls),
                                  {}});
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
  if (const std::optional<Time> due = workloads_->next_due()) consider(*due);
  for (const PodSlot pod : reserved_pods())
    if (const Time due = state_.pod(pod).free_by; due > now_ && due < Time{INT64_MAX}) consider(due);
  for (const ClassId id : queue_.blocked()) {
    const ClassQueue& cls = *queue_.find(id);
    if (cls.has_news()) consider(cls.told_all_at + options_.report_interval);
    if (cls.preemption.stale_until() < Time{INT64_MAX}) consider(cls.preemption.stale_until());
  }
  // What is kept for a cut that nobody begins is given back for others, in a while.
  const auto is_for_a_cut = [](const auto& each) { return each.second.wants_cut; };
  const bool something_else = result.has_wakeup || std::ranges::any_of(admission().kept().rooms, is_for_a_cut);
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
