#include "engine/engine.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine_reserve.h"
#include "engine/engine_set.h"
#include "engine/queued_workloads.h"
#include "engine/txn.h"

namespace berth::engine {

namespace {

// To whom, and how much, when nobody is there.
bool offers_same(const model::Node& a, const model::Node& b) {
  return a.allocatable == b.allocatable && a.unschedulable == b.unschedulable && a.labels == b.labels &&
         a.taints == b.taints;
}

}  // namespace

struct Engine::Wake {
  bool may_place = false;  // each blocked class has been looked at since placing last stopped
  bool complete = false;   // and in this very cycle
};

void Engine::apply(Event event) {
  std::visit([this](auto& e) { on(std::move(e)); }, event);
  settle_freed();
  reclassify();
}

// Selectors that came or went change the classes of the pods that they see.
void Engine::reclassify() {
  while (state_.has_stale()) {
    for (const PodSlot slot : state_.take_stale()) {
      const PodPhase phase = state_.pod(slot).phase;
      if (phase != PodPhase::kNominated) leave_queue(slot);
      state_.reclassify(slot);
      PodState& pod = state_.mutable_pod(slot);
      pod.reported_version = 0;
      pod.awaits_report = false;
      if (phase == PodPhase::kPending || phase == PodPhase::kBackoff) settle(slot);
    }
  }
}

void Engine::on(NodeUpserted&& event) {
  const NodeSlot known = state_.find_node(event.node.name);
  const bool is_same = known.valid() && state_.node(known).present && offers_same(state_.node(known).node, event.node);
  workloads_->node_changed(state_.upsert_node(std::move(event.node)), !is_same);
}
void Engine::on(const NodeDeleted& event) {
  if (const NodeSlot slot = state_.find_node(event.name); slot.valid()) workloads_->node_changed(slot, false);
  state_.remove_node(event.name);
}

void Engine::on(NodesReplaced&& event) {
  absl::flat_hash_set<std::string> listed;
  listed.reserve(event.nodes.size());
  for (model::Node& node : event.nodes) {
    listed.insert(node.name);
    on(NodeUpserted{std::move(node)});
  }
  std::vector<std::string> gone;
  for (const auto& [name, slot] : state_.nodes_by_name())
    if (state_.node(slot).present && !listed.contains(name)) gone.push_back(name);
  for (const std::string& name : gone) on(NodeDeleted{name});
}

void Engine::on(PodUpserted&& event) { upsert(std::move(event.pod)); }

void Engine::upsert(model::Pod&& pod) {
  PodSlot slot = state_.find_pod(pod.uid);
  if (pod.terminal) {
    if (!slot.valid()) return;
    if (pod.rejected_by_kubelet)
      rejections_.record(pod.owner_uid, now_, options_.backoff_initial, options_.rejection_backoff_max);
    else note_runtime(state_.pod(slot));
    return forget_pod(slot, true);
  }
  if (slot.valid()) workloads_->owners().forget(state_.pod(slot).pod);
  workloads_->owners().complete(pod);
  if (!slot.valid()) {
    resolve_placement(pod);
    slot = state_.add_pod(std::move(pod));
    if (measures_mix_) state_.mutable_mix().observe(state_.pod_class(state_.pod(slot).cls), state_.resources());
    take_up(slot);
    return adopt_nomination(slot);
  }
  if (const model::Pod& known = state_.pod(slot).pod; !known.workload.empty()) {  // whoever edits its annotations
    pod.workload = known.workload;
    pod.pod_set = known.pod_set;
  }
  if (state_.pod(slot).phase == PodPhase::kNominated && waits(pod)) {  // and goes on waiting for its node
    nominees_.erase(slot);
    replace(slot, std::move(pod));
    nominees_.insert(slot);
    return;
  }
  const bool newly_nominated =
      pod.nominated_node != state_.pod(slot).pod.nominated_node || (state_.pod(slot).pod.gated && !pod.gated);
  leave_queue(slot);
  replace(slot, std::move(pod));
  take_up(slot);
  if (newly_nominated) adopt_nomination(slot);
}

void Engine::on(const PodDeleted& event) {
  if (const PodSlot slot = state_.find_pod(event.uid); slot.valid()) forget_pod(slot);
}

void Engine::on(PodsReplaced&& event) {
  absl::flat_hash_set<PodSlot> unlisted;
  for (const PodSlot slot : state_.pods())
    if (!state_.pod(slot).pod.stand_in) unlisted.insert(slot);
  for (const model::Pod& pod : event.pods)
    if (!unlisted.empty()) unlisted.erase(state_.find_pod(pod.uid));
  std::vector<std::string> gone;
  for (const PodSlot slot : unlisted) gone.push_back(state_.pod(slot).pod.uid);  // deterministic: sorted below
  std::sort(gone.begin(), gone.end());
  state_.reserve_pods(event.pods.size());
  for (model::Pod& pod : event.pods) upsert(std::move(pod));
  for (const std::string& uid : gone) on(PodDeleted{uid});
}

void Engine::on(const StorageUpserted& event) {
  state_.upsert_storage(event.object);
  workloads_->look_again();
}
void Engine::on(const StorageDeleted& event) {
  state_.remove_storage(event.kind, event.key);
  workloads_->look_again();
}
void Engine::on(const StorageReplaced& event) {
  state_.replace_storage(event.kind, event.objects);
  workloads_->look_again();
}

void Engine::on(const BindProgress& event) {
  const PodSlot slot = state_.find_pod(event.uid);
  if (!slot.valid()) return;  // deleted meanwhile
  PodState& pod = state_.mutable_pod(slot);
  if (pod.phase <= PodPhase::kNominated || pod.phase == PodPhase::kBound) return;  // the watch was faster
  switch (event.outcome) {
    case BindOutcome::kPreBinding: return state_.assign(slot, pod.node, PodPhase::kPreBinding);
    case BindOutcome::kSent: return state_.assign(slot, pod.node, PodPhase::kBinding);
    case BindOutcome::kSucceeded:
      state_.assign(slot, pod.node, PodPhase::kBound);
      return state_.settle_strangers(pod.node);
    case BindOutcome::kUnknown: return state_.assign(slot, pod.node, PodPhase::kUnknown);
    case BindOutcome::kFailed: break;
  }
  const auto shift = std::min<uint32_t>(pod.attempts++, 20);
  pod.backoff_until = now_ + Duration{std::min(options_.backoff_initial.nanos << shift, options_.backoff_max.nanos)};
  const NodeSlot stood = pod.node;
  state_.unassign(slot, PodPhase::kNotQueued);
  replace(slot, model::Pod(pod.pod));  // its namespace may have changed its mind since the pod was placed
  if (const std::string workload = pod.pod.workload; !workload.empty()) {  // its place is kept for its next try
    workloads_->give_up_place(slot);
    workloads_->refill(workload, stood);
  }
  take_up(slot);
}

// New facts of a pod. What it was told was said of its class: in another class it is told afresh.
void Engine::replace(PodSlot slot, model::Pod&& pod) {
  const ClassId before = state_.pod(slot).cls;
  resolve_placement(pod);
  pod.gave_up = state_.pod(slot).paused;
  state_.replace_pod(slot, std::move(pod));
  PodState& state = state_.mutable_pod(slot);
  if (state.cls == before) return;
  state.reported_version = 0;
  state.awaits_report = false;
}

// `ended`: kubelet has said so; else nobody knows.
void Engine::forget_pod(PodSlot slot, bool ended) {
  const std::string workload = state_.pod(slot).pod.workload;
  const bool makes_way = state_.pod(slot).evicting;
  const NodeSlot node = holds_room(state_.pod(slot).phase) && !makes_way ? state_.pod(slot).node : NodeSlot{};
  leave_queue(slot);
  if (!workload.empty()) workloads_->part(slot);
  if (holds_room(state_.pod(slot).phase)) {
    const NodeSlot stood = state_.pod(slot).node;
    state_.unassign(slot, PodPhase::kNotQueued);
    state_.settle_strangers(stood, ended ? state_.pod(slot).pod.full_name() : std::string());
  }
  workloads_->owners().forget(state_.pod(slot).pod);
  state_.remove_pod(slot);
  if (!workload.empty()) workloads_->refill(workload, node);
}

// Takes a waiting pod out of the queue or of its back-off, before its facts change.
void Engine::leave_queue(PodSlot slot) {
  PodState& pod = state_.mutable_pod(slot);
  if (slot == held_) held_ = {};
  if (pod.phase == PodPhase::kPending) queue_.erase(slot);
  else if (pod.phase == PodPhase::kBackoff) backoff_.erase({pod.backoff_until, pod.pod.uid});
  else if (pod.phase == PodPhase::kNominated) return withdraw_nomination(slot);
  else return;
  pod.phase = PodPhase::kNotQueued;
}

// Puts a pod where its facts say: on its node, in the queue, in back-off, or nowhere.
void Engine::settle(PodSlot slot) {
  PodState& pod = state_.mutable_pod(slot);
  if (!pod.pod.node_name.empty()) {
    if (!holds_room(pod.phase)) {
      pod.placed_at = Time{INT64_MAX};
      newly_seen_.push_back(slot);
    }
    pod.attempts = 0;
    const NodeSlot node = state_.node_or_placeholder(pod.pod.node_name);
    if (!holds_room(pod.phase) || pod.node != node) pod.listed_before = false;  // others have bound it: who knows when
    state_.assign(slot, node, PodPhase::kBound);
    return state_.settle_strangers(node);
  }
  if (holds_room(pod.phase)) return;  // our own decision, which the watch has not seen yet
  if (!waits(pod.pod)) return;
  if (const Time until = backs_off_until(pod); until > now_) back_off(slot, until);
  else enqueue(slot);
}

void Engine::enqueue(PodSlot slot) {
  PodState& pod = state_.mutable_pod(slot);
  pod.phase = PodPhase::kPending;
  queue_.push(slot);
  if (!pod.queued_at) newly_seen_.push_back(slot);
  if (pod.reported_version != 0 && !pod.awaits_report) return;
  pod.awaits_report = true;
  queue_.await_report(slot);
}

CycleResult Engine::run_cycle(Time now, const CycleLimits& limits) {
  check(now >= now_, "time does not go back");
  now_ = now;
  ++cycle_;
  CycleResult result;
  WorkBudget work{limits.work};
  state_.mutable_mix().settle();
  release_backoffs(now);
  meet_arrivals();
  release_refused();
  end_pauses();
  Reserve{*this}.tidy_gpus();
  note_new();
  ratios_.settle(now_);
  const Wake wake = wake_blocked(work);
  let_by_ = held_;
  Reserve kept{*this};
  const bool placed = wake.may_place && place_waiting(limits, work, result) && kept.pass_kept(limits, work, result);
  kept.tidy_gpus();  // of those who have passed
  const bool admits = wake.complete && placed && kept.run(work, result) && kept.backfill(limits, work, result);
  for (const Decision& decision : result.decisions) {  // whoever had the room kept that they have now is told anew
    if (decision.kind != DecisionKind::kBind || admission().kept().rooms.empty()) continue;
    const PodSlot pod = state_.find_pod(decision.pod_uid);
    if (state_.pod(pod).pod.workload.empty()) workloads_->kept_for_pod(pod, state_.pod(pod).node);
  }
  const bool finished = admits && admit(work, result);
  const bool all_told = report(limits.max_reports, result);
  if (placed) held_ = {};
  result.held = (held_.valid() && held_ != let_by_) || (admits && workloads_->held().valid());
  result.unfinished = !finished || !all_told;
  if (finished) set_too_large_ = false;
  result.work_used = limits.work - std::max<int64_t>(work.left, 0);
  queue_.drop_idle(options_.idle_classes, nominees_);
  find_wakeup(result);
  return result;
}

// Looks whether what changed since the last cycle lets a blocked class fit somewhere, going round from where the work
// units ran out last time. Nothing is placed before a round is complete, or a pod could take the room of one that comes
// before it; then half of the units is for placing, which therefore gets its turn in a busy cluster, too. Classes at
// the start of a round that took several cycles are looked at again, as far as the other half goes.
Engine::Wake Engine::wake_blocked(WorkBudget& work) {
  const auto& blocked = queue_.blocked();
  const auto start = blocked.lower_bound(ClassId{std::exchange(wake_cursor_, 0)});
  const std::vector<ClassId> rest(start, blocked.end()), again(blocked.begin(), start);
  const int64_t kept = work.left / 2;
  work.left -= kept;
  const bool round = wake(rest, work);
  const bool complete = round && wake(again, work);
  work.left = std::max<int64_t>(work.left, 0) + kept;
  return {.may_place = round, .complete = complete};
}

bool Engine::wake(const std::vector<ClassId>& classes, WorkBudget& work) {
  for (const ClassId id : classes) {
    ClassQueue& cls = queue_.of(id);
    if (!look_at(id, cls, work)) {
      wake_cursor_ = id.value;
      return false;
    }
    if (cls.candidates.best().valid() || cls.node_to_clear().valid()) queue_.set_blocked(id, false);
  }
  return true;
}

// Brings a class's candidates up to the state, and where none fits, who could make room for it. False: out of work
// units.
bool Engine::look_at(ClassId id, ClassQueue& cls, WorkBudget& work) {
  const bool done = cls.candidates.refresh(state_, policies_, state_.pod_class(id), failure_sets_, work) &&
                    look_for_victims(id, cls, work);
  cls.looked_at = done ? cycle_ : 0;
  return done;
}

// Gives each waiting pod its turn, and each nominated one among them: whoever comes first has first choice. So have
// workloads that have places kept: what they could have at once is kept for them until admission has its turn.
bool Engine::place_waiting(const CycleLimits& limits, WorkBudget& work, CycleResult& result) {
  const std::vector<PodSlot> nominees(nominees_.begin(), nominees_.end());
  const QueueOrder before{&state_};
  auto nominee = nominees.begin();
  const std::vector<quota::WorkloadId> may_move = workloads_->who_may_move();
  std::span<const quota::WorkloadId> owners(may_move);
  SetTurn set;
  const auto sent = [&] { return static_cast<int64_t>(result.decisions.size()); };
  while (true) {
    while (nominee != nominees.end() && state_.pod(*nominee).phase != PodPhase::kNominated) ++nominee;
    const PodSlot head = queue_.head();
    const bool follows = nominee != nominees.end() && (!head.valid() || before(*nominee, head));
    if (!follows && !head.valid()) return true;
    if (sent() >= limits.max_binds) return false;
    if (const PodSlot next = follows ? *nominee : head; !owners.empty() && state_.pod(next).pod.workload.empty())
      workloads_->move_kept(owners, next, work);
    if (work.left <= 0) return false;
    if (!follows && may_search_set(head, set)) {
      set.searched = true;
      if (!place_set(set, limits, work, result)) return false;
      continue;
    }
    if (follows ? !follow_nomination(*nominee++, limits, work, result) : !take_turn(head, work, result)) return false;
  }
}

// The best node for the first pod of the queue, or room made for it; else its class is blocked. False: out of work.
bool Engine::take_turn(PodSlot pod, WorkBudget& work, CycleResult& result) {
  const ClassId id = state_.pod(pod).cls;
  ClassQueue& cls = queue_.of(id);
  cls.last_used = cycle_;
  if (!look_at(id, cls, work)) return false;
  if (const NodeSlot node = cls.candidates.best(); node.valid()) {
    if (gives_way(pod, node)) {
      held_ = pod;
      return false;
    }
    if (pod == held_) held_ = {};
    queue_.erase(pod);
    place(pod, node, result);
    kept_gpus_.give_back_of(state_.pod(pod).pod.uid);
  } else if (cls.node_to_clear().valid() && !Reserve::comes_first(*this, pod)) {
    return make_room(pod, cls, result);
  } else {
    queue_.set_blocked(id, true);
    if (!admission().kept().rooms.empty()) workloads_->configure();  // those are told who comes before them
  }
  return true;
}

// Gives a node to a pod that is in no queue.
void Engine::place(PodSlot pod, NodeSlot node, CycleResult& result) {
  auto [feasible, feasible_count] = fitting_nodes(pod);
  Txn txn(state_);
  txn.place(pod, node);
  const NodeView view = state_.view(node);
  for (const ResourceAmount& request : state_.pod_class(state_.pod(pod).cls).requests)
    check(view.used(request.id) <= view.allocatable(request.id), "a decision never puts a node above its allocatable");
  if (state_.pod(pod).devices.amount > 0)
    check(state_.node(node).gpus_used() - state_.node(node).gpus_promised() <= view.allocatable(view.share_resource()),
          "a decision never shares a GPU that the node does not have");
  txn.commit();
  PodState& placed = state_.mutable_pod(pod);
  placed.placed_at = now_;
  placed.backfilled = false;
  placed.reported_version = 0;
  placed.awaits_report = false;
  queue_.wake_friends(state_.pod_class(placed.cls));
  result.decisions.push_back({DecisionKind::kBind,
                              placed.pod.uid,
                              placed.pod.namespace_name,
                              placed.pod.name,
                              state_.node(node).node.name,
                              nullptr,
                              state_.volumes_to_bind(pod),
                              {},
                              placed.devices,
                              std::move(feasible),
                              feasible_count});
}

}  // namespace berth::engine
