// The part of Engine that makes room for a pod that fits nowhere, and sees to it that the pod gets that room.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "engine/engine_reserve.h"
#include "engine/evaluate.h"
#include "engine/kept_aside.h"
#include "engine/node_guesses.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {

void Engine::on(const BudgetUpserted& event) { rules_.set_budget(event.budget, state_); }
void Engine::on(const BudgetDeleted& event) { rules_.remove_budget(event.key, state_); }
void Engine::on(const BudgetsReplaced& event) { rules_.replace_budgets(event.budgets, state_); }

void Engine::on(const EvictionFailed& event) {
  const PodSlot slot = state_.find_pod(event.uid);
  if (!slot.valid() || !state_.pod(slot).evicting) return;
  state_.revise(slot, [](PodState& pod) { pod.evicting = false; });
  state_.mutable_pod(slot).evictable_from = now_ + options_.eviction_retry;
  refused_.emplace(now_ + options_.eviction_retry, event.uid);
  if (holds_room(state_.pod(slot).phase)) state_.touch_node_of(slot);
}

// Pods that the server would not let go of may be asked about again.
void Engine::release_refused() {
  while (!refused_.empty() && refused_.begin()->first <= now_) {
    const PodSlot slot = state_.find_pod(refused_.begin()->second);
    refused_.erase(refused_.begin());
    if (slot.valid() && holds_room(state_.pod(slot).phase)) state_.touch_node_of(slot);
  }
}

// A pod, which is in no queue, whose nominations came to nothing too often.
void Engine::pause_preemption(PodSlot slot) {
  constexpr uint32_t kDoublingsMax = 20;
  PodState& pod = state_.mutable_pod(slot);
  const uint32_t doublings = std::min(pod.lost_nominations - options_.nominations_max, kDoublingsMax);
  pauses_.emplace(now_ + Duration{options_.nominations_pause.nanos << doublings}, pod.pod.uid);
  pod.paused = true;
  replace(slot, model::Pod(pod.pod));
}

void Engine::end_pauses() {
  while (!pauses_.empty() && pauses_.begin()->first <= now_) {
    const PodSlot slot = state_.find_pod(pauses_.begin()->second);
    pauses_.erase(pauses_.begin());
    if (!slot.valid()) continue;
    state_.mutable_pod(slot).paused = false;
    const PodPhase phase = state_.pod(slot).phase;
    if (phase != PodPhase::kPending && phase != PodPhase::kBackoff) continue;  // its facts are replaced later
    leave_queue(slot);
    replace(slot, model::Pod(state_.pod(slot).pod));
    settle(slot);
  }
}

// Where a class fits nowhere, looks who could make room for it. False: out of work units.
bool Engine::look_for_victims(ClassId id, ClassQueue& cls, WorkBudget& work) {
  if (cls.candidates.best().valid() || !cls.candidates.objection().empty()) return true;
  const PreemptionView::Context context{search_context(), failure_sets_, options_.preemption_retry};
  return cls.preemption.refresh(context, state_.pod_class(id), cls.candidates, work);
}

