// Which nodes are kept, and for whom (engine/engine_reserve.h).
#include "engine/engine_reserve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

// The LocalQueue that the pod names, by namespace and name; pods without one are one queue.
using QueueName = std::pair<std::string_view, std::string_view>;
QueueName queue_of(const model::Pod& pod) {
  const std::string* name = pod.labels == nullptr ? nullptr : pod.labels->find(kQueueNameLabel);
  return name == nullptr ? QueueName() : QueueName(pod.namespace_name, *name);
}

// What the node lacks: of GPUs, and of the rest in thousandths of what it has. Nothing where it could never have it.
std::optional<std::pair<int64_t, int64_t>> lack(const State& state, NodeSlot node, const PodClass& cls) {
  const NodeView view = state.view(node);
  std::pair<int64_t, int64_t> out{0, 0};
  for (const ResourceAmount& request : cls.requests) {
    const int64_t whole = view.allocatable(request.id);
    if (request.amount > whole) return std::nullopt;
    const int64_t missing = std::max<int64_t>(0, view.used(request.id) - (whole - request.amount));
    if (state.resources().is_gpu(request.id)) out.first += missing;
    else if (whole > 0) out.second += static_cast<int64_t>(Int128{missing} * 1000 / whole);
  }
  return out;
}

}  // namespace

bool Engine::Reserve::has_waited(const Engine& engine, PodSlot pod) {
  const ReservationOptions& options = engine.options_.reservations;
  const std::optional<Time>& since = engine.state_.pod(pod).queued_at;
  return options.enabled && since && *since + options.after <= engine.now_;
}

void Engine::Reserve::add_waited(const Engine& engine, const ClassQueue& cls, std::vector<PodSlot>& due) {
  std::map<QueueName, int32_t> by_queue;
  for (const PodSlot pod : cls.pods)
    if (has_waited(engine, pod) &&
        by_queue[queue_of(engine.state_.pod(pod).pod)]++ < engine.options_.reservations.per_queue)
      due.push_back(pod);
}

Time Engine::Reserve::due_at(const Engine& engine, const ClassQueue& cls) {
  const ReservationOptions& options = engine.options_.reservations;
  const PodState& head = engine.state_.pod(*cls.pods.begin());
  if (!options.enabled || !head.queued_at) return Time{INT64_MAX};
  return std::max(*head.queued_at + options.after, cls.reserve_from);
}

bool Engine::Reserve::comes_first(const Engine& engine, PodSlot pod) {
  const QueueOrder before{&engine.state_};
  return std::ranges::any_of(engine.queue_.blocked(), [&](ClassId id) {
    const ClassQueue& cls = *engine.queue_.find(id);
    return !cls.pods.empty() && before(*cls.pods.begin(), pod) && due_at(engine, cls) <= engine.now_;
  });
}

// That those who come after it have theirs already is no reason to let it wait: they lose it then.
bool Engine::Reserve::may_reserve(PodSlot pod) const {
  const State& state = engine.state_;
  const QueueOrder before{&state};
  const QueueName queue = queue_of(state.pod(pod).pod);
  return std::ranges::count_if(engine.nominees_, [&](PodSlot other) {
           return state.pod(other).node_kept && before(other, pod) && queue_of(state.pod(other).pod) == queue;
         }) < engine.options_.reservations.per_queue;
}

// The best node to keep for the pod, and when enough is free there; invalid where none will do. Whatever it costs, it
// is looked at whole, so that looks come to an end.
std::pair<NodeSlot, Time> Engine::Reserve::node_to_keep(PodSlot pod, ClassQueue& cls, WorkBudget& work) {
  const State& state = engine.state_;
  const PodClass& pod_class = state.pod_class(state.pod(pod).cls);
  VictimSearch search(engine.search_context(), pod_class, cls.candidates.groups());
  std::vector<std::tuple<Time, bool, std::pair<int64_t, int64_t>, uint64_t, NodeSlot>> nodes;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    const FailureSetId failure = cls.candidates.failure(slot);
    if (!failure.valid() || failure == kFits || !engine.failure_sets_.preemption_helps(failure)) continue;
    if (const auto missing = lack(state, slot, pod_class))
      nodes.emplace_back(free_by(search, pod, slot), needs_who_runs_on(state, slot, pod_class.requests), *missing,
                         state.node(slot).order, slot);
  }
  work.spend(static_cast<int64_t>(state.node_count()) + search.take_effort());
  std::sort(nodes.begin(), nodes.end());
  for (const auto& [free_by, runs_on, missing, order, slot] : nodes) {
    const bool fits = search.fits_when_left(pod, slot);
    work.spend(1 + search.take_effort());
    if (fits) return {slot, free_by};
  }
  return {NodeSlot{}, Time{INT64_MAX}};
}

