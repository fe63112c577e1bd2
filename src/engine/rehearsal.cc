#include "engine/rehearsal.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"
#include "engine/engine_reserve.h"
#include "engine/in_the_way.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

constexpr int64_t kIdleWakeupsMax = 64;  // one after another, when nothing is left to end

}  // namespace

Engine::Rehearsal::Rehearsal(const Engine& engine, int64_t thousandths, const ForecastLimits& within)
    : real(engine), limits(within), ratio(thousandths), now(engine.now_), second(engine.policies_, options_of(engine)) {
  second.workloads_->rehearse();
  take_over_cluster();
  take_over_workloads();
  take_over_pods();
  take_over_kept_gpus();
}

// Of nodes that are left to cuts: what is kept beside their GPUs.
void Engine::Rehearsal::take_over_kept_gpus() {
  const State& state = real.state_;
  for (const auto& [node, kept] : real.kept_gpus_.all()) {
    const PodClass& cls = state.pod_class(state.pod(kept.stand_in).cls);
    GpusKept beside{state.node(node).node.name, kept.owner, asked_beside_gpus(state, cls)};
    if (!beside.amounts.empty()) second.apply(std::move(beside));
  }
}

bool Engine::Rehearsal::waits_behind_cuts(const std::string& uid) const {
  const PodSlot pod = second.state_.find_pod(uid);
  const quota::Admission& admission = second.admission();
  const quota::WorkloadId id = admission.find(uid);
  if (!pod.valid() && !id.valid()) return false;
  const QueueRank rank =
      pod.valid() ? queue_rank(second.state_.pod(pod).pod) : queue_rank(admission.status(id).workload);
  const auto is_large_enough = [&](NodeSlot node, const model::ResourceList& requests) {
    const model::ResourceList& has = second.state_.node(node).node.allocatable;
    return std::ranges::all_of(requests, [&](const auto& asked) { return asked.second <= has.get(asked.first); });
  };
  const auto is_in_the_way = [&](const auto& kept) {
    const NodeSlot node = kept.first;
    if (queue_rank(second.state_.pod(kept.second.stand_in).pod) > rank) return false;
    if (pod.valid()) return is_large_enough(node, second.state_.pod(pod).pod.spec->requests);
    return std::ranges::any_of(admission.status(id).workload.pod_sets,
                               [&](const model::PodSet& set) { return is_large_enough(node, set.requests); });
  };
  if (std::ranges::any_of(second.kept_gpus_.all(), is_in_the_way)) return true;
  if (!id.valid()) return false;
  const quota::QuotaTree& tree = admission.ledger().tree();
  const quota::QuotaNode own = tree.queue(admission.status(id).cluster_queue);
  return own.valid() && std::ranges::any_of(admission.kept().rooms, [&](const auto& room) {
           return room.first != id && room.second.wants_cut && tree.root(room.second.queue) == tree.root(own);
         });
}

void Engine::Rehearsal::take_over_cluster() {
  second.apply(ClockAdvanced{real.now_});
  const State& state = real.state_;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (state.node(slot).present) second.apply(NodeUpserted{state.node(slot).node});
    const bool is_kept = real.kept_gpus_.all().contains(slot);
    leaves_to_cuts |= is_kept;
    if (state.node(slot).repartitioning || is_kept) second.apply(NodeRepartitioning{name, true});
  }
  std::map<std::string, NamespaceUpserted> spaces;
  for (const auto& [name, labels] : state.peers().all_namespace_labels()) spaces[name].labels = labels;
  for (const auto& [name, placement] : real.namespace_placement_) spaces[name].placement = placement;
  for (const std::string& name : real.rules_.protecting_namespaces()) spaces[name].protects_pods = true;
  for (auto& [name, space] : spaces) {
    space.name = name;
    second.apply(space);
  }
  for (model::StorageObject& object : state.volumes().objects()) second.apply(StorageUpserted{std::move(object)});
  for (model::DisruptionBudget& budget : real.rules_.budgets()) second.apply(BudgetUpserted{std::move(budget)});
  const quota::Admission& admission = real.admission();
  const auto configure = [&](const auto& objects) {
    for (const auto& [name, object] : objects) second.apply(QueueObjectUpserted{object});
  };
  const auto with_spent = [&](auto objects, const auto& key_of) {
    for (auto& [name, object] : objects) object.spent = admission.spending().spent(key_of(name), real.now_);
    configure(objects);
  };
  configure(admission.flavors());
  configure(admission.cohorts());
  with_spent(admission.cluster_queues(), [](const std::string& name) { return std::pair(std::string(), name); });
  with_spent(admission.local_queues(), [](const auto& key) { return key; });
  configure(admission.checks());
}

