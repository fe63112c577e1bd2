// The part of Engine that keeps a node for a pod which has waited long, so that a stream of smaller or later pods does
// not pass it for ever (design I9).
//
// A pod is due when it has waited for ReservationOptions::after and fits nowhere, nor can room be made for it. The
// first in the queue's order of each queue is nominated for a node as if others were leaving it: its room is charged
// there, so that whoever comes after it goes elsewhere, and what becomes free is kept until the pod fits. The node is
// the one that lacks least, GPUs first, of those where the pod would fit if all others but daemons had gone. Only pods
// that come before it can take the nomination away; if it has a place elsewhere first, or can make one, it goes there.
// A node whose GPUs may be cut anew is not kept for a pod that asks for some, or nothing could be cut for it there.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "engine/engine.h"

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

// When the class's first pod has waited so long that a node may be kept for it.
Time Engine::due_at(const ClassQueue& cls) const {
  const PodState& head = state_.pod(*cls.pods.begin());
  if (!options_.reservations.enabled || !head.queued_at) return Time{INT64_MAX};
  return std::max(*head.queued_at + options_.reservations.after, cls.reserve_from);
}

bool Engine::may_reserve(PodSlot pod) const {
  const std::string queue = queue_of(state_.pod(pod).pod);
  return std::ranges::count_if(nominees_, [&](PodSlot other) {
           return state_.pod(other).node_kept && queue_of(state_.pod(other).pod) == queue;
         }) < options_.reservations.per_queue;
}

// The best node to keep for the pod; invalid where none will do. Whatever it costs, it is looked at whole, so that
// looks come to an end.
NodeSlot Engine::node_to_keep(PodSlot pod, ClassQueue& cls, WorkBudget& work) {
  const PodClass& pod_class = state_.pod_class(state_.pod(pod).cls);
  std::vector<std::tuple<std::pair<int64_t, int64_t>, uint64_t, NodeSlot>> nodes;
  const bool asks_gpus = pod_class.requests_gpu || pod_class.shares_gpu;
  for (const auto& [name, slot] : state_.nodes_by_name()) {
    if (asks_gpus && state_.node(slot).node.mig) continue;
    const FailureSetId failure = cls.candidates.failure(slot);
    if (!failure.valid() || failure == kFits || !failure_sets_.preemption_helps(failure)) continue;
    if (const auto missing = lack(state_, slot, pod_class)) nodes.emplace_back(*missing, state_.node(slot).order, slot);
  }
  work.spend(static_cast<int64_t>(state_.node_count()));
  std::sort(nodes.begin(), nodes.end());
  VictimSearch search(search_context(), pod_class, cls.candidates.groups());
  for (const auto& [missing, order, slot] : nodes) {
    const bool fits = search.fits_when_left(pod, slot);
    work.spend(1 + search.take_effort());
    if (fits) return slot;
  }
  return {};
}

// Keeps nodes for those who are due; all that waits is blocked. A class is looked at no sooner than a while after it
// was last. False: out of work units.
bool Engine::reserve(WorkBudget& work, CycleResult& result) {
  std::vector<PodSlot> due;
  for (const ClassId id : queue_.blocked()) {
    ClassQueue& cls = queue_.of(id);
    if (due_at(cls) > now_) continue;
    cls.reserve_from = now_ + options_.reservations.retry;
    std::map<std::string, int32_t> by_queue;
    for (const PodSlot pod : cls.pods) {
      const PodState& state = state_.pod(pod);
      const bool waited = state.queued_at && *state.queued_at + options_.reservations.after <= now_;
      if (waited && by_queue[queue_of(state.pod)]++ < options_.reservations.per_queue) due.push_back(pod);
    }
  }
  std::sort(due.begin(), due.end(), QueueOrder{&state_});
  for (const PodSlot pod : due) {
    if (!may_reserve(pod)) continue;
    const ClassId id = state_.pod(pod).cls;
    ClassQueue& cls = queue_.of(id);
    if (work.left <= 0 || !look_at(id, cls, work)) {
      cls.reserve_from = now_;
      return false;
    }
    const NodeSlot node = cls.candidates.objection().empty() ? node_to_keep(pod, cls, work) : NodeSlot{};
    if (!node.valid()) continue;
    queue_.erase(pod);
    nominate(pod, node);
    state_.mutable_pod(pod).node_kept = true;
    ++reservations_;
    const PodState& kept = state_.pod(pod);
    const std::string& name = state_.node(node).node.name;
    result.decisions.push_back({.kind = DecisionKind::kNominate,
                                .pod_uid = kept.pod.uid,
                                .namespace_name = kept.pod.namespace_name,
                                .pod_name = kept.pod.name,
                                .node_name = name,
                                .message = std::make_shared<const std::string>(
                                    fit_message(cls.candidates.counts(), failure_sets_) + " " + kept_text(node))});
  }
  return true;
}

// What is said of a pod for which the node is kept.
std::string Engine::kept_text(NodeSlot node) const {
  return fmt::format("It has waited for {}: what becomes free on node {} is kept for it.",
                     format_duration(options_.reservations.after), state_.node(node).node.name);
}

std::vector<PodSlot> Engine::reserved_pods() const {
  std::vector<PodSlot> out;
  std::ranges::copy_if(nominees_, std::back_inserter(out), [&](PodSlot pod) { return state_.pod(pod).node_kept; });
  return out;
}

}  // namespace berth::engine