// When enough is free, as people are told: what is due is nothing to wait for.
Time Engine::Reserve::told_of(const PodState& pod) const {
  return pod.free_by > engine.now_ ? pod.free_by : Time{INT64_MAX};
}

// Says for which node the pod is nominated, and why it waits.
void Engine::Reserve::tell(PodSlot pod, CycleResult& result) {
  PodState& kept = engine.state_.mutable_pod(pod);
  kept.told_free_by = told_of(kept);
  const ClassQueue& cls = engine.queue_.of(kept.cls);
  result.decisions.push_back(
      {.kind = DecisionKind::kNominate,
       .pod_uid = kept.pod.uid,
       .namespace_name = kept.pod.namespace_name,
       .pod_name = kept.pod.name,
       .node_name = engine.state_.node(kept.node).node.name,
       .message = std::make_shared<const std::string>(fit_message(cls.candidates.counts(), engine.failure_sets_) + " " +
                                                      kept_text(pod, kept.told_free_by))});
}

void Engine::Reserve::keep_node(PodSlot pod, NodeSlot node, Time free_by, CycleResult& result) {
  engine.nominate(pod, node);
  engine.state_.revise(pod, [free_by](PodState& kept) { kept.node_kept = true, kept.free_by = free_by; });
  engine.workloads_->kept_for_pod(pod, node);
  tell(pod, result);
}

// Has another node kept for the pod, where the best one is another and `will_do`. False: out of work units.
bool Engine::Reserve::keep_another(PodSlot pod, const std::function<bool(NodeSlot node, Time free_by)>& will_do,
                                   WorkBudget& work, CycleResult& result) {
  const ClassId id = engine.state_.pod(pod).cls;
  ClassQueue& cls = engine.queue_.of(id);
  if (work.left <= 0 || !engine.look_at(id, cls, work)) return false;
  if (!cls.candidates.objection().empty()) return true;
  const auto [node, free_by] = node_to_keep(pod, cls, work);
  if (!node.valid() || node == engine.state_.pod(pod).node || !will_do(node, free_by)) return true;
  engine.withdraw_nomination(pod);
  keep_node(pod, node, free_by, result);
  return true;
}

// Who waits on his node for one that runs until he is deleted has another kept instead, where that will do. False: out
// of work units.
bool Engine::Reserve::look_elsewhere(WorkBudget& work, CycleResult& result) {
  const State& state = engine.state_;
  for (const PodSlot pod : engine.reserved_pods()) {
    const ClassId id = state.pod(pod).cls;
    const PodClass& pod_class = state.pod_class(id);
    ClassQueue& cls = engine.queue_.of(id);
    const auto may_take_for_ever = [&](Time free_by, NodeSlot node) {
      return free_by == Time{INT64_MAX} && needs_who_runs_on(state, node, pod_class.requests);
    };
    if (cls.reserve_from > engine.now_ || !may_take_for_ever(state.pod(pod).free_by, state.pod(pod).node)) continue;
    const auto will_do = [&](NodeSlot node, Time free_by) { return !may_take_for_ever(free_by, node); };
    if (!keep_another(pod, will_do, work, result)) return false;
    if (cls.pods.empty() || due_at(engine, cls) > engine.now_)
      cls.reserve_from = engine.now_ + engine.options_.reservations.retry;
  }
  return true;
}