void Engine::Rehearsal::take_over_workloads() {
  for (const quota::WorkloadId id : real.workloads_->all()) {
    const quota::WorkloadStatus& status = real.admission().status(id);
    if (status.phase == quota::WorkloadPhase::kFinished) continue;
    model::Workload workload = status.workload;
    const bool has_quota = status.phase != quota::WorkloadPhase::kPending;
    if (has_quota && !status.evicted.empty()) leaving_.insert(workload.full_name());
    if (!has_quota || !status.evicted.empty()) {
      second.apply(WorkloadUpserted{std::move(workload)});
      continue;
    }
    const std::optional<quota::Term> term = real.admission().term(id);
    if (term) workload.past_execution = term->before;
    const std::string uid = workload.uid;
    second.apply(WorkloadAdmitted{std::move(workload),
                                  {.cluster_queue = status.cluster_queue,
                                   .assignment = status.assignment,
                                   .admitted = term ? std::optional(term->since) : std::nullopt,
                                   .quota_only = status.phase == quota::WorkloadPhase::kQuotaReserved,
                                   .lent_room = status.lent_room}});
    if (term) second.apply(WorkloadPodsReady{uid, true, real.now_});
    if (!limits.refused.contains(uid)) await_end(real.expected_end(id), Kind::kWorkload, uid);
  }
  second.workloads_->configure().take_over(real.admission(), real.now_);
}

// Pods that are leaving have left, so have those of workloads that are on their way out.
void Engine::Rehearsal::take_over_pods() {
  const State& state = real.state_;
  std::vector<PodSlot> slots(state.pods().begin(), state.pods().end());
  std::sort(slots.begin(), slots.end(),
            [&](PodSlot a, PodSlot b) { return state.pod(a).pod.uid < state.pod(b).pod.uid; });
  for (const PodSlot slot : slots) {
    const PodState& from = state.pod(slot);
    if (from.pod.stand_in) continue;
    if (from.pod.terminating || from.evicting || leaving_.contains(from.pod.workload)) {
      if (from.node.valid())
        take_off_list(second.state_.find_node(state.node(from.node).node.name), from.pod.full_name());
      continue;
    }
    model::Pod pod = from.pod;
    pod.gave_up = false;
    if (holds_room(from.phase))
      (from.phase == PodPhase::kNominated ? pod.nominated_node : pod.node_name) = state.node(from.node).node.name;
    const std::string uid = pod.uid;
    const bool of_workload = !pod.workload.empty() && real.workloads_->find(pod.workload).has_value();
    second.apply(PodUpserted{std::move(pod)});
    PodState& copy = second.state_.mutable_pod(second.state_.find_pod(uid));
    copy.queued_at = from.queued_at;
    copy.placed_at = from.placed_at;
    copy.backfilled = from.backfilled;
    if (copy.phase == PodPhase::kNominated) {
      second.state_.revise(second.state_.find_pod(uid), [&](PodState& kept) { kept.node_kept = from.node_kept; });
      copy.takes_over = from.takes_over;
    }
    if (const ClassQueue* cls = real.queue_.find(from.cls); copy.phase == PodPhase::kPending && cls != nullptr)
      second.queue_.of(copy.cls).reserve_from = cls->reserve_from;
    if (!of_workload) await_end(real.expected_end(slot), Kind::kPod, uid);
  }
}