// Carries the cheapest plan out for the first pod of the queue. False: nobody has to leave for it, and it is held.
bool Engine::make_room(PodSlot pod, ClassQueue& cls, CycleResult& result) {
  const NodeSlot node = cls.node_to_clear();
  const PodClass& pod_class = state_.pod_class(state_.pod(pod).cls);
  VictimSearch search(search_context(), pod_class, cls.candidates.groups());
  VictimPlan plan;
  check(search.find(node, plan) == VictimSearch::Outcome::kPlan, "a plan holds until the state changes");
  cls.preemption.forget(node, state_);
  queue_.erase(pod);
  nominate(pod, node);
  std::vector<PodSlot> displaced;
  if (search.outlook(pod, node, displaced) == VictimSearch::Outlook::kReady) {  // nobody has to leave
    if (gives_way(pod, node)) {
      withdraw_nomination(pod);
      enqueue(pod);
      held_ = pod;
      return false;
    }
    if (pod == held_) held_ = {};
    const GuessesStay guesses(state_, node);
    displace(displaced);
    withdraw_nomination(pod);
    place(pod, node, result);
    return true;
  }
  displace(plan.displaced);
  const PodState& preemptor = state_.pod(pod);
  const std::string& node_name = state_.node(node).node.name;
  for (const PodSlot victim : plan.victims) {
    const PodState& leaves = state_.pod(victim);
    if (leaves.pod.terminating || leaves.evicting) continue;
    state_.revise(victim, [](PodState& evicted) { evicted.evicting = true; });
    state_.mutable_pod(pod).nomination_cost = true;
    result.decisions.push_back({.kind = DecisionKind::kEvict,
                                .pod_uid = leaves.pod.uid,
                                .namespace_name = leaves.pod.namespace_name,
                                .pod_name = leaves.pod.name,
                                .node_name = node_name,
                                .preemptor_uid = preemptor.pod.uid});
  }
  result.decisions.push_back(
      {.kind = DecisionKind::kNominate,
       .pod_uid = preemptor.pod.uid,
       .namespace_name = preemptor.pod.namespace_name,
       .pod_name = preemptor.pod.name,
       .node_name = node_name,
       .message = std::make_shared<const std::string>(fit_message(cls.candidates.counts(), failure_sets_))});
  return true;
}

// Who waits may be served by what has begun, or by a node that is free again: that is to be found out afresh. Whom a
// node was cut for has its room until the next cycle, whoever else would do with it and is to have another: several
// nodes may have been cut in one plan, and be done one after the other.
void Engine::on(const NodeRepartitioning& event) {
  state_.set_repartitioning(event.name, event.under_way);
  held_ = {};
  const NodeSlot node = state_.find_node(event.name);
  if (!node.valid()) return;
  if (event.under_way) give_back_kept(node);
  else kept_gpus_.give_back(node);
  std::vector<PodSlot> pods;
  for (const std::string& uid : event.pods)
    if (const PodSlot pod = state_.find_pod(uid); pod.valid() && state_.pod(pod).phase == PodPhase::kPending)
      pods.push_back(pod);
  std::sort(pods.begin(), pods.end(), QueueOrder{&state_});
  for (const PodSlot pod : pods) {
    Reasons reasons;
    if (!run_filters(policies_, state_.pod_class(state_.pod(pod).cls), state_.view(node), reasons)) continue;
    queue_.erase(pod);
    nominate(pod, node);
  }
}

// What is kept on the node, for whomever: it is about to be cut anew.
void Engine::give_back_kept(NodeSlot node) {
  workloads_->give_back_kept(node);
  kept_gpus_.begin_cut(node);
  for (const PodSlot pod : kept_room(state_, state_.node(node))) {
    if (!state_.pod(pod).pod.keeps_gpus_for.empty()) continue;
    withdraw_nomination(pod);
    enqueue(pod);
  }
}

// Charges the pod, which is in no queue, to the node beside those that are to leave it.
void Engine::nominate(PodSlot pod, NodeSlot node) {
  state_.assign(pod, node, PodPhase::kNominated);
  state_.mutable_pod(pod).nominated_generation = 0;
  state_.mutable_pod(pod).nomination_cost = false;
  state_.revise(pod, [](PodState& nominee) {
    nominee.node_kept = nominee.takes_over = false;
    nominee.free_by = nominee.told_free_by = Time{INT64_MAX};
  });
  nominees_.insert(pod);
  queue_.wake_friends(state_.pod_class(state_.pod(pod).cls));
}

// The pod is in no queue afterwards, and whatever it was told holds no longer.
void Engine::withdraw_nomination(PodSlot pod) {
  nominees_.erase(pod);
  state_.unassign(pod, PodPhase::kNotQueued);
  PodState& state = state_.mutable_pod(pod);
  state.node_kept = state.takes_over = false;
  state.reported_version = 0;
  state.awaits_report = false;
}

