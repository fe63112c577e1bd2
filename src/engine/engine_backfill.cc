// The part of Engine that lends kept room to pods that will have ended before it is needed (engine/engine_reserve.h).
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "engine/engine_reserve.h"
#include "engine/kept_aside.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

// Pods of one class that are looked at for a node in one cycle, those that end first.
constexpr size_t kLookedAtMax = 64;

// False: what the class asks for is not there without those either. Shares of GPUs are not looked at.
bool may_have_room(const State& state, const PodClass& cls, NodeSlot node, const std::vector<PodSlot>& without) {
  const NodeView view = state.view(node);
  return std::ranges::all_of(cls.requests, [&](const ResourceAmount& request) {
    Int128 free = view.free(request.id);
    for (const PodSlot pod : without) {
      const PodClass& has = state.pod_class(state.pod(pod).cls);
      if (has.shares_gpu && request.id == view.share_resource()) return true;
      free += has.request(request.id);
    }
    return free >= request.amount;
  });
}

}  // namespace

// It has kept room until its declared end, which has passed.
bool Engine::Reserve::is_late(PodSlot slot) const {
  const PodState& pod = engine.state_.pod(slot);
  if (!pod.backfilled || pod.pod.terminating || pod.evicting) return false;
  const auto end = engine.expected_end(slot);
  return end && *end <= engine.now_ && !engine.rules_.is_protected(pod.pod) && pod.evictable_from <= engine.now_;
}

// When the pod has left its node, for those who wait for that. Nothing is known of one that runs longer than it said,
// unless it can be told to leave, or has been.
std::optional<Time> Engine::Reserve::end_for_reservation(PodSlot slot) const {
  const auto end = engine.expected_end(slot);
  if (!end || *end > engine.now_) return end;
  const PodState& pod = engine.state_.pod(slot);
  if (pod.pod.terminating || pod.evicting || is_late(slot)) return engine.now_;
  return std::nullopt;
}

Time Engine::Reserve::free_by(VictimSearch& search, PodSlot waiting, NodeSlot node) const {
  const std::vector<PodSlot>& pods = engine.state_.node(node).pods;
  if (std::ranges::none_of(pods, [&](PodSlot pod) { return engine.expected_end(pod).has_value(); }))
    return Time{INT64_MAX};
  const auto end = search.free_by(waiting, node, [&](PodSlot pod) { return end_for_reservation(pod); });
  return end ? std::max(*end, engine.now_) : Time{INT64_MAX};
}

std::vector<PodSlot> Engine::Reserve::kept_on(NodeSlot node) const {
  std::vector<PodSlot> out;
  std::ranges::copy_if(engine.nominees_, std::back_inserter(out), [&](PodSlot slot) {
    const PodState& pod = engine.state_.pod(slot);
    return pod.node_kept && pod.node == node;
  });
  return out;
}

// When enough is free for the pod, told anew where what it was told holds no longer. False: out of work units.
bool Engine::Reserve::renew(PodSlot waiting, WorkBudget& work, CycleResult& result) {
  const ClassId id = engine.state_.pod(waiting).cls;
  const NodeSlot node = engine.state_.pod(waiting).node;
  ClassQueue& cls = engine.queue_.of(id);
  const bool declared = std::ranges::any_of(engine.state_.node(node).pods,
                                            [&](PodSlot pod) { return engine.expected_end(pod).has_value(); });
  if (!declared && engine.state_.pod(waiting).told_free_by == Time{INT64_MAX}) {
    engine.state_.revise(waiting, [](PodState& pod) { pod.free_by = Time{INT64_MAX}; });
    return true;
  }
  if (work.left <= 0 || !engine.look_at(id, cls, work)) return false;
  VictimSearch search(engine.search_context(), engine.state_.pod_class(id), cls.candidates.groups());
  const Time by = free_by(search, waiting, node);
  engine.state_.revise(waiting, [by](PodState& kept) { kept.free_by = by; });
  const PodState& pod = engine.state_.pod(waiting);
  if (pod.free_by <= engine.now_) evict_late(waiting, search, result);
  work.spend(1 + search.take_effort());
  const bool told = pod.told_free_by < Time{INT64_MAX};
  const Time to_tell = told_of(pod);
  if (to_tell > pod.told_free_by || (!told && to_tell < Time{INT64_MAX})) tell(waiting, result);
  return true;
}