bool Engine::Rehearsal::starts_behind_endless(const std::string& uid) const {
  const quota::Admission& admission = second.admission();
  const quota::QuotaTree& tree = admission.ledger().tree();
  const auto root_of = [&](const std::string& workload) {
    const quota::WorkloadId id = admission.find(workload);
    const quota::QuotaNode queue = id.valid() ? tree.queue(admission.status(id).cluster_queue) : quota::QuotaNode{};
    return queue.valid() ? tree.root(queue) : quota::QuotaNode{};
  };
  const quota::QuotaNode own = root_of(uid);
  if (!own.valid()) return false;
  const bool lacks_place = admission.status(admission.find(uid)).reason == "WaitingForPlace";
  return std::ranges::any_of(endless, [&](const std::string& other) { return lacks_place || root_of(other) == own; });
}

// Who should have ended by now may run for ever.
void Engine::Rehearsal::await_end(const std::optional<Time>& end, Kind kind, const std::string& uid) {
  if (!end || *end <= now) return;
  const Int128 left = Int128{(*end - now).nanos} * ratio / RuntimeRatios::kWhole;
  ends_.emplace(now + Duration{static_cast<int64_t>(left)}, kind, uid);
}

// The pod has ended, and its node's agent has seen that.
void Engine::Rehearsal::remove(const std::string& uid) {
  const PodState& pod = second.state_.pod(second.state_.find_pod(uid));
  const NodeSlot node = pod.node;
  const std::string name = pod.pod.full_name();
  second.apply(PodDeleted{uid});
  if (node.valid()) take_off_list(node, name);
}

void Engine::Rehearsal::take_off_list(NodeSlot slot, const std::string& pod) {
  if (!slot.valid() || !second.state_.node(slot).present) return;
  const auto named = [&](const auto& of) { return std::ranges::find(of.pods, pod) != of.pods.end(); };
  if (std::ranges::none_of(second.state_.node(slot).node.devices.devices, named)) return;
  model::Node node = second.state_.node(slot).node;
  for (model::GpuDevice& device : node.devices.devices) {
    std::erase(device.pods, pod);
    for (model::MigDeviceInstance& instance : device.mig_instances) std::erase(instance.pods, pod);
  }
  second.apply(NodeUpserted{std::move(node)});
}

// False: nothing was decided that the next cycle could depend on.
bool Engine::Rehearsal::carry_out(const CycleResult& result) {
  bool decided = !result.admissions.empty();
  for (const Decision& decision : result.decisions) {
    if (decision.kind == DecisionKind::kEvict) {
      undo_start(decision.pod_uid);
      remove(decision.pod_uid);
    }
    if (decision.kind == DecisionKind::kBind) {
      second.apply(BindProgress{decision.pod_uid, BindOutcome::kSucceeded});
      started.emplace(decision.pod_uid, now);
      const PodSlot slot = second.state_.find_pod(decision.pod_uid);
      const std::string& workload = second.state_.pod(slot).pod.workload;
      if (workload.empty() || !second.workloads_->find(workload))
        await_end(second.expected_end(slot), Kind::kPod, decision.pod_uid);
    }
    decided |= decision.kind == DecisionKind::kEvict || decision.kind == DecisionKind::kBind;
  }
  for (const quota::AdmissionDecision& decision : result.admissions) {
    const std::string uid = second.admission().status(decision.workload).workload.uid;
    if (decision.kind == quota::AdmissionDecision::Kind::kEvict) {
      undo_start(uid);
      end_workload(uid, false);
    }
    if (decision.kind != quota::AdmissionDecision::Kind::kAdmit) continue;
    started.emplace(uid, now);
    second.apply(WorkloadPodsReady{uid, true, now});
    const std::optional<Time> end = second.expected_end(decision.workload);
    if (!end) endless.insert(uid);
    await_end(end, Kind::kWorkload, uid);
  }
  return decided;
}

