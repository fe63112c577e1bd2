// The part of QueuedWorkloads that looks after places that were lost: with their node, or since it would not have the
// pods any more, or to a pod that came in between.
//
// Each is looked for anew, one by one. A workload that has begun goes on with what it has meanwhile. One that has not,
// or of which nothing is left, is given none of its places before it has all: a gang that began with some of its pods
// would hold these for nothing. It is evicted by admission, whose message says why, and has its turn in the queue
// again. Pods that have just been bound make no difference: what they have done is less than what their devices would
// wait.
#include <algorithm>
#include <utility>

#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

// For how long the first pods of a workload may have run, before all have a place, that it can still be taken back.
constexpr Duration kBeginning = Duration::seconds(60);
// For how long places are kept for the next pods of one of which some have run. Whoever makes them backs off for six
// minutes at most (Job controller).
constexpr Duration kNextPodsMax = Duration::seconds(600);
// How often places are looked for anew in one moment: where its pods are not let onto those that are found, that ends.
constexpr int kFillsMax = 16;

// Whether a place is kept for some pod of it, or one that has come has one; those that came when theirs was lost may
// wait for another like any pod.
bool has_a_place(const State& state, const WorkloadGroup& group) {
  return std::ranges::any_of(group.sets, [](const auto& set) { return !set.stand_ins.empty(); }) ||
         std::ranges::any_of(group.came, [&](const auto& came) {
           return state.pod(state.find_pod(came.first)).phase != PodPhase::kPending;
         });
}

bool runs(const State& state, PodSlot pod) { return state.pod(pod).phase == PodPhase::kBound; }

// None of its places is left, and pods that have come wait.
bool waits_for_all(const State& state, const WorkloadGroup& group) {
  return group.stage == WorkloadGroup::Stage::kAdmitted && !group.came.empty() && !has_a_place(state, group);
}

}  // namespace

bool QueuedWorkloads::has_begun(quota::WorkloadId id) const {
  const auto group = groups_.find(id);
  if (rehearses_ || group == groups_.end()) return true;
  if (group->second.begun && has_a_place(context_.state, group->second)) return true;
  return std::ranges::any_of(own_pods(id), [&](PodSlot slot) {
    const PodState& pod = context_.state.pod(slot);
    return !pod.pod.ours || (pod.phase == PodPhase::kBound && times_.age(slot) >= kBeginning);
  });
}

// What it leaves behind has begun if all of the workload's pods ran beside it, or it has for a while.
void QueuedWorkloads::part(PodSlot slot) {
  const model::Pod& pod = context_.state.pod(slot).pod;
  const auto named = pods_.find(pod.workload);
  if (named == pods_.end()) return;
  named->second.erase(pod.uid);
  if (named->second.empty()) pods_.erase(named);
  else freed_.insert(pod.workload);
  Group* group = keeps_places(pod.workload);
  if (group != nullptr && group->came.contains(pod.uid) && runs(context_.state, slot)) {
    const bool all = std::ranges::all_of(group->sets, [](const Set& set) { return set.came >= set.wanted; }) &&
                     std::ranges::all_of(group->came, [&](const auto& came) {
                       return runs(context_.state, context_.state.find_pod(came.first));
                     });
    group->begun |= all || times_.age(slot) >= kBeginning;
    await_next(by_name_.at(pod.workload), *group);
  }
  give_up_place(slot);
  const auto known = by_name_.find(pod.workload);
  const auto left = known == by_name_.end() ? groups_.end() : groups_.find(known->second);
  if (left != groups_.end() && waits_for_all(context_.state, left->second)) short_.insert(left->first), changed_ = true;
}

bool QueuedWorkloads::keeps_to_place(const model::Pod& pod) const {
  const auto known = by_name_.find(pod.workload);
  return known != by_name_.end() && (has_slices(pod) || !has_begun(known->second));
}

bool QueuedWorkloads::may_begin(const std::string& workload) const {
  const auto known = by_name_.find(workload);
  return known == by_name_.end() || !short_.contains(known->second) || has_begun(known->second);
}

std::vector<PodSlot> QueuedWorkloads::unsure() const {
  std::vector<PodSlot> out;
  for (const NodeSlot node : changed_nodes_)
    for (const PodSlot slot : context_.state.node(node).pods) {
      const PodState& pod = context_.state.pod(slot);
      const auto workload = pod.takes_over ? by_name_.find(pod.pod.workload) : by_name_.end();
      if (workload != by_name_.end() && !has_begun(workload->second)) out.push_back(slot);
    }
  std::ranges::sort(out);
  return out;
}

// What is kept for those who wait is let go of, too, where a node of it would not have them even if all others had
// left.
void QueuedWorkloads::leave_unfit() {
  const std::set<NodeSlot> nodes = std::exchange(changed_nodes_, {});
  std::set<quota::WorkloadId> keeping;
  for (const NodeSlot node : nodes) {
    std::vector<PodSlot> there;
    for (const PodSlot slot : context_.state.node(node).pods) {
      const PodState& pod = context_.state.pod(slot);
      if (pod.phase == PodPhase::kHeld) there.push_back(slot);
      if (is_kept_room(pod) && pod.pod.keeps_gpus_for.empty()) keeping.insert(by_name_.at(pod.pod.workload));
    }
    std::sort(there.begin(), there.end());
    for (const PodSlot slot : there) {
      const std::string name = context_.state.pod(slot).pod.workload;
      Group& group = groups_.at(by_name_.at(name));
      const model::Workload& workload = admission_.status(by_name_.at(name)).workload;
      for (size_t i = 0; i < group.sets.size(); ++i) {
        Set& set = group.sets[i];
        const auto kept = std::find_if(set.stand_ins.begin(), set.stand_ins.end(),
                                       [&](const auto& stand_in) { return stand_in.first == slot; });
        if (kept == set.stand_ins.end()) continue;
        const int32_t index = kept->second;
        drop_stand_in(set, static_cast<size_t>(kept - set.stand_ins.begin()));
        if (context_.state.node(node).present && fits_on(workload, i, set.looks_of(index), node))
          add_stand_in(group, workload, i, node, PodPhase::kHeld, index);
        else short_.insert(by_name_.at(name));
        break;
      }
    }
  }
  for (const quota::WorkloadId id : keeping) {
    if (could_have_kept(id)) continue;
    gave_back_ |= let_go(id);
    admission_.lost_kept(id);
  }
}