// A class is looked at no sooner than a while after it was last. False: out of work units, or some could start at once,
// be it in room that is kept for those that come after them; or room can be made for who has waited for this.
bool Engine::Reserve::run(WorkBudget& work, CycleResult& result) {
  const ReservationOptions& options = engine.options_.reservations;
  State& state = engine.state_;
  std::vector<PodSlot> due;
  bool goes_on = false;
  if (!look_elsewhere(work, result)) return false;
  for (const ClassId id : engine.queue_.blocked()) {
    ClassQueue& cls = engine.queue_.of(id);
    goes_on |= cls.node_to_clear().valid();
    if (due_at(engine, cls) > engine.now_) continue;
    cls.reserve_from = engine.now_ + options.retry;
    add_waited(engine, cls, due);
  }
  std::sort(due.begin(), due.end(), QueueOrder{&state});
  for (const PodSlot pod : due) {
    if (!may_reserve(pod)) continue;
    const ClassId id = state.pod(pod).cls;
    ClassQueue& cls = engine.queue_.of(id);
    if (work.left <= 0 || !engine.look_at(id, cls, work)) {
      cls.reserve_from = engine.now_;
      return false;
    }
    const bool hopeless = !cls.candidates.objection().empty();
    const auto [node, free_by] = hopeless ? std::pair(NodeSlot{}, Time{}) : node_to_keep(pod, cls, work);
    if (!node.valid()) continue;
    engine.queue_.erase(pod);
    keep_node(pod, node, free_by, result);
    VictimSearch search(engine.search_context(), state.pod_class(id), cls.candidates.groups());
    std::vector<PodSlot> displaced;
    goes_on |= search.outlook(pod, node, displaced) == VictimSearch::Outlook::kReady;
    ++engine.reservations_;
    goes_on |= let_go_behind(pod);
  }
  return !goes_on;
}

// So many of its queue have a node kept, the first in order. True: there were more.
bool Engine::Reserve::let_go_behind(PodSlot pod) {
  const State& state = engine.state_;
  const QueueName queue = queue_of(state.pod(pod).pod);
  std::vector<PodSlot> all = engine.reserved_pods();
  std::erase_if(all, [&](PodSlot other) { return queue_of(state.pod(other).pod) != queue; });
  const auto most = static_cast<size_t>(engine.options_.reservations.per_queue);
  if (all.size() <= most) return false;
  for (size_t i = most; i < all.size(); ++i) {
    engine.withdraw_nomination(all[i]);
    engine.enqueue(all[i]);
  }
  engine.queue_.unblock_all();
  return true;
}

// Somebody waits that comes before it, and may have its node: none is kept for it, or one that is free later.
bool Engine::Reserve::may_lose(PodSlot pod) const {
  const State& state = engine.state_;
  const NodeSlot node = state.pod(pod).node;
  if (const quota::WorkloadId first = engine.admission().kept().first_roomless; first.valid()) {
    const quota::WorkloadStatus& status = engine.admission().status(first);
    const bool waits = status.phase == quota::WorkloadPhase::kPending && !status.workload.uid.empty();
    if (waits && queue_rank(status.workload) < queue_rank(state.pod(pod).pod)) return true;
  }
  const QueueOrder before{&state};
  const auto could_have = [&](ClassId id) {
    const ClassQueue* cls = engine.queue_.find(id);
    if (cls == nullptr || cls->looked_at != engine.cycle_) return true;  // nothing is known of it now
    return cls->candidates.objection().empty() && engine.failure_sets_.could_have(cls->candidates.failure(node));
  };
  const auto takes_it_sooner = [&](PodSlot other) {
    return state.pod(other).node != node && state.pod(other).free_by > state.pod(pod).free_by && before(other, pod) &&
           could_have(state.pod(other).cls);
  };
  const auto waits_before = [&](ClassId id) {
    const auto& pods = engine.queue_.find(id)->pods;
    return !pods.empty() && before(*pods.begin(), pod) && could_have(id);
  };
  return std::ranges::any_of(engine.reserved_pods(), takes_it_sooner) ||
         std::ranges::any_of(engine.queue_.blocked(), waits_before);
}

std::string Engine::Reserve::kept_text(PodSlot pod, Time free_by) const {
  const NodeSlot node = engine.state_.pod(pod).node;
  std::string out =
      fmt::format("It has waited for {}: what becomes free on node {} is kept for it.",
                  format_duration(engine.options_.reservations.after), engine.state_.node(node).node.name);
  if (free_by > engine.now_ && free_by < Time{INT64_MAX}) {
    out.back() = ';';
    out += fmt::format(" by what runs there declares, that is enough by {}{}.", engine.time_text(free_by),
                       may_lose(pod) ? " unless who comes before it takes it" : "");
  }
  return out;
}

std::string Engine::Reserve::gpus_text(const std::string& owner) const {
  std::vector<std::string> nodes;
  for (const auto& [node, kept] : engine.kept_gpus_.all())
    if (kept.owner == owner && !engine.state_.node(node).is_being_cut())
      nodes.push_back(engine.state_.node(node).node.name);
  if (nodes.empty()) return "";
  std::sort(nodes.begin(), nodes.end());
  return fmt::format(
      "It has waited for {}: what becomes free on node{} {} is kept for it, to be cut anew when it is idle.",
      format_duration(engine.options_.reservations.after), nodes.size() == 1 ? "" : "s", fmt::join(nodes, ", "));
}