// Takes their nominations from pods that are less important than one that needs the room.
void Engine::displace(const std::vector<PodSlot>& nominees) {
  for (const PodSlot pod : nominees) {
    if (state_.pod(pod).pod.stand_in) {
      kept_gpus_.give_back(state_.pod(pod).node);
      continue;
    }
    if (state_.pod(pod).takes_over && workloads_->keeps_to_place(state_.pod(pod).pod)) {
      give_place_back(pod, NodeSlot{});
      continue;
    }
    if (state_.pod(pod).node_kept) queue_.of(state_.pod(pod).cls).reserve_from = Time{INT64_MIN};  // it has another
    withdraw_nomination(pod);
    enqueue(pod);
  }
  if (!nominees.empty()) queue_.unblock_all();
}

// A pod that comes already nominated, by Berth itself before a restart or by others. The next cycle finds out whether
// that holds.
void Engine::adopt_nomination(PodSlot slot) {
  const PodState& pod = state_.pod(slot);
  if (pod.phase != PodPhase::kPending || pod.pod.nominated_node.empty()) return;
  queue_.erase(slot);
  nominate(slot, state_.node_or_placeholder(pod.pod.nominated_node));
}

// Whether the place that the pod has elsewhere is there without it, too: a nominated pod counts in its domains, and one
// less there may make another domain too full for a spread constraint. To give the nomination up for that would be to
// be nominated again, in every cycle. Not charged as work: a single node has changed.
bool Engine::has_place_without_nomination(PodSlot pod, ClassQueue& cls) {
  const NodeSlot node = state_.pod(pod).node;
  if (cls.candidates.groups() == nullptr || !state_.node(node).present) return true;
  WorkBudget unlimited{INT64_MAX};
  state_.unassign(pod, PodPhase::kNotQueued);
  cls.candidates.refresh(state_, policies_, state_.pod_class(state_.pod(pod).cls), failure_sets_, unlimited);
  const bool found = cls.candidates.best().valid();
  state_.assign(pod, node, PodPhase::kNominated);
  return found;
}

// Whether the pod, whose nomination does not hold any more, fits on its node if those that come after it count nowhere;
// `displaced` are those in its way. Looks at pods on its node or seen by its inter-pod terms, which are taken off their
// nodes and put back; those with claims stay, since what was chosen for these could not be had again.
bool Engine::starts_without_lesser(PodSlot pod, ClassQueue& cls, std::vector<PodSlot>& displaced) {
  displaced.clear();
  const ClassId id = state_.pod(pod).cls;
  const NodeSlot node = state_.pod(pod).node;
  const Groups* groups = cls.candidates.groups();
  if (groups == nullptr || !cls.candidates.objection().empty() || !state_.node(node).present) return false;
  std::vector<std::pair<PodSlot, NodeSlot>> lesser;
  for (auto at = nominees_.upper_bound(pod); at != nominees_.end(); ++at) {
    const PodState& other = state_.pod(*at);
    Groups::Gone seen;
    const bool moves = state_.node(other.node).present && state_.pod_class(other.cls).claims.empty();
    if (moves && (other.node == node || groups->count_gone(other, state_, +1, seen)))
      lesser.emplace_back(*at, other.node);
  }
  if (lesser.empty()) return false;
  const auto fits = [&] {
    WorkBudget unlimited{INT64_MAX};
    cls.candidates.refresh(state_, policies_, state_.pod_class(id), failure_sets_, unlimited);
    std::vector<PodSlot> none;
    VictimSearch search(search_context(), state_.pod_class(id), cls.candidates.groups());
    return search.outlook(pod, node, none) == VictimSearch::Outlook::kReady && none.empty();
  };
  for (const auto& [other, home] : lesser) state_.unassign(other, PodPhase::kNotQueued);
  const bool starts = fits();
  for (const auto& [other, home] : lesser) {
    state_.assign(other, home, PodPhase::kNominated);
    if (!starts || fits()) continue;
    state_.unassign(other, PodPhase::kNotQueued);
    displaced.push_back(other);
  }
  for (const auto& [other, home] : lesser)
    if (!holds_room(state_.pod(other).phase)) state_.assign(other, home, PodPhase::kNominated);
  return starts;
}

