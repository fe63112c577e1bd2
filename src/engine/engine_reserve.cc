// Which nodes are kept, and for whom (engine/engine_reserve.h).
#include "engine/engine_reserve.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

// The LocalQueue that the pod names; pods without one are one queue.
std::string queue_of(const model::Pod& pod) {
  const std::string* name = pod.labels == nullptr ? nullptr : pod.labels->find(kQueueNameLabel);
  return name == nullptr ? "" : pod.namespace_name + "/" + *name;
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

bool Engine::Reserve::may_reserve(PodSlot pod) const {
  const State& state = engine.state_;
  const std::string queue = queue_of(state.pod(pod).pod);
  return std::ranges::count_if(engine.nominees_, [&](PodSlot other) {
           return state.pod(other).node_kept && queue_of(state.pod(other).pod) == queue;
         }) < engine.options_.reservations.per_queue;
}

// The node is kept for a workload that comes after the pod.
bool Engine::Reserve::is_kept_behind(PodSlot pod, NodeSlot node) const {
  const QueueOrder before{&engine.state_};
  return std::ranges::any_of(engine.state_.node(node).pods, [&](PodSlot other) {
    return is_kept_room(engine.state_.pod(other)) && before(pod, other);
  });
}

// The best node to keep for the pod, and when enough is free there; invalid where none will do. Whatever it costs, it
// is looked at whole, so that looks come to an end.
std::pair<NodeSlot, Time> Engine::Reserve::node_to_keep(PodSlot pod, ClassQueue& cls, WorkBudget& work) {
  const State& state = engine.state_;
  const PodClass& pod_class = state.pod_class(state.pod(pod).cls);
  VictimSearch search(engine.search_context(), pod_class, cls.candidates.groups());
  std::vector<std::tuple<Time, std::pair<int64_t, int64_t>, uint64_t, NodeSlot>> nodes;
  const bool asks_gpus = pod_class.requests_gpu || pod_class.shares_gpu;
  for (const auto& [name, slot] : state.nodes_by_name()) {
    if (asks_gpus && state.node(slot).node.mig && !is_kept_behind(pod, slot)) continue;
    const FailureSetId failure = cls.candidates.failure(slot);
    if (!failure.valid() || failure == kFits || !engine.failure_sets_.preemption_helps(failure)) continue;
    if (const auto missing = lack(state, slot, pod_class))
      nodes.emplace_back(free_by(search, pod, slot), *missing, state.node(slot).order, slot);
  }
  work.spend(static_cast<int64_t>(state.node_count()) + search.take_effort());
  std::sort(nodes.begin(), nodes.end());
  for (const auto& [free_by, missing, order, slot] : nodes) {
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
                                                      kept_text(kept.node, kept.told_free_by))});
}

// A class is looked at no sooner than a while after it was last. False: out of work units, or some could start at once,
// be it in room that is kept for those that come after them; or room can be made for who has waited for this.
bool Engine::Reserve::run(WorkBudget& work, CycleResult& result) {
  const ReservationOptions& options = engine.options_.reservations;
  State& state = engine.state_;
  std::vector<PodSlot> due;
  bool goes_on = false;
  for (const ClassId id : engine.queue_.blocked()) {
    ClassQueue& cls = engine.queue_.of(id);
    goes_on |= cls.node_to_clear().valid();
    if (due_at(engine, cls) > engine.now_) continue;
    cls.reserve_from = engine.now_ + options.retry;
    std::map<std::string, int32_t> by_queue;
    for (const PodSlot pod : cls.pods) {
      const PodState& waiting = state.pod(pod);
      const bool waited = waiting.queued_at && *waiting.queued_at + options.after <= engine.now_;
      if (waited && by_queue[queue_of(waiting.pod)]++ < options.per_queue) due.push_back(pod);
    }
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
    engine.nominate(pod, node);
    state.revise(pod, [by = free_by](PodState& kept) { kept.node_kept = true, kept.free_by = by; });
    engine.workloads_->kept_for_pod(pod, node);
    VictimSearch search(engine.search_context(), state.pod_class(id), cls.candidates.groups());
    std::vector<PodSlot> displaced;
    goes_on |= search.outlook(pod, node, displaced) == VictimSearch::Outlook::kReady;
    ++engine.reservations_;
    tell(pod, result);
  }
  return !goes_on;
}

std::string Engine::Reserve::kept_text(NodeSlot node, Time free_by) const {
  std::string out =
      fmt::format("It has waited for {}: what becomes free on node {} is kept for it.",
                  format_duration(engine.options_.reservations.after), engine.state_.node(node).node.name);
  if (free_by > engine.now_ && free_by < Time{INT64_MAX}) {
    out.back() = ';';
    out += fmt::format(" by what runs there declares, that is enough by {}.", engine.time_text(free_by));
  }
  return out;
}

std::vector<PodSlot> Engine::reserved_pods() const {
  std::vector<PodSlot> out;
  std::ranges::copy_if(nominees_, std::back_inserter(out), [&](PodSlot pod) { return state_.pod(pod).node_kept; });
  return out;
}

}  // namespace berth::engine
