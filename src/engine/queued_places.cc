// Where the pods of a workload would stand: the part of QueuedWorkloads that looks for places and keeps them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "engine/kept_aside.h"
#include "engine/queued_workloads.h"
#include "engine/shared_domains.h"

namespace berth::engine {
namespace {

// Which pod set comes first where there are few places: GPUs are scarcer than CPUs.
std::pair<int64_t, int64_t> scarcity(const model::PodSet& set) {
  int64_t gpus = 0;
  for (const auto& [name, amount] : set.requests) gpus = quota::saturating_add(gpus, model::gpu_micros(name, amount));
  return {gpus, set.requests.get("cpu")};
}

std::shared_ptr<const model::SchedulingSpec> with_terms(const std::shared_ptr<const model::SchedulingSpec>& plain,
                                                        const quota::FlavorTerms& terms) {
  if (plain == nullptr || terms.empty()) return plain;
  auto spec = std::make_shared<model::SchedulingSpec>(*plain);
  quota::add_terms(terms, *spec);
  return spec;
}

}  // namespace

// As the pod set says, with what its flavors add.
PodLooks QueuedWorkloads::looks_of(const quota::PlaceRequest& request, size_t set) {
  const model::PodSet& pods = request.workload->pod_sets[set];
  return {with_terms(pods.spec, quota::terms_of((*request.pod_sets)[set], *request.flavors)), pods.labels};
}

// Those that are cut into slices go by their own numbers, and are taken for equal.
std::vector<QueuedWorkloads::Group::Member> QueuedWorkloads::members_of(const quota::PlaceRequest& request,
                                                                        size_t set) {
  const model::PodSet& pods = request.workload->pod_sets[set];
  std::vector<Group::Member> out;
  if (pods.members.empty() || !pods.slices.empty()) return out;
  const quota::FlavorTerms terms = quota::terms_of((*request.pod_sets)[set], *request.flavors);
  for (const model::PodSet::Member& pod : pods.members)
    out.push_back({pod.uid, {with_terms(pod.spec, terms), pod.labels}});
  return out;
}

NodeSlot QueuedWorkloads::best_node(const model::Workload& workload, size_t set, const PodLooks& looks) {
  return stand_ins_.ask(workload, set, looks, [](PodSlot, const Candidates& candidates) { return candidates.best(); });
}

bool QueuedWorkloads::fits_on(const model::Workload& workload, size_t set, const PodLooks& looks, NodeSlot node) {
  const KeptAside aside(context_.state, node);
  return stand_ins_.ask(workload, set, looks, [&](PodSlot, const Candidates& candidates) {
    return candidates.objection().empty() && candidates.failure(node) == kFits;
  });
}

// That a flavor of the pod set is one of no node; empty: each has some.
std::string QueuedWorkloads::no_node_has_it(const quota::PlaceRequest& request, size_t set) const {
  for (const auto& [resource, pick] : (*request.pod_sets)[set].flavors) {
    const auto flavor = request.flavors->find(pick.flavor);
    if (flavor == request.flavors->end() || flavor->second.node_labels.empty()) continue;
    const auto has_it = [&](const auto& entry) {
      const NodeState& node = context_.state.node(entry.second);
      return node.present &&
             std::all_of(flavor->second.node_labels.begin(), flavor->second.node_labels.end(), [&](const auto& label) {
               const std::string* value = node.node.labels.find(label.first);
               return value != nullptr && *value == label.second;
             });
    };
    const auto& nodes = context_.state.nodes_by_name();
    if (std::any_of(nodes.begin(), nodes.end(), has_it)) continue;
    std::string labels;
    for (const auto& [key, value] : flavor->second.node_labels)
      labels += fmt::format("{}{}={}", labels.empty() ? "" : ", ", key, value);
    return fmt::format("flavor {} has no nodes: none has {}", pick.flavor, labels);
  }
  return "";
}

// The workload's stand-ins that are on nodes, and its pods.
std::vector<PodSlot> QueuedWorkloads::standing(quota::WorkloadId id, bool pods) const {
  std::vector<PodSlot> out;
  const auto add = [&](PodSlot slot) {
    const PodState& pod = context_.state.pod(slot);
    if (holds_room(pod.phase) && context_.state.node(pod.node).present) out.push_back(slot);
  };
  if (const auto group = groups_.find(id); group != groups_.end())
    for (const Set& set : group->second.sets)
      for (const auto& [slot, index] : set.stand_ins) add(slot);
  if (!pods) return out;
  for (const PodSlot slot : own_pods(id)) add(slot);
  return out;
}

std::vector<PodSlot> QueuedWorkloads::standing(const std::vector<quota::WorkloadId>& all) const {
  std::vector<PodSlot> out;
  for (const quota::WorkloadId id : all) {
    const std::vector<PodSlot> one = standing(id, true);
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

// Pod sets, those that ask for the most GPUs first.
std::vector<size_t> by_scarcity(const std::vector<model::PodSet>& sets) {
  std::vector<size_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scarcity(sets[a]) > scarcity(sets[b]); });
  return order;
}

// The pods of a set that have not come, of so many as the workload needs; and where those of slices are that have.
PlaceSearch::Set QueuedWorkloads::lacking(quota::WorkloadId id, const model::PodSet& pods, size_t set, PodLooks looks,
                                          int32_t wanted, bool stand_ins_stay) const {
  PlaceSearch::Set out{set, std::move(looks), {}, {}};
  if (out.looks.spec == nullptr) return out;
  const auto group = groups_.find(id);
  const Set* known = group == groups_.end() || set >= group->second.sets.size() ? nullptr : &group->second.sets[set];
  if (known != nullptr && pods.slices.empty()) wanted -= known->came;
  if (known != nullptr && !pods.slices.empty()) {
    for (const auto& [uid, pod] : group->second.came)
      if (const PodSlot slot = context_.state.find_pod(uid); pod.set == set && slot.valid())
        out.there.emplace_back(pod.number, context_.state.pod(slot).node);
    if (stand_ins_stay)
      for (const auto& [slot, number] : known->stand_ins) out.there.emplace_back(number, context_.state.pod(slot).node);
    std::ranges::sort(out.there);
  }
  auto there = out.there.begin();
  for (int32_t number = 0; number < wanted; ++number) {
    while (there != out.there.end() && there->first < number) ++there;
    if (there == out.there.end() || there->first != number) out.numbers.push_back(number);
  }
  std::erase_if(out.there,
                [&](const auto& pod) { return !pod.second.valid() || !context_.state.node(pod.second).present; });
  return out;
}

// lacking(), as many at a time as look alike; those come first that the fewest nodes could have now, or ever.
void QueuedWorkloads::add_lacking(const quota::PlaceRequest& request, size_t set, std::vector<PlaceSearch::Set>& out) {
  const model::PodSet& pods = request.workload->pod_sets[set];
  PlaceSearch::Set all = lacking(request.id, pods, set, looks_of(request, set),
                                 quota::still_needed((*request.pod_sets)[set], pods), false);
  const std::vector<Group::Member> members = members_of(request, set);
  if (members.empty()) return out.push_back(std::move(all));
  std::set<int32_t> taken;
  if (const auto group = groups_.find(request.id); group != groups_.end())
    for (const auto& [uid, number] : group->second.numbers(set, members)) taken.insert(number);
  std::vector<PlaceSearch::Set> apart;
  size_t left = all.numbers.size();
  for (int32_t number = 0; left > 0; ++number) {
    if (taken.contains(number)) continue;
    --left;
    const PodLooks& looks = number < std::ssize(members) ? members[static_cast<size_t>(number)].looks : all.looks;
    auto alike = std::ranges::find(apart, looks, &PlaceSearch::Set::looks);
    if (alike == apart.end()) alike = apart.insert(apart.end(), {set, looks, {}, {}});
    alike->numbers.push_back(number);
  }
  std::vector<std::tuple<size_t, size_t, size_t>> order;
  for (size_t i = 0; i < apart.size(); ++i) {
    const PodLooks& looks = apart[i].looks;
    const size_t fit_now = stand_ins_.ask(*request.workload, set, looks, [&](PodSlot, const Candidates& candidates) {
      const auto fits = [&](const auto& node) { return candidates.failure(node.second) == kFits; };
      return static_cast<size_t>(std::ranges::count_if(context_.state.nodes_by_name(), fits));
    });
    order.emplace_back(fit_now, hosts(*request.workload, set, looks).size(), i);
  }
  std::ranges::sort(order);
  for (const auto& [now, ever, i] : order) out.push_back(std::move(apart[i]));
  if (apart.empty()) out.push_back(std::move(all));
}

// Pods outside queues for which nodes are kept and that come after the workload, which may have that room first; and
// the stand-ins of those for whom GPUs are kept.
std::vector<PodSlot> QueuedWorkloads::kept_for_later(const model::Workload& workload) const {
  std::vector<PodSlot> out;
  const State& state = context_.state;
  for (const auto& [node, kept] : context_.kept_gpus.all())
    if (state.node(node).present &&
        (kept.owner == workload.uid || queue_rank(workload) < queue_rank(state.pod(kept.stand_in).pod)))
      out.push_back(kept.stand_in);
  for (const PodSlot slot : context_.nominees) {
    const PodState& pod = state.pod(slot);
    if (pod.node_kept && state.node(pod.node).present && pod.pod.workload.empty() &&
        state.pod_class(pod.cls).claims.empty() && queue_rank(workload) < queue_rank(pod.pod))
      out.push_back(slot);
  }
  return out;
}

// `partly`: also where not all have a place.
bool QueuedWorkloads::find(const quota::PlaceRequest& request, const std::vector<PodSlot>& gone,
                           std::vector<Found>& found, std::string* why, bool partly) {
  const std::vector<model::PodSet>& pods = request.workload->pod_sets;
  std::vector<PlaceSearch::Set> sets;
  for (const size_t set : by_scarcity(pods)) add_lacking(request, set, sets);
  const auto search_without = [&](const std::vector<PodSlot>& later) {
    PlaceSearch search(context_, stand_ins_, *request.workload, why != nullptr);
    for (const PodSlot slot : standing(request.id, false)) search.evict(slot);
    for (const quota::WorkloadId id : request.over != nullptr ? *request.over : std::vector<quota::WorkloadId>()) {
      const auto group = groups_.find(id);
      if (group == groups_.end() || group->second.keeps_places()) continue;  // it waits no more
      for (const PodSlot slot : standing(id, false)) search.evict(slot);
    }
    for (const std::vector<PodSlot>* leave : {&gone, &later})
      for (const PodSlot slot : *leave) search.evict(slot);
    const bool all = search.run(sets, partly);
    found = search.found();
    if (!all && why != nullptr) *why = why_not(request, sets, search.failure());
    return all;
  };
  if (search_without({})) return true;
  const std::vector<PodSlot> later = kept_for_later(*request.workload);
  return !later.empty() && search_without(later);
}

std::string QueuedWorkloads::why_not(const quota::PlaceRequest& request, const std::vector<PlaceSearch::Set>& sets,
                                     const PlaceSearch::Failure& failure) {
  if (std::string no_node = no_node_has_it(request, failure.set); !no_node.empty()) return no_node;
  const quota::PodSetAssignment& given = (*request.pod_sets)[failure.set];
  size_t wanted = 0;
  for (const PlaceSearch::Set& set : sets)
    if (set.index == failure.set) wanted += set.numbers.size();
  const std::set<std::string> flavors = quota::flavor_names(given);
  return fmt::format("{} of {} pods of pod set {} have a place{}{}: {}", failure.placed, wanted, given.name,
                     flavors.empty() ? "" : " in flavor ", fmt::join(flavors, ", "), failure.why);
}

bool QueuedWorkloads::fit(const quota::PlaceRequest& request, const std::vector<quota::WorkloadId>& gone,
                          std::string* why) {
  std::vector<Found> found;
  return find(request, standing(gone), found, why);
}

quota::Leave QueuedWorkloads::may_leave(quota::WorkloadId id) {
  if (context_.rules.empty()) return quota::Leave::kFreely;
  std::vector<PodSlot> pods = standing(id, true);
  std::erase_if(pods, [&](PodSlot slot) { return context_.state.pod(slot).pod.stand_in; });
  const auto is_protected = [&](PodSlot slot) { return context_.rules.is_protected(context_.state.pod(slot).pod); };
  if (std::any_of(pods.begin(), pods.end(), is_protected)) return quota::Leave::kNever;
  const std::vector<bool> beyond = context_.rules.violations(pods, context_.state);
  const bool over = std::find(beyond.begin(), beyond.end(), true) != beyond.end();
  return over ? quota::Leave::kOverBudget : quota::Leave::kFreely;
}

std::vector<quota::WorkloadId> QueuedWorkloads::in_the_way(const quota::PlaceRequest& request,
                                                           const std::vector<quota::WorkloadId>& gone) {
  std::vector<Found> found;
  std::vector<quota::WorkloadId> out;
  if (!find(request, standing(gone), found, nullptr)) return out;
  std::set<NodeSlot> nodes;
  for (const Found& place : found) nodes.insert(place.node);
  std::copy_if(gone.begin(), gone.end(), std::back_inserter(out), [&](quota::WorkloadId id) {
    const std::vector<PodSlot> pods = standing(id, true);
    return std::any_of(pods.begin(), pods.end(),
                       [&](PodSlot slot) { return nodes.contains(context_.state.pod(slot).node); });
  });
  return out;
}

bool QueuedWorkloads::hold(const quota::PlaceRequest& request, const std::vector<quota::WorkloadId>& gone) {
  std::vector<Found> found;
  const std::vector<PodSlot> leaving = standing(gone);
  if (!find(request, leaving, found, nullptr)) return false;
  for (const PodSlot slot : leaving) context_.state.revise(slot, [](PodState& pod) { pod.makes_way = true; });
  const bool had_another = let_go(request.id);
  gave_back_ |= had_another && gone.empty();  // while others leave it is looked for in every cycle
  if (gone.empty()) context_.kept_gpus.give_back_of(request.workload->uid);
  take_places(request, found, gone.empty() ? PodPhase::kHeld : PodPhase::kNominated);
  return true;
}

// Held: from now on; nominated: once others have left.
void QueuedWorkloads::take_places(const quota::PlaceRequest& request, const std::vector<Found>& found, PodPhase phase) {
  taken_.insert(request.id);
  Group& group = groups_[request.id];
  const std::vector<model::PodSet>& sets = request.workload->pod_sets;
  group.sets.clear();
  group.stage = phase == PodPhase::kHeld ? Group::Stage::kReserved : Group::Stage::kWaiting;
  for (size_t i = 0; i < sets.size(); ++i)
    group.sets.push_back({sets[i].name, looks_of(request, i), quota::still_needed((*request.pod_sets)[i], sets[i])});
  for (const auto& [uid, pod] : group.came)
    if (pod.set < group.sets.size()) ++group.sets[pod.set].came;
  for (size_t i = 0; i < sets.size(); ++i) name_members(request, group, i);
  for (const Found& place : found) add_stand_in(group, *request.workload, place.set, place.node, phase, place.number);
}

void QueuedWorkloads::release(quota::WorkloadId id) {
  const auto is_leaving = [&] {
    return !admission_.status(id).evicted.empty() && admission_.ledger().find(id) != nullptr;
  };
  if (!rehearses_ || !is_leaving()) gave_back_ |= let_go(id);
}

std::vector<quota::PodOf> QueuedWorkloads::pods(quota::WorkloadId id) const {
  std::vector<quota::PodOf> out;
  for (const PodSlot slot : own_pods(id)) {
    const model::Pod& pod = context_.state.pod(slot).pod;
    out.push_back({pod.name, pod.uid, pod.terminating});
  }
  return out;
}

// True: there was something to give back.
bool QueuedWorkloads::let_go(quota::WorkloadId id) {
  short_.erase(id);
  const auto group = groups_.find(id);
  if (group == groups_.end()) return false;
  bool gave_back = false;
  for (Set& set : group->second.sets)
    for (; !set.stand_ins.empty(); gave_back = true) drop_stand_in(set, set.stand_ins.size() - 1);
  lets_go_ |= gave_back && !taken_.contains(id);
  group->second.stage = Group::Stage::kWaiting;
  group->second.begun = false;
  group->second.awaits_since.reset();
  if (group->second.came.empty()) groups_.erase(group);
  return gave_back;
}

// Whoever stood for a pod that is none of them any more gives its place back, and it is looked for anew.
void QueuedWorkloads::name_members(const quota::PlaceRequest& request, Group& group, size_t set) {
  std::vector<Group::Member> members = members_of(request, set);
  if (members.empty() && group.sets[set].members.empty()) return;
  for (const PodSlot slot : group.name_members(set, std::move(members))) {
    context_.state.unassign(slot, PodPhase::kNotQueued);
    context_.state.remove_pod(slot);
    short_.insert(request.id);
    changed_ = true;
  }
}

// Number −1: the one behind those of the others.
void QueuedWorkloads::add_stand_in(Group& group, const model::Workload& workload, size_t set, NodeSlot node,
                                   PodPhase phase, int32_t number) {
  auto& stand_ins = group.sets[set].stand_ins;
  if (number < 0) number = stand_ins.empty() ? 0 : stand_ins.back().second + 1;
  const PodSlot slot = stand_ins_.enter(stand_ins_.make(workload, set, group.sets[set].looks_of(number), number));
  const auto at = std::find_if(stand_ins.begin(), stand_ins.end(), [&](const auto& s) { return s.second > number; });
  stand_ins.insert(at, {slot, number});
  context_.state.assign(slot, node, phase);
  if (phase == PodPhase::kHeld) context_.state.choose_volumes(slot);
}

void QueuedWorkloads::drop_stand_in(Set& set, size_t at) {
  const PodSlot slot = set.stand_ins[at].first;
  context_.state.unassign(slot, PodPhase::kNotQueued);
  context_.state.remove_pod(slot);
  set.stand_ins.erase(set.stand_ins.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace berth::engine
