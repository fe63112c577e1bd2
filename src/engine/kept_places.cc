// Places that are kept for a workload until others have ended: the part of QueuedWorkloads that chooses them.
#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/gpu_asks.h"
#include "engine/in_the_way.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"
#include "engine/shared_domains.h"

namespace berth::engine {

// A pod that has a place and will leave it: the first are those of whom it is known when; the last, those that run
// until they are deleted. Of the others, those of nodes that are kept for nobody, and where the fewest GPUs are in use
// by the others, node by node, and in the order of the queue on each.
struct QueuedWorkloads::Leaver {
  Time end;
  bool runs_on = false;
  bool is_kept = false;  // of whom it is not known: the node, for somebody
  int64_t gpus_of_node = 0;
  uint64_t node = 0;
  QueueRank rank;
  PodSlot pod;
  auto key() const { return std::tie(end, runs_on, is_kept, gpus_of_node, node, rank); }
  friend bool operator<(const Leaver& a, const Leaver& b) { return a.key() < b.key(); }
};

std::vector<Host> QueuedWorkloads::hosts(const model::Workload& workload, size_t set, const PodLooks& looks,
                                         int64_t enough, bool if_cut) {
  const State& state = context_.state;
  return stand_ins_.ask(workload, set, looks, [&](PodSlot pod, const Candidates& candidates) {
    std::vector<Host> out;
    if (!candidates.objection().empty()) return out;
    const PodClass& cls = state.pod_class(state.pod(pod).cls);
    const bool apart = stand_apart(state, cls);
    for (const auto& [name, node] : state.nodes_by_name()) {
      const FailureSetId failure = candidates.failure(node);
      const bool as_it_is = context_.sets.could_have(failure);
      const NodeView view = state.view(node);
      int64_t most = apart ? 1 : INT64_MAX;
      for (const ResourceAmount& request : cls.requests)
        if (request.amount > 0) most = std::min(most, view.allocatable(request.id) / request.amount);
      if (!as_it_is || most <= 0)
        most = if_cut ? most_if_cut(context_.policies, state, cls, node, apart ? 1 : enough) : 0;
      if (most <= 0) continue;
      out.push_back({node, most});
      enough -= std::min(enough, most);
      if (enough == 0) break;
    }
    return out;
  });
}

// Those on nodes that could have some of the workload's pods: all but daemons. Who has room kept there, and comes
// before it, will have been there and left.
std::vector<QueuedWorkloads::Leaver> QueuedWorkloads::leavers(const quota::PlaceRequest& request) {
  const State& state = context_.state;
  std::set<NodeSlot> nodes;
  for (size_t set = 0; set < request.workload->pod_sets.size(); ++set) {
    const PodLooks looks = looks_of(request, set);
    if (looks.spec == nullptr) continue;
    for (const Host& host : hosts(*request.workload, set, looks)) nodes.insert(host.node);
    for (const Group::Member& pod : members_of(request, set))
      for (const Host& host : hosts(*request.workload, set, pod.looks)) nodes.insert(host.node);
  }
  const auto gives_way = [&](quota::WorkloadId id) {
    return id == request.id || (request.over != nullptr && std::ranges::find(*request.over, id) != request.over->end());
  };
  const auto room_of = [&](std::optional<quota::WorkloadId> workload) {
    const auto& rooms = admission_.kept().rooms;
    const auto room = workload ? rooms.find(*workload) : rooms.end();
    return room == rooms.end() ? nullptr : &room->second;
  };
  const auto left_by = [&](const PodState& pod, std::optional<quota::WorkloadId> workload) -> std::optional<Time> {
    if (const quota::KeptRoom* room = room_of(workload)) return room->left_by;
    if (workload || pod.free_by == Time{INT64_MAX} || !pod.pod.runtime) return std::nullopt;
    return std::max(pod.free_by, now_) + *pod.pod.runtime;
  };
  const std::vector<PodSlot> later = kept_for_later(*request.workload);  // find() knows them
  std::vector<Leaver> out;
  for (const NodeSlot node : nodes) {
    const size_t first = out.size();
    int64_t gpus = 0;
    bool is_kept = false;
    for (const PodSlot slot : state.node(node).pods) {
      const PodState& pod = state.pod(slot);
      const auto workload = find(pod.pod.workload);
      const bool waits = pod.phase == PodPhase::kNominated;
      if (pod.pod.daemon || (workload && gives_way(*workload))) continue;
      const quota::KeptRoom* const room = waits ? room_of(workload) : nullptr;
      if (room != nullptr && !room->left_by) continue;
      if (waits && std::ranges::find(later, slot) != later.end()) continue;
      const std::optional<Time> end = waits ? left_by(pod, workload) : times_.end(slot);
      const bool leaves =
          pod.pod.terminating || pod.evicting ||
          (workload && !waits && (!admission_.status(*workload).evicted.empty() || admission_.is_late(*workload)));
      const bool known = leaves || (end && *end > now_ && *end < Time{INT64_MAX});
      is_kept |= waits;
      if (!known)
        for (const ResourceAmount& has : state.pod_class(pod.cls).requests)
          if (state.resources().is_gpu(has.id)) gpus += has.amount;
      const Time until = leaves ? now_ : known ? *end : Time{INT64_MAX};
      out.push_back({until, !known && !waits && pod.pod.runs_on(), false, 0, known ? 0 : state.node(node).order,
                     queue_rank(pod.pod), slot});
    }
    for (size_t i = first; i < out.size(); ++i)
      if (out[i].end == Time{INT64_MAX}) {
        out[i].is_kept = is_kept;
        out[i].gpus_of_node = gpus;
      }
  }
  std::sort(out.begin(), out.end());
  return out;
}

quota::CouldFit QueuedWorkloads::could_fit(const quota::PlaceRequest& request) {
  if (could_fit(request, false)) return quota::CouldFit::kYes;
  const bool may_be_cut = !context_.state.mig_nodes().empty() && !is_sliced(*request.workload);
  return may_be_cut && could_fit(request, true) ? quota::CouldFit::kIfCut : quota::CouldFit::kNever;
}

// Each pod set by itself, and slices as if each pod were one. What all have to share, one domain has the room for. Of
// pods that are told apart nothing is said.
bool QueuedWorkloads::could_fit(const quota::PlaceRequest& request, bool if_cut) {
  for (size_t i = 0; i < request.workload->pod_sets.size(); ++i) {
    const PodLooks looks = looks_of(request, i);
    const int64_t wanted = quota::still_needed((*request.pod_sets)[i], request.workload->pod_sets[i]);
    if (looks.spec == nullptr || wanted <= 0 || !request.workload->pod_sets[i].members.empty()) continue;
    const std::vector<model::SliceLayer> shared =
        stand_ins_.ask(*request.workload, i, looks,
                       [&](PodSlot pod, const Candidates&) { return shared_layers(context_.state, pod); });
    std::map<std::vector<std::string_view>, int64_t> room;  // by the values of the labels that all have to share
    bool enough = false;
    for (const Host& host : hosts(*request.workload, i, looks, shared.empty() ? wanted : INT64_MAX, if_cut)) {
      std::vector<std::string_view> domain;
      for (const model::SliceLayer& layer : shared)
        if (const std::string* value = context_.state.node(host.node).node.labels.find(layer.key))
          domain.push_back(*value);
      if (domain.size() < shared.size()) continue;
      int64_t& in_domain = room[domain];
      in_domain += std::min(wanted, host.most);
      enough |= in_domain >= wanted;
    }
    if (!enough) return false;
  }
  return true;
}

// The fewest in their order that have to leave are found by halves: first among 1, 2, 4, … of them. Those that have
// ended when it may begin count as gone. `pods`: so many are enough.
std::optional<Time> QueuedWorkloads::keep(const quota::PlaceRequest& request, Time from, std::optional<size_t> pods) {
  const std::vector<Leaver> all = leavers(request);
  const auto stays = std::ranges::find_if(all, [&](const Leaver& each) { return each.end > from; });
  const auto gone_by_then = static_cast<size_t>(stays - all.begin());
  const auto find_without = [&](size_t count) -> std::optional<std::vector<Found>> {
    std::vector<PodSlot> gone;
    for (size_t i = 0; i < count; ++i) gone.push_back(all[i].pod);
    std::vector<Found> found;
    used_ += static_cast<int64_t>(count);
    const bool finds_all = find(request, gone, found, nullptr, pods.has_value());
    return finds_all || (pods && found.size() >= *pods) ? std::optional(std::move(found)) : std::nullopt;
  };
  size_t too_few = std::max<size_t>(gone_by_then, 1) - 1, enough = std::min(too_few + 1, all.size());
  std::optional<std::vector<Found>> found = find_without(enough);
  while (!found && enough < all.size()) {
    too_few = enough;
    enough = std::min(all.size(), 2 * enough);
    found = find_without(enough);
  }
  if (!found) return std::nullopt;
  while (too_few + 1 < enough) {
    const size_t middle = (too_few + enough) / 2;
    if (std::optional<std::vector<Found>> sooner = find_without(middle)) {
      found = std::move(sooner);
      enough = middle;
    } else {
      too_few = middle;
    }
  }
  const Time end = std::max({from, now_, enough == 0 ? now_ : all[enough - 1].end});
  keep_in(request, *found, end);
  return end;
}

std::optional<Time> QueuedWorkloads::keep_some(const quota::PlaceRequest& request, Time from) {
  const std::vector<PodSlot> kept = standing(request.id, false);
  std::vector<PodSlot> gone;
  if (kept.empty())
    for (const Leaver& each : leavers(request)) gone.push_back(each.pod);
  std::vector<Found> now, later;
  find(request, {}, now, nullptr, true);
  if (kept.empty()) find(request, gone, later, nullptr, true);
  const size_t most = std::max(kept.size(), later.size());
  if (most == 0) return std::nullopt;
  if (now.size() >= most) {
    keep_in(request, now, now_);
    return now_;
  }
  if (kept.empty() || waits_for_who_runs_on(request.id)) return keep(request, from, most);
  const Time free_by = context_.state.pod(kept.front()).free_by;
  return free_by > now_ ? free_by : Time{INT64_MAX};
}

// Instead of what was kept for it.
void QueuedWorkloads::keep_in(const quota::PlaceRequest& request, const std::vector<Found>& found, Time free_by) {
  const std::vector<std::string> before = kept_nodes(request.id);
  const bool let_some_go = lets_go_;
  const bool had_another = let_go(request.id);
  take_places(request, found, PodPhase::kNominated);
  for (const Set& set : groups_.at(request.id).sets)
    for (const auto& [slot, index] : set.stand_ins)
      context_.state.revise(slot, [&](PodState& kept) {
        kept.node_kept = true;
        if (free_by > now_) kept.free_by = free_by;
      });
  const bool moves = before != kept_nodes(request.id);
  gave_back_ |= had_another && moves;
  if (!moves) lets_go_ = let_some_go;
}

void QueuedWorkloads::move_kept(std::span<const quota::WorkloadId>& left, PodSlot pod, WorkBudget& work) {
  const QueueRank rank = queue_rank(context_.state.pod(pod).pod);
  for (; !left.empty() && queue_rank(admission_.status(left.front()).workload) < rank; left = left.subspan(1)) {
    changed_ |= admission_.move_kept(left.front());
    work.spend(1 + stand_ins_.take_used());
  }
}

bool QueuedWorkloads::move_kept(const quota::PlaceRequest& request) {
  std::vector<Found> found;
  if (!find(request, {}, found, nullptr) || found.empty()) return false;
  keep_in(request, found, now_);
  return true;
}

bool QueuedWorkloads::waits_for_who_runs_on(quota::WorkloadId id) const {
  const State& state = context_.state;
  std::map<NodeSlot, std::vector<ResourceAmount>> asked;
  for (const PodSlot slot : standing(id, false)) {
    const PodState& pod = state.pod(slot);
    std::vector<ResourceAmount>& there = asked[pod.node];
    for (const ResourceAmount& request : state.pod_class(pod.cls).requests) {
      const auto known = std::ranges::find(there, request.id, &ResourceAmount::id);
      if (known == there.end()) there.push_back(request);
      else known->amount = quota::saturating_add(known->amount, request.amount);
    }
  }
  return std::ranges::any_of(asked,
                             [&](const auto& each) { return needs_who_runs_on(state, each.first, each.second); });
}

bool QueuedWorkloads::waits_for_cut(quota::WorkloadId id) const {
  const State& state = context_.state;
  return context_.kept_gpus.keeps_for(admission_.status(id).workload.uid) ||
         std::ranges::any_of(state.mig_nodes(),
                             [&](const std::string& name) { return state.node(state.find_node(name)).is_being_cut(); });
}

std::vector<quota::WorkloadId> QueuedWorkloads::who_may_move() const {
  std::vector<quota::WorkloadId> out;
  if (context_.state.change_end() == seen_until_) return out;
  for (const auto& [id, room] : admission_.kept().rooms)
    if (room.in_nodes) out.push_back(id);
  std::ranges::sort(out, [&](quota::WorkloadId a, quota::WorkloadId b) { return comes_before(a, b); });
  return out;
}

void QueuedWorkloads::victims_changed() {
  if (in_use_) configure().reconfigure();
}

void QueuedWorkloads::node_changed(NodeSlot node, bool offers_more) {
  if (!in_use_) return;
  changed_nodes_.insert(node);
  offers_changed_ |= offers_more;
}

void QueuedWorkloads::kept_for_pod(PodSlot pod, NodeSlot node) {
  const State& state = context_.state;
  for (const PodSlot kept : kept_room(state, state.node(node))) {
    const auto owner = by_name_.find(state.pod(kept).pod.workload);
    if (owner != by_name_.end() && QueueOrder{&state}(pod, kept)) configure().lost_kept(owner->second);
  }
}

void QueuedWorkloads::give_back_kept(NodeSlot node) {
  std::set<quota::WorkloadId> owners;
  for (const PodSlot slot : kept_room(context_.state, context_.state.node(node)))
    if (const auto owner = by_name_.find(context_.state.pod(slot).pod.workload); owner != by_name_.end())
      owners.insert(owner->second);
  for (const quota::WorkloadId id : owners) {
    let_go(id);
    configure().lost_kept(id);
  }
}

bool QueuedWorkloads::may_lose_kept(quota::WorkloadId id) const {
  if (wanted_.empty() && context_.queue.blocked().empty()) return false;
  const State& state = context_.state;
  std::vector<NodeSlot> nodes;
  for (const std::string& name : kept_nodes(id)) nodes.push_back(state.find_node(name));
  const bool may_be_cut = std::ranges::any_of(nodes, [&](NodeSlot node) { return bool{state.node(node).node.mig}; });
  const QueueRank own = queue_rank(admission_.status(id).workload);
  const auto wants_before = [&](const WantedPlaces& wanted) {
    const quota::WorkloadStatus& first = admission_.status(wanted.workloads.front());
    return first.phase == quota::WorkloadPhase::kPending && queue_rank(first.workload) < own;
  };
  if (may_be_cut && std::ranges::any_of(wanted_, wants_before)) return true;
  return std::ranges::any_of(context_.queue.blocked(), [&](ClassId cls) {
    const ClassQueue& waiting = *context_.queue.find(cls);
    const PodClass& pod = state.pod_class(cls);
    if (waiting.pods.empty() || !waiting.candidates.objection().empty() ||
        queue_rank(state.pod(*waiting.pods.begin()).pod) >= own)
      return false;
    return std::ranges::any_of(nodes, [&](NodeSlot node) {
      const FailureSetId failure = waiting.candidates.failure(node);
      const bool may_be_cut_for_it = state.node(node).node.mig && (pod.requests_gpu || pod.shares_gpu);
      return may_be_cut_for_it || context_.sets.could_have(failure);
    });
  });
}

std::vector<std::string> QueuedWorkloads::kept_nodes(quota::WorkloadId id) const {
  std::set<std::string> nodes;
  const auto group = groups_.find(id);
  if (group == groups_.end()) return {};
  for (const Set& set : group->second.sets) {
    if (set.looks.spec != nullptr && set.came + std::ssize(set.stand_ins) < set.wanted) return {};
    for (const auto& [slot, index] : set.stand_ins) {
      const NodeState& node = context_.state.node(context_.state.pod(slot).node);
      if (!node.present) return {};
      nodes.insert(node.node.name);
    }
  }
  return {nodes.begin(), nodes.end()};
}

}  // namespace berth::engine