// Whether the pod would take GPUs of a node that may be cut anew, while one before it fits nowhere and may need them
// cut. Whoever cuts is asked first. Those up to let_by_ have been asked about; then only those between count.
bool Engine::gives_way(PodSlot pod, NodeSlot node) const {
  const auto asks = [](const PodClass& cls) { return cls.requests_gpu || cls.shares_gpu; };
  if (!state_.node(node).node.mig || !asks(state_.pod_class(state_.pod(pod).cls))) return false;
  const QueueOrder before{&state_};
  if (let_by_.valid() && !before(let_by_, pod)) return false;
  const QueueRank own = queue_rank(state_.pod(pod).pod);
  const auto waits_before = [&](const WantedPlaces& wanted) {
    const quota::WorkloadStatus& first = admission().status(wanted.workloads.front());
    const QueueRank rank = queue_rank(first.workload);
    return first.phase == quota::WorkloadPhase::kPending && rank < own &&
           (!let_by_.valid() || queue_rank(state_.pod(let_by_).pod) < rank);
  };
  if (std::ranges::any_of(workloads_->wanted(), waits_before)) return true;
  return std::ranges::any_of(queue_.blocked(), [&](ClassId id) {
    if (!asks(state_.pod_class(id))) return false;
    const auto& waiting = queue_.find(id)->pods;
    const auto first = let_by_.valid() ? waiting.upper_bound(let_by_) : waiting.begin();
    return first != waiting.end() && before(*first, pod);
  });
}

DuePods Engine::due_pods() const {
  DuePods out{options_.reservations.per_queue};
  std::vector<PodSlot> due = reserved_pods();
  for (const ClassId id : queue_.blocked()) {
    const ClassQueue& cls = *queue_.find(id);
    const PodClass& pod_class = state_.pod_class(id);
    const bool asks = pod_class.requests_gpu || pod_class.shares_gpu;
    if (asks && cls.candidates.objection().empty()) Reserve::add_waited(*this, cls, due);
  }
  std::sort(due.begin(), due.end(), QueueOrder{&state_});
  std::map<QueueName, size_t> queues;
  for (const PodSlot pod : due)
    out.pods.emplace_back(pod, queues.try_emplace(queue_of(state_.pod(pod).pod), queues.size()).first->second);
  return out;
}

void Engine::on(const GpusKept& event) {
  const NodeSlot node = state_.find_node(event.node);
  if (!node.valid()) return;
  kept_gpus_.give_back(node);
  if (event.amounts.empty()) return;
  model::Pod stand_in;
  const auto take_turn_of = [&](const auto& waits, const char* kind) {
    stand_in.namespace_name = waits.namespace_name;
    stand_in.name = waits.name;
    stand_in.priority = waits.priority;
    stand_in.created = waits.created;
    stand_in.keeps_gpus_for = fmt::format("{} {}", kind, waits.full_name());
  };
  if (const PodSlot pod = state_.find_pod(event.owner); pod.valid()) take_turn_of(state_.pod(pod).pod, "pod");
  else if (const quota::WorkloadId id = admission().find(event.owner); id.valid())
    take_turn_of(admission().status(id).workload, "Workload");
  else return;
  kept_gpus_.keep(node, event, std::move(stand_in));
  workloads_->kept_for_pod(kept_gpus_.all().at(node).stand_in, node);
}

void Engine::Reserve::tidy_gpus() {
  engine.kept_gpus_.tidy([&](const std::string& owner) {
    if (const PodSlot pod = engine.state_.find_pod(owner); pod.valid())
      return engine.state_.pod(pod).phase == PodPhase::kPending || engine.state_.pod(pod).phase == PodPhase::kBackoff;
    const quota::WorkloadId id = engine.admission().find(owner);
    return id.valid() && engine.admission().status(id).phase == quota::WorkloadPhase::kPending;
  });
}

std::vector<PodSlot> Engine::reserved_pods() const {
  std::vector<PodSlot> out;
  std::ranges::copy_if(nominees_, std::back_inserter(out), [&](PodSlot pod) { return state_.pod(pod).node_kept; });
  return out;
}

}  // namespace berth::engine