// The turn of a nominated pod: it starts on its node if it fits there by now, else wherever it does; it goes on waiting
// while its nomination holds, and is an ordinary pod again when it no longer does. That this comes to an end is argued
// in docs/architecture.md#nominations. False: out of work.
bool Engine::follow_nomination(PodSlot pod, const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  using Outlook = VictimSearch::Outlook;
  const PodState& state = state_.pod(pod);
  const ClassId id = state.cls;
  const NodeSlot node = state.node;
  ClassQueue& cls = queue_.of(id);
  cls.last_used = cycle_;
  if (state.takes_over && !workloads_->may_begin(state.pod.workload)) return true;  // with all places or with none
  std::optional<KeptAside> aside;
  if (state.takes_over) aside.emplace(state_, node);
  // Whom it could still send away is asked for the others of its class only, or where it has sent nobody away.
  const bool alone = cls.pods.empty() && !state.node_kept;
  if (alone ? !cls.candidates.refresh(state_, policies_, state_.pod_class(id), failure_sets_, work)
            : !look_at(id, cls, work))
    return false;
  const bool elsewhere = cls.candidates.best().valid();
  const bool clears =
      state.node_kept && !elsewhere && cls.candidates.groups() == nullptr && cls.node_to_clear().valid();
  const bool changed = cls.candidates.groups() != nullptr || state.nominated_generation != state_.node(node).generation;
  if (!elsewhere && !clears && !changed) return true;
  if (!work.spend()) return false;
  VictimSearch search(search_context(), state_.pod_class(id), cls.candidates.groups());
  std::vector<PodSlot> displaced;
  auto outlook = cls.candidates.objection().empty() ? search.outlook(pod, node, displaced) : Outlook::kLost;
  if (outlook == Outlook::kReady && state.node_kept) {  // who comes before it has his turn there first
    const size_t sent = result.decisions.size();
    if (!Reserve{*this}.pass({pod}, limits, work, result)) return false;
    if (result.decisions.size() > sent) return follow_nomination(pod, limits, work, result);
  }
  const bool free = outlook == Outlook::kReady && displaced.empty();
  const bool stays = !free && state.takes_over && workloads_->keeps_to_place(state.pod);
  const bool moves = !free && !stays && (clears || (elsewhere && has_place_without_nomination(pod, cls)));
  if (outlook == Outlook::kLost && state.node_kept && search.fits_when_left(pod, node)) outlook = Outlook::kPromised;
  if (outlook == Outlook::kLost && !moves && starts_without_lesser(pod, cls, displaced)) outlook = Outlook::kReady;
  if (outlook == Outlook::kLost && stays) {  // no other place will do but one that is kept for it
    give_place_back(pod, NodeSlot{});
    queue_.unblock_all();
  } else if (outlook == Outlook::kLost || moves) {
    withdraw_nomination(pod);
    if (!moves && state.nomination_cost && ++state_.mutable_pod(pod).lost_nominations >= options_.nominations_max)
      pause_preemption(pod);
    enqueue(pod);
    queue_.unblock_all();  // its own turn comes next, and others may take the room that it gave back
  } else if (outlook == Outlook::kReady && state.node_kept && gives_way(pod, node)) {
    held_ = pod;
    return false;
  } else if (outlook == Outlook::kReady) {
    if (pod == held_) held_ = {};
    const bool passes = state.node_kept && std::ranges::any_of(state_.node(node).pods, [&](PodSlot other) {
                          return VictimSearch::is_kept_for_later(pod, other, state_);
                        });
    // Who has been told when enough is free there goes on waiting beside it.
    const size_t goes_on = std::erase_if(displaced, [&](PodSlot other) {
      const PodState& kept = state_.pod(other);
      const bool alone_decides = queue_.of(kept.cls).candidates.groups() == nullptr;
      return kept.node_kept && kept.free_by < Time{INT64_MAX} && alone_decides &&
             state_.pod_class(kept.cls).claims.empty();
    });
    const GuessesStay guesses(state_, node);
    displace(displaced);
    withdraw_nomination(pod);
    std::optional<KeptAside> beside;
    if (goes_on > 0 || passes) beside.emplace(state_, node);
    place(pod, node, result);
  } else {
    state_.mutable_pod(pod).nominated_generation = state_.node(node).generation;
  }
  return true;
}

}  // namespace berth::engine