// The room is needed now, and nothing else keeps the pod from it: those leave who should have ended, as few as must.
void Engine::Reserve::evict_late(PodSlot waiting, VictimSearch& search, CycleResult& result) {
  const NodeSlot node = engine.state_.pod(waiting).node;
  std::vector<std::pair<Time, PodSlot>> late;
  for (const PodSlot pod : engine.state_.node(node).pods)
    if (is_late(pod)) late.emplace_back(*engine.expected_end(pod), pod);
  std::sort(late.begin(), late.end(), [&](const auto& a, const auto& b) {  // who is latest leaves first
    return a.first != b.first ? a.first > b.first : QueueOrder{&engine.state_}(a.second, b.second);
  });
  std::vector<PodSlot> may_leave;
  for (const auto& [end, pod] : late) may_leave.push_back(pod);
  for (const PodSlot victim : search.must_leave(waiting, node, may_leave)) {
    const PodState& leaves = engine.state_.pod(victim);
    engine.state_.revise(victim, [](PodState& evicted) { evicted.evicting = true; });
    result.decisions.push_back({.kind = DecisionKind::kEvict,
                                .pod_uid = leaves.pod.uid,
                                .namespace_name = leaves.pod.namespace_name,
                                .pod_name = leaves.pod.name,
                                .node_name = engine.state_.node(node).node.name,
                                .preemptor_uid = engine.state_.pod(waiting).pod.uid});
  }
}

bool Engine::Reserve::may_borrow(PodSlot slot, NodeSlot node, Time until) const {
  const model::Pod& pod = engine.state_.pod(slot).pod;
  return pod.workload.empty() && pod.runtime && engine.now_ + *pod.runtime <= until &&
         !engine.rules_.is_protected(pod) && !engine.gives_way(slot, node);
}

// Gives what is kept on the node to who fits there now and has ended before it is needed, in the queue's order.
bool Engine::Reserve::lend(NodeSlot node, const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  const std::vector<PodSlot> kept = kept_on(node);
  Time until{INT64_MAX};
  for (const PodSlot pod : kept) {
    const PodState& state = engine.state_.pod(pod);
    if (state.free_by == Time{INT64_MAX} || !engine.state_.pod_class(state.cls).claims.empty()) return true;
    until = std::min(until, state.free_by);
  }
  if (until <= engine.now_) return true;
  const auto fits = [&](ClassId id, ClassQueue& cls) {
    const FailureSetId failure = cls.candidates.failure(node);
    if (!cls.candidates.objection().empty() || !failure.valid() || failure == kFits) return false;
    if (!engine.failure_sets_.preemption_helps(failure)) return false;
    VictimSearch search(engine.search_context(), engine.state_.pod_class(id), cls.candidates.groups());
    const bool out = search.fits_without(node, kept);
    work.spend(1 + search.take_effort());
    return out;
  };
  std::vector<PodSlot> borrowers;
  for (const ClassId id : engine.queue_.blocked()) {
    ClassQueue& cls = engine.queue_.of(id);
    if (cls.by_runtime.empty() || engine.now_ + cls.by_runtime.begin()->first > until) continue;
    if (work.left <= 0 || !engine.look_at(id, cls, work)) return false;
    if (!fits(id, cls)) continue;
    size_t looked_at = 0;
    for (const auto& [runtime, pod] : cls.by_runtime) {
      if (engine.now_ + runtime > until || looked_at++ == kLookedAtMax) break;
      if (may_borrow(pod, node, until)) borrowers.push_back(pod);
    }
  }
  std::sort(borrowers.begin(), borrowers.end(), QueueOrder{&engine.state_});
  for (const PodSlot pod : borrowers) {
    const ClassId id = engine.state_.pod(pod).cls;
    ClassQueue& cls = engine.queue_.of(id);
    if (std::ssize(result.decisions) >= limits.max_binds) return false;
    if (work.left <= 0 || !engine.look_at(id, cls, work)) return false;
    if (!fits(id, cls)) continue;
    engine.queue_.erase(pod);
    const KeptAside aside(engine.state_, node);
    engine.place(pod, node, result);
    engine.state_.mutable_pod(pod).backfilled = true;
  }
  return true;
}

bool Engine::Reserve::pass_kept(const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  std::vector<PodSlot> kept = engine.reserved_pods();
  for (const auto& [node, each] : engine.kept_gpus_.all()) kept.push_back(each.stand_in);
  for (const auto& [id, room] : engine.admission().kept().rooms)
    if (room.keeps_places())
      std::ranges::copy_if(engine.workloads_->standing(id, false), std::back_inserter(kept),
                           [&](PodSlot slot) { return is_kept_room(engine.state_.pod(slot)); });
  return pass(kept, limits, work, result);
}

// Of those that are kept for others there: without whom the pod may have the node. What is kept for workloads is there
// for pods that have waited as long.
std::vector<PodSlot> Engine::Reserve::later_than(PodSlot pod, const std::vector<PodSlot>& kept) const {
  const QueueOrder before{&engine.state_};
  const bool waited = has_waited(engine, pod);
  std::vector<PodSlot> out;
  std::ranges::copy_if(kept, std::back_inserter(out), [&](PodSlot other) {
    return before(pod, other) && (waited || engine.state_.pod(other).pod.workload.empty());
  });
  return out;
}

