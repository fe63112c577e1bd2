#include "engine/queued_workloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/check.h"

namespace berth::engine {
namespace {

// A pod's annotations may change after its workload was admitted, and with them the share that it has quota for.
bool shares_as_admitted(const std::shared_ptr<const model::SchedulingSpec>& admitted, const model::Pod& pod) {
  return admitted == nullptr || admitted->gpu_share == pod.spec->gpu_share;
}

// Whoever may write a pod may write there whose it is.
bool is_own(const model::Workload& workload, const model::Pod& pod) {
  if (workload.of_group && !pod.in_group) return false;
  const std::string& owner = workload.owner_uid;
  return owner.empty() || owner == pod.owner_uid || owner == pod.uid;
}

}  // namespace

void QueuedWorkloads::set_namespace_labels(const std::string& name, const model::Labels& labels) {
  admission_.set_namespace_labels(name, labels);
  changed_ = true;
}

void QueuedWorkloads::upsert(model::Workload&& workload) {
  in_use_ = true;
  const std::string name = workload.full_name();
  const quota::WorkloadId id = admission_.upsert(std::move(workload));
  by_name_[name] = id;
  changed_ = true;
  trim(id);
}

void QueuedWorkloads::restore(WorkloadAdmitted&& event) {
  in_use_ = changed_ = true;
  const std::string name = event.workload.full_name();
  if (admission_.find(event.workload.uid).valid()) return;
  const bool stays = event.held.evicted.empty();
  const std::optional<bool> ran = event.held.ran;
  by_name_[name] = admission_.restore(std::move(event.workload), std::move(event.held));
  if (stays) restored_.emplace_back(by_name_[name], ran);
}

// Pods that have come are met in this cycle; for the others places are looked for. Where nobody knows whether pods have
// run they may have, unless there are some that say so themselves: one that is leaving its node has.
void QueuedWorkloads::restore_places() {
  for (const auto& [id, ran] : std::exchange(restored_, {})) {
    const quota::WorkloadStatus& status = admission_.status(id);
    const bool admitted = status.phase == quota::WorkloadPhase::kAdmitted;
    if (!admitted && status.phase != quota::WorkloadPhase::kQuotaReserved) continue;
    const quota::PlaceRequest request{id, &status.workload, &status.assignment, &admission_.flavors()};
    Group& group = groups_[id];
    group.stage = admitted ? Group::Stage::kAdmitted : Group::Stage::kReserved;
    const std::vector<PodSlot> own = own_pods(id);
    const auto leaves = [&](PodSlot slot) {
      const model::Pod& pod = context_.state.pod(slot).pod;
      return pod.terminating && !pod.node_name.empty();
    };
    group.begun = ran.value_or(own.empty()) || std::ranges::any_of(own, leaves);
    for (size_t i = 0; i < status.assignment.size(); ++i) {
      const model::PodSet& pods = status.workload.pod_sets[i];
      group.sets.push_back({pods.name, looks_of(request, i), quota::still_needed(status.assignment[i], pods)});
      name_members(request, group, i);
    }
    short_.insert(id);
    filled_at_ = UINT64_MAX;
  }
}

void QueuedWorkloads::end(const std::string& uid, bool deleted) {
  const quota::WorkloadId id = admission_.find(uid);
  if (!id.valid()) return;
  changed_ = true;
  if (!deleted) return admission_.finish(id);
  const std::string name = admission_.status(id).workload.full_name();
  admission_.remove(id);
  groups_.erase(id);
  by_name_.erase(name);
  freed_.insert(name);
}

void QueuedWorkloads::released(const std::string& uid) {
  const quota::WorkloadId id = admission_.find(uid);
  if (!id.valid()) return;
  changed_ = true;
  admission_.released(id);
}

void QueuedWorkloads::pods_ready(const WorkloadPodsReady& event) {
  const quota::WorkloadId id = admission_.find(event.uid);
  if (!id.valid()) return;
  changed_ = true;
  admission_.pods_ready(id, event.ready, event.at);
}

void QueuedWorkloads::check_reported(const WorkloadCheckReported& event) {
  const quota::WorkloadId id = admission_.find(event.uid);
  if (!id.valid()) return;
  changed_ = true;
  admission_.check_state(id, event.report, event.at);
}

std::vector<quota::WorkloadId> QueuedWorkloads::all() const {
  std::vector<quota::WorkloadId> out;
  for (const auto& [name, id] : by_name_) out.push_back(id);
  std::sort(out.begin(), out.end());
  return out;
}

std::optional<quota::WorkloadId> QueuedWorkloads::find(const std::string& name) const {
  const auto known = by_name_.find(name);
  return known == by_name_.end() ? std::nullopt : std::optional(known->second);
}

QueuedWorkloads::Group* QueuedWorkloads::keeps_places(const std::string& workload) {
  const auto known = by_name_.find(workload);
  if (known == by_name_.end()) return nullptr;
  const auto group = groups_.find(known->second);
  return group == groups_.end() || !group->second.keeps_places() ? nullptr : &group->second;
}

bool QueuedWorkloads::admits(const std::string& workload) const {
  const auto known = by_name_.find(workload);
  const auto group = known == by_name_.end() ? groups_.end() : groups_.find(known->second);
  return group != groups_.end() && group->second.stage == Group::Stage::kAdmitted;
}

bool QueuedWorkloads::holds_back(const model::Pod& pod) const {
  if (!pod.node_name.empty()) return false;
  const auto known = pod.workload.empty() ? by_name_.end() : by_name_.find(pod.workload);
  if (known == by_name_.end()) return pod.queued || pod.awaits_owner;
  const auto group = groups_.find(known->second);
  if (group == groups_.end() || group->second.stage != Group::Stage::kAdmitted) return true;
  const std::vector<Set>& sets = group->second.sets;
  const auto came = group->second.came.find(pod.uid);
  return came == group->second.came.end() ||
         (came->second.set < sets.size() && !shares_as_admitted(sets[came->second.set].looks.spec, pod));
}

std::string QueuedWorkloads::why_held_back(const model::Pod& pod) const {
  const auto known = by_name_.find(pod.workload);
  if (known == by_name_.end() && !pod.queued) return "its Job, which may name a queue, has not been seen yet";
  if (known == by_name_.end()) return "its Job names a queue, and waits for a Workload to be admitted by";
  const quota::WorkloadId id = known->second;
  if (!is_own(admission_.status(id).workload, pod))
    return fmt::format("says that it belongs to Workload {}, which is not its own", pod.workload);
  const std::string& message = admission_.status(id).message;
  if (!admits(pod.workload))
    return fmt::format("waits for Workload {} to be admitted{}{}", pod.workload, message.empty() ? "" : ": ", message);
  if (!pod.spec->gpu_share.problem.empty()) return pod.spec->gpu_share.problem;
  const auto has_share = [&](const Set& set) { return shares_as_admitted(set.looks.spec, pod); };
  if (std::ranges::none_of(groups_.at(id).sets, has_share))
    return fmt::format("asks for another share of a GPU than Workload {} was admitted with", pod.workload);
  if (!may_begin(pod.workload)) return fmt::format("waits for all pods of Workload {} to have a place", pod.workload);
  if (short_.contains(id) && has_slices(pod))
    return fmt::format("waits for a place beside the others of its slice of Workload {}", pod.workload);
  return fmt::format("Workload {} has all the pods that it was admitted with", pod.workload);
}

void QueuedWorkloads::know(PodSlot slot) {
  const model::Pod& pod = context_.state.pod(slot).pod;
  pods_[pod.workload].insert(pod.uid);
}

NodeSlot QueuedWorkloads::meet(PodSlot slot) {
  const PodState& state = context_.state.pod(slot);
  const model::Pod& pod = state.pod;
  Group* group = keeps_places(pod.workload);
  const bool leaves = pod.terminating && pod.node_name.empty();  // else it has its place until it is gone
  if (group == nullptr || group->stage != Group::Stage::kAdmitted || pod.gated || leaves ||
      group->came.contains(pod.uid) || !is_own(admission_.status(by_name_.at(pod.workload)).workload, pod))
    return {};
  const auto is_its = [&](const Set& set) {
    return (set.name == pod.pod_set || (pod.pod_set.empty() && group->sets.size() == 1)) &&
           (!pod.node_name.empty() || shares_as_admitted(set.looks.spec, pod));
  };
  const auto set = std::find_if(group->sets.begin(), group->sets.end(), is_its);
  if (set == group->sets.end() || set->came >= set->wanted) return {};
  if (std::exchange(set->given_up, 0) > 0) short_.insert(by_name_.at(pod.workload)), changed_ = true;
  if (!holds_room(state.phase) && pod.node_name.empty() && !may_begin(pod.workload)) return {};
  const auto index = static_cast<size_t>(set - group->sets.begin());
  Group::Came came{index, -1};
  const auto stands_there = [&](const auto& kept) {
    return context_.state.node(context_.state.pod(kept.first).node).node.name == pod.node_name;
  };
  auto own = std::find_if(set->stand_ins.begin(), set->stand_ins.end(), stands_there);
  if (const bool sliced = has_slices(pod); sliced || !set->members.empty()) {
    const std::optional<int32_t> number =
        sliced ? number_for(by_name_.at(pod.workload), index, pod) : group->number_for(index, pod, context_.state);
    if (!number) return {};  // its place is looked for
    came.number = *number;
    own = std::ranges::find(set->stand_ins, *number, &std::pair<PodSlot, int32_t>::second);
  } else if (own == set->stand_ins.end()) {
    own = set->stand_ins.begin();
  }
  group->came.emplace(pod.uid, came);
  ++set->came;
  if (group->awaits_since) group->awaits_since = now_;
  if (own == set->stand_ins.end()) return {};
  const NodeSlot node = context_.state.pod(own->first).node;
  drop_stand_in(*set, static_cast<size_t>(own - set->stand_ins.begin()));
  return pod.node_name.empty() && context_.state.node(node).present ? node : NodeSlot{};
}

void QueuedWorkloads::give_up_place(PodSlot slot) {
  const model::Pod& pod = context_.state.pod(slot).pod;
  const auto known = by_name_.find(pod.workload);
  if (known == by_name_.end()) return;
  const auto group = groups_.find(known->second);
  if (group == groups_.end()) return;
  const auto came = group->second.came.find(pod.uid);
  if (came == group->second.came.end()) return;
  if (came->second.set < group->second.sets.size()) --group->second.sets[came->second.set].came;
  group->second.came.erase(came);
  if (!group->second.keeps_places() && group->second.came.empty()) groups_.erase(group);
}

// A pod of the workload has gone: what it stood on is kept for the next, if the workload still needs one.
void QueuedWorkloads::refill(const std::string& workload, NodeSlot node) {
  Group* group = keeps_places(workload);
  if (group == nullptr) return;
  const quota::WorkloadId id = by_name_.at(workload);
  const model::Workload& spec = admission_.status(id).workload;
  for (size_t i = 0; i < group->sets.size(); ++i) {
    Set& set = group->sets[i];
    if (set.looks.spec == nullptr || set.came + std::ssize(set.stand_ins) + set.given_up >= set.wanted) continue;
    bool stays = node.valid() && context_.state.node(node).present;
    int32_t number = -1;
    if (!set.members.empty()) number = group->free_number(i);
    if (stays && !spec.pod_sets[i].slices.empty()) {
      number = number_at(id, i, node).value_or(-1);
      stays = number >= 0;
    }
    if (stays && fits_on(spec, i, set.looks_of(number), node)) {
      add_stand_in(*group, spec, i, node, PodPhase::kHeld, number);
      await_next(id, *group);
    } else {
      short_.insert(id);
      changed_ = true;
    }
  }
}

// Those of the pods that name the workload which are its own, by UID.
std::vector<PodSlot> QueuedWorkloads::own_pods(quota::WorkloadId id) const {
  const model::Workload& workload = admission_.status(id).workload;
  std::vector<PodSlot> out;
  const std::set<std::string>* named = pods_of(workload.full_name());
  if (named == nullptr) return out;
  for (const std::string& uid : *named)
    if (const PodSlot slot = context_.state.find_pod(uid); is_own(workload, context_.state.pod(slot).pod))
      out.push_back(slot);
  return out;
}

const std::set<std::string>* QueuedWorkloads::pods_of(const std::string& workload) const {
  const auto known = pods_.find(workload);
  return known == pods_.end() ? nullptr : &known->second;
}

// Stand-ins of what the workload does not need any more go.
void QueuedWorkloads::trim(quota::WorkloadId id) {
  const auto group = groups_.find(id);
  if (group == groups_.end() || !group->second.keeps_places()) return;
  const quota::WorkloadStatus& status = admission_.status(id);
  for (size_t i = 0; i < group->second.sets.size() && i < status.assignment.size(); ++i) {
    Set& set = group->second.sets[i];
    set.wanted = quota::still_needed(status.assignment[i], status.workload.pod_sets[i]);
    name_members({id, &status.workload, &status.assignment, &admission_.flavors()}, group->second, i);
    while (!set.stand_ins.empty() && set.came + std::ssize(set.stand_ins) + set.given_up > set.wanted)
      drop_stand_in(set, set.to_spare(context_.state));
    set.given_up = std::min(set.given_up, set.wanted);
  }
}

// With its admission a workload's pods may come.
void QueuedWorkloads::follow(const quota::AdmissionDecision& decision) {
  const quota::WorkloadId id = decision.workload;
  const bool evicted = !admission_.status(id).evicted.empty();  // in the same cycle
  if (decision.kind != quota::AdmissionDecision::Kind::kAdmit || evicted) return;
  groups_[id].stage = Group::Stage::kAdmitted;
  trim(id);
}

bool QueuedWorkloads::run(Time now, WorkBudget& work, std::vector<quota::AdmissionDecision>& decisions) {
  const bool moved = context_.state.change_end() != seen_until_, went_on = std::exchange(goes_on_, false);
  now_ = now;
  std::optional<Time> due = admission_.next_due();
  for (const std::optional<Time>& other : {admission_.keeps_from(), next_due()})
    if (other) due = std::min(due.value_or(*other), *other);
  if (!in_use_ || (!changed_ && !moved && (!due || *due > now))) return true;
  used_ = 0;
  begin_asking();
  taken_.clear();
  lets_go_ = give_up_awaited();
  leave_unfit();
  fill_short();
  if (std::exchange(offers_changed_, false)) admission_.offers_changed();
  if (moved) admission_.places_changed();
  changed_ = true;
  while (changed_ && used_ < work.left) {
    std::vector<quota::AdmissionDecision> decided;
    gave_back_ = false;
    changed_ = admission_.run_cycle(now, decided);
    if (gave_back_) admission_.places_changed();
    changed_ |= gave_back_;
    used_ += 1 + stand_ins_.take_used();
    for (const quota::AdmissionDecision& decision : decided) {
      freed_.insert(admission_.status(decision.workload).workload.full_name());
      follow(decision);
    }
    std::move(decided.begin(), decided.end(), std::back_inserter(decisions));
  }
  if (!changed_ || held_.valid()) note_wanted();
  changed_ |= held_.valid();
  seen_until_ = context_.state.change_end();
  work.left -= used_ + stand_ins_.take_used();
  goes_on_ = lets_go_ && !went_on;  // once: of a queue, two may have room kept in turns
  return !changed_ && !goes_on_;
}

void QueuedWorkloads::check(std::vector<std::string>& broken) const {
  std::set<PodSlot> known(stand_ins_.keepers().begin(), stand_ins_.keepers().end());
  for (const WantedPlaces& wanted : wanted_)
    for (const WantedPlaces::Option& option : wanted.options)
      for (const WantedPlaces::Set& set : option.sets) known.insert(set.pod);
  for (const auto& [id, group] : groups_) {
    const std::string name = admission_.status(id).workload.full_name();
    std::vector<int32_t> came(group.sets.size(), 0);
    std::set<std::pair<size_t, int32_t>> numbers;
    for (const auto& [uid, pod] : group.came) {
      const auto named = pods_.find(name);
      if (named == pods_.end() || !named->second.contains(uid))
        broken.push_back(fmt::format("workload {} counts pod {}, which has gone", name, uid));
      if (pod.set < came.size()) ++came[pod.set];
      if (pod.number >= 0 && !numbers.insert({pod.set, pod.number}).second)
        broken.push_back(fmt::format("two pods of workload {} have number {}", name, pod.number));
    }
    for (size_t i = 0; i < group.sets.size(); ++i) {
      const Set& set = group.sets[i];
      const int32_t places = set.came + static_cast<int32_t>(set.stand_ins.size());
      if (group.keeps_places() && (set.came != came[i] || places > std::max(set.wanted, set.came)))
        broken.push_back(fmt::format("workload {} has {} places and {} pods of {} in pod set {}", name, places, came[i],
                                     set.wanted, set.name));
      if (group.keeps_places() && set.looks.spec != nullptr && places + set.given_up < set.wanted &&
          !short_.contains(id))
        broken.push_back(fmt::format("workload {} lacks places that nobody looks for", name));
      for (const auto& [slot, index] : set.stand_ins) {
        const PodPhase phase = context_.state.pod(slot).phase;
        if (phase != (group.keeps_places() ? PodPhase::kHeld : PodPhase::kNominated) || !known.insert(slot).second)
          broken.push_back(fmt::format("a stand-in of workload {} is {}", name, to_string(phase)));
      }
    }
  }
  for (const PodSlot slot : context_.state.pods())
    if (context_.state.pod(slot).pod.stand_in && context_.state.pod(slot).pod.keeps_gpus_for.empty() &&
        !known.contains(slot))
      broken.push_back("a stand-in stands in for nobody");
}

}  // namespace berth::engine