// It is evicted, and ends at no time that is known; at the time of its start: as if it had not been.
void Engine::Rehearsal::undo_start(const std::string& uid) {
  std::erase_if(ends_, [&](const auto& end) { return std::get<std::string>(end) == uid; });
  if (const auto start = started.find(uid); start != started.end() && start->second == now) started.erase(start);
}

// Its pods go with it.
void Engine::Rehearsal::end_workload(const std::string& uid, bool finished) {
  const quota::WorkloadId id = second.admission().find(uid);
  if (!id.valid()) return;
  const std::set<std::string>* known = second.workloads_->pods_of(second.admission().status(id).workload.full_name());
  const std::set<std::string> pods = known == nullptr ? std::set<std::string>() : *known;
  if (finished) second.apply(WorkloadEnded{uid});
  for (const std::string& pod : pods)
    if (holds_room(second.state_.pod(second.state_.find_pod(pod)).phase)) remove(pod);
  if (!finished) second.apply(WorkloadReleased{uid});
}

void Engine::Rehearsal::end_due() {
  while (!ends_.empty() && std::get<Time>(*ends_.begin()) <= now) {
    const auto [end, kind, uid] = *ends_.begin();
    ends_.erase(ends_.begin());
    if (kind == Kind::kPod) remove(uid);
    else end_workload(uid, true);
  }
}

// Those who fit nowhere and ask for GPUs; where somebody is held, who comes before him.
std::vector<std::pair<ClassId, QueueRank>> Engine::Rehearsal::wait_for_cuts(bool held) const {
  const State& state = second.state_;
  const quota::Admission& admission = second.admission();
  const quota::WorkloadId held_workload = second.workloads_->held();
  std::optional<QueueRank> until;
  if (held && second.held_.valid()) until = queue_rank(state.pod(second.held_).pod);
  else if (held && held_workload.valid()) until = queue_rank(admission.status(held_workload).workload);
  std::vector<std::pair<ClassId, QueueRank>> out;
  for (const ClassId id : second.queue_.blocked()) {
    const ClassQueue& cls = *second.queue_.find(id);
    if (!cls.candidates.objection().empty()) continue;
    const QueueRank rank = queue_rank(state.pod(*cls.pods.begin()).pod);
    if (!until || rank < *until) out.emplace_back(id, rank);
  }
  for (const WantedPlaces& wanted : second.workloads_->wanted()) {
    const QueueRank rank = queue_rank(admission.status(wanted.workloads.front()).workload);
    if (until && rank >= *until) continue;
    for (const WantedPlaces::Option& option : wanted.options)
      for (const WantedPlaces::Set& set : option.sets) out.emplace_back(state.pod(set.pod).cls, rank);
  }
  std::erase_if(out, [&](const auto& waits) {
    const PodClass& cls = state.pod_class(waits.first);
    return !cls.requests_gpu && !cls.shares_gpu;
  });
  return out;
}

// All nodes that may be cut, or those that have changed since they were looked at for these.
std::set<NodeSlot> Engine::Rehearsal::to_look_at(const std::vector<std::pair<ClassId, QueueRank>>& classes) const {
  const State& state = second.state_;
  const auto looked_for = [&](const auto& waits) { return looked_for_.contains(state.pod_class(waits.first).serial); };
  std::set<NodeSlot> out;
  if (looked_until_ < state.change_base() || !std::ranges::all_of(classes, looked_for))
    for (const std::string& name : state.mig_nodes()) out.insert(state.find_node(name));
  else
    for (uint64_t at = looked_until_; at < state.change_end(); ++at) out.insert(state.change(at));
  return out;
}