// Whether the pod, which may be nominated for another node, could start on this one without those. False: out of work
// units.
bool Engine::Reserve::starts_without(PodSlot pod, NodeSlot node, const std::vector<PodSlot>& later, WorkBudget& work,
                                     bool& starts) {
  State& state = engine.state_;
  const ClassId id = state.pod(pod).cls;
  ClassQueue& cls = engine.queue_.of(id);
  const NodeSlot home = state.pod(pod).phase == PodPhase::kNominated ? state.pod(pod).node : NodeSlot{};
  if (work.left <= 0 || !engine.look_at(id, cls, work)) return false;
  const bool counts_at_home = home.valid() && cls.candidates.groups() != nullptr;
  WorkBudget unlimited{INT64_MAX};
  if (counts_at_home) {
    state.unassign(pod, PodPhase::kNotQueued);
    cls.candidates.refresh(state, engine.policies_, state.pod_class(id), engine.failure_sets_, unlimited);
  }
  VictimSearch search(engine.search_context(), state.pod_class(id), cls.candidates.groups());
  starts = cls.candidates.objection().empty() && search.fits_without(node, later);
  work.spend(1 + search.take_effort());
  if (counts_at_home) state.assign(pod, home, PodPhase::kNominated);
  return true;
}

// In the queue's order, each to the first of the nodes by name. Who has a node kept may have another sooner.
bool Engine::Reserve::pass(const std::vector<PodSlot>& all, const CycleLimits& limits, WorkBudget& work,
                           CycleResult& result) {
  const QueueOrder before{&engine.state_};
  std::map<uint64_t, std::vector<PodSlot>> by_node;
  for (const PodSlot kept : all) by_node[engine.state_.node(engine.state_.pod(kept).node).order].push_back(kept);
  absl::btree_set<PodSlot, QueueOrder> heads(before);
  const auto add_head = [&](PodSlot pod) {
    if (std::ranges::any_of(all, [&](PodSlot kept) { return before(pod, kept); })) heads.insert(pod);
  };
  for (const ClassId id : engine.queue_.blocked())
    if (const auto& pods = engine.queue_.of(id).pods; !pods.empty()) add_head(*pods.begin());
  for (const PodSlot pod : engine.reserved_pods()) add_head(pod);
  bool gives_back = false;  // what was kept for one who has passed
  std::vector<PodSlot> passed;
  while (!heads.empty()) {
    const PodSlot pod = heads.extract(heads.begin()).value();
    const PodState& passing = engine.state_.pod(pod);
    const ClassId id = passing.cls;
    for (const auto& [order, kept] : by_node) {
      const NodeSlot node = engine.state_.pod(kept.front()).node;
      if (passing.phase == PodPhase::kNominated && passing.node == node) continue;  // its own
      const std::vector<PodSlot> later = later_than(pod, kept);
      if (later.empty() || !may_have_room(engine.state_, engine.state_.pod_class(id), node, later)) continue;
      if (std::ssize(result.decisions) >= limits.max_binds) return false;
      bool starts = false;
      if (!starts_without(pod, node, later, work, starts)) return false;
      if (!starts) continue;
      if (engine.gives_way(pod, node)) {
        engine.held_ = pod;
        return false;
      }
      if (pod == engine.held_) engine.held_ = {};
      if (passing.phase == PodPhase::kNominated) {
        engine.withdraw_nomination(pod);
        gives_back = true;
      } else {
        engine.queue_.erase(pod);
      }
      passed.insert(passed.end(), later.begin(), later.end());
      const KeptAside aside(engine.state_, node);
      engine.place(pod, node, result);
      if (const auto& pods = engine.queue_.of(id).pods; !pods.empty()) add_head(*pods.begin());
      break;
    }
  }
  return choose_anew(passed, work, result) && !gives_back;
}

// Those on whose node others have passed have the one kept on which enough is free the soonest now, if that is another
// and known: be it one that was kept until then for who has passed. False: out of work units.
bool Engine::Reserve::choose_anew(const std::vector<PodSlot>& passed, WorkBudget& work, CycleResult& result) {
  const State& state = engine.state_;
  const absl::btree_set<PodSlot, QueueOrder> pods(passed.begin(), passed.end(), QueueOrder{&state});
  for (const PodSlot pod : pods) {
    if (!engine.nominees_.contains(pod) || !state.pod(pod).node_kept) continue;
    const auto is_known = [](NodeSlot, Time free_by) { return free_by < Time{INT64_MAX}; };
    if (!keep_another(pod, is_known, work, result)) return false;
  }
  return true;
}

bool Engine::Reserve::backfill(const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  std::vector<NodeSlot> nodes;  // each once, in the order of those for whom they are kept
  for (const PodSlot pod : engine.reserved_pods()) {
    if (!renew(pod, work, result)) return false;
    const NodeSlot node = engine.state_.pod(pod).node;
    if (std::find(nodes.begin(), nodes.end(), node) == nodes.end()) nodes.push_back(node);
  }
  return std::ranges::all_of(nodes, [&](NodeSlot node) { return lend(node, limits, work, result); });
}

}  // namespace berth::engine