// Whether all nodes on which places are kept for the workload could have its pods, whoever is there now.
bool QueuedWorkloads::could_have_kept(quota::WorkloadId id) {
  const model::Workload& workload = admission_.status(id).workload;
  const Group& group = groups_.at(id);
  for (size_t i = 0; i < group.sets.size(); ++i)
    for (const auto& [slot, number] : group.sets[i].stand_ins) {
      const NodeSlot node = context_.state.pod(slot).node;
      const bool could =
          stand_ins_.ask(workload, i, group.sets[i].looks_of(number), [&](PodSlot, const Candidates& candidates) {
            return candidates.objection().empty() && context_.sets.could_have(candidates.failure(node));
          });
      if (!could) return false;
    }
  return true;
}

// Places that were lost, with their node or to a pod that came in between. Who comes first in the queue has the first
// turn, whoever was known first.
void QueuedWorkloads::fill_short() {
  if (short_.empty() || filled_at_ == context_.state.change_end()) return;
  std::vector<quota::WorkloadId> all(short_.begin(), short_.end());
  short_.clear();
  std::ranges::sort(all, [&](quota::WorkloadId a, quota::WorkloadId b) { return comes_before(a, b); });
  for (const quota::WorkloadId id : all) {
    const auto group = groups_.find(id);
    if (group == groups_.end() || !group->second.keeps_places()) continue;
    if (std::exchange(group->second.filled_at, now_) != now_) group->second.fills = 0;
    if (++group->second.fills > kFillsMax) {
      short_.insert(id);
      continue;
    }
    const model::Workload& workload = admission_.status(id).workload;
    for (size_t i = 0; i < group->second.sets.size(); ++i) {
      Set& set = group->second.sets[i];
      if (!workload.pod_sets[i].slices.empty()) {
        fill_slices(id, i);
        continue;
      }
      while (set.looks.spec != nullptr && set.came + std::ssize(set.stand_ins) + set.given_up < set.wanted) {
        const int32_t number = set.members.empty() ? -1 : group->second.free_number(i);
        const NodeSlot node = best_node(workload, i, set.looks_of(number));
        if (!node.valid()) {
          short_.insert(id);
          break;
        }
        add_stand_in(group->second, workload, i, node, PodPhase::kHeld, number);
        await_next(id, group->second);
      }
    }
    if (waits_for_all(context_.state, group->second)) short_.insert(id);
    if (!short_.contains(id)) freed_.insert(workload.full_name());  // its pods may come
  }
  filled_at_ = context_.state.change_end();
}

void QueuedWorkloads::await_next(quota::WorkloadId id, Group& group) {
  const auto came_runs = [&](const auto& came) { return runs(context_.state, context_.state.find_pod(came.first)); };
  if (rehearses_ || (!group.begun && std::ranges::none_of(group.came, came_runs))) return;
  if (!group.awaits_since) group.awaits_since = now_;
  awaiting_.insert(id);
}

std::optional<Time> QueuedWorkloads::next_due() const {
  std::optional<Time> out;
  for (const quota::WorkloadId id : awaiting_)
    if (const auto group = groups_.find(id); group != groups_.end() && group->second.awaits_since)
      out = std::min(out.value_or(Time{INT64_MAX}), *group->second.awaits_since + kNextPodsMax);
  return out;
}

// Pods that nobody makes have no place: others have it. When one comes all the same, places are looked for anew. Slices
// stay whole. True: some were given up.
bool QueuedWorkloads::give_up_awaited() {
  bool some = false;
  for (auto at = awaiting_.begin(); at != awaiting_.end();) {
    const auto known = groups_.find(*at);
    Group* const group = known == groups_.end() ? nullptr : &known->second;
    const auto awaits = [](const Set& set) { return !set.stand_ins.empty(); };
    const bool goes_on = group != nullptr && group->awaits_since && std::ranges::any_of(group->sets, awaits);
    if (goes_on && *group->awaits_since + kNextPodsMax > now_) {
      ++at;
      continue;
    }
    if (goes_on && !group->came.empty() && !has_begun(*at)) {  // those that are there wait for all to have places
      group->awaits_since = now_;
      ++at;
      continue;
    }
    const std::vector<model::PodSet>& sets = admission_.status(*at).workload.pod_sets;
    for (size_t i = 0; goes_on && i < group->sets.size() && i < sets.size(); ++i)
      for (Set& set = group->sets[i]; sets[i].slices.empty() && !set.stand_ins.empty(); ++set.given_up) {
        drop_stand_in(set, set.stand_ins.size() - 1);
        some = true;
      }
    if (group != nullptr) group->awaits_since.reset();
    at = awaiting_.erase(at);
  }
  changed_ |= some;
  return some;
}

}  // namespace berth::engine