// Nodes of which GPUs may be kept for one who has waited long, until they can be cut for him: which ones, and for how
// long, is not foreseen.
std::set<NodeSlot> Engine::Rehearsal::to_be_kept(int64_t& work) {
  const State& state = second.state_;
  std::vector<ClassId> classes;
  for (const ClassId id : second.queue_.blocked()) {
    const ClassQueue& cls = *second.queue_.find(id);
    const PodSlot first = *cls.pods.begin();
    if (Reserve::has_waited(second, first) && cls.candidates.objection().empty() &&
        !real.kept_gpus_.keeps_for(state.pod(first).pod.uid))
      classes.push_back(id);
  }
  for (const WantedPlaces& wanted : second.workloads_->wanted()) {
    if (!wanted.has_waited ||
        real.kept_gpus_.keeps_for(second.admission().status(wanted.workloads.front()).workload.uid))
      continue;
    for (const WantedPlaces::Option& option : wanted.options)
      for (const WantedPlaces::Set& set : option.sets) classes.push_back(state.pod(set.pod).cls);
  }
  std::set<NodeSlot> out;
  for (const ClassId id : classes) {
    const PodClass& cls = state.pod_class(id);
    if ((!cls.requests_gpu && !cls.shares_gpu) || !kept_for_.insert(cls.serial).second) continue;
    for (const std::string& name : state.mig_nodes())
      if (const NodeSlot node = state.find_node(name); might_be_cut_when_left(second, cls, node)) out.insert(node);
    work -= std::ssize(state.mig_nodes());
  }
  return out;
}

// GPUs that may be cut for one who waits are not given to those behind him, and who has them then, and for how long, is
// not foreseen: from now on the node gives them to nobody. False: there is no such node.
bool Engine::Rehearsal::leave_to_cuts(bool held, int64_t& work) {
  const State& state = second.state_;
  if (state.mig_nodes().empty()) return false;
  const std::vector<std::pair<ClassId, QueueRank>> classes = wait_for_cuts(held);
  std::set<NodeSlot> nodes = to_look_at(classes);
  work -= std::ssize(nodes) * std::ssize(classes);
  std::erase_if(nodes, [&](NodeSlot node) {
    return std::ranges::none_of(classes, [&](const auto& waits) {
      return may_be_cut_for(second, state.pod_class(waits.first), waits.second, node);
    });
  });
  if (!held) {
    looked_for_.clear();
    for (const auto& [id, rank] : classes) looked_for_.insert(state.pod_class(id).serial);
    looked_until_ = state.change_end();
  }
  if (!held) nodes.merge(to_be_kept(work));
  for (const NodeSlot node : nodes) second.apply(NodeRepartitioning{state.node(node).node.name, true});
  leaves_to_cuts |= !nodes.empty();
  return !nodes.empty();
}

void Engine::Rehearsal::play() {
  int64_t work = limits.work, idle = 0;
  WorkBudget rooms{work};
  CycleResult first;  // what is kept for workloads is theirs before anybody else has his turn
  second.admit(rooms, first);
  carry_out(first);
  for (int64_t cycle = 0; !cut_short; ++cycle) {
    cut_short = cycle == limits.cycles || work <= 0;
    if (cut_short) return;
    const CycleResult result = second.run_cycle(now, {.work = work});
    work -= std::max<int64_t>(1, result.work_used);
    const bool decided = carry_out(result);
    const bool left_some = (result.held || !result.unfinished) && leave_to_cuts(result.held, work);
    if (decided || left_some || result.unfinished) continue;
    Time next = ends_.empty() ? Time{INT64_MAX} : std::get<Time>(*ends_.begin());
    idle = ends_.empty() ? idle + 1 : 0;
    if (result.has_wakeup) next = std::min(next, result.wakeup);
    if (next == Time{INT64_MAX} || idle > kIdleWakeupsMax || (ends_.empty() && result.only_reserves)) return;
    now = std::max(next, now + Duration{1});
    end_due();
  }
}

}  // namespace berth::engine
