// Where the pods of a workload would stand: the part of QueuedWorkloads that looks for places and keeps them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/kept_aside.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

constexpr size_t kKeptMax = 64;  // classes that are looked at again and again

// Which pod set comes first where there are few places: GPUs are scarcer than CPUs.
std::pair<int64_t, int64_t> scarcity(const model::PodSet& set) {
  int64_t gpus = 0;
  for (const auto& [name, amount] : set.requests)
    if (model::is_gpu_resource(name)) gpus += amount;
  return {gpus, set.requests.get("cpu")};
}

}  // namespace

// What is tried out in one search.
struct QueuedWorkloads::Search {
  Txn txn;
  std::vector<PodSlot> pods;  // that were made for it
  std::vector<Found>& found;
};

// The pod set's spec with what its flavors add; null where no place is needed.
QueuedWorkloads::Spec QueuedWorkloads::spec_of(const quota::PlaceRequest& request, size_t set) const {
  const Spec& plain = request.workload->pod_sets[set].spec;
  if (plain == nullptr) return nullptr;
  const quota::FlavorTerms terms = quota::terms_of((*request.pod_sets)[set], *request.flavors);
  if (terms.empty()) return plain;
  auto spec = std::make_shared<model::SchedulingSpec>(*plain);
  for (const auto& [key, value] : terms.node_labels) spec->node_selector.set(key, value);
  spec->tolerations.insert(spec->tolerations.end(), terms.tolerations.begin(), terms.tolerations.end());
  return spec;
}

// In its own name nobody sees it; `index` −1: it never gets a place for long.
model::Pod QueuedWorkloads::stand_in(const model::Workload& workload, size_t set, const Spec& spec, int32_t index) {
  const model::PodSet& pods = workload.pod_sets[set];
  model::Pod out;
  out.uid = index < 0 ? fmt::format("looks:{}", names_made_++)
                      : fmt::format("stand-in:{}:{}:{}", workload.uid, pods.name, index);
  out.namespace_name = workload.namespace_name;
  out.name = fmt::format("{}-{}", workload.name, pods.name);
  out.labels = pods.labels;
  out.priority = workload.priority;
  out.created = workload.created;
  out.spec = spec;
  out.workload = workload.full_name();
  out.pod_set = pods.name;
  out.stand_in = true;
  return out;
}

// A pod whose class knows by whom it is seen, by itself for example, which the first pod of a class learns afterwards.
PodSlot QueuedWorkloads::enter(model::Pod&& pod) {
  State& state = context_.state;
  const PodSlot slot = state.add_pod(std::move(pod));
  const PodState& made = state.pod(slot);
  if (state.pod_class(made.cls).seen_by != state.peers().identity(made.identity).matches) state.reclassify(slot);
  return slot;
}

// What is known of nodes for a class is kept while somebody has it.
void QueuedWorkloads::keep_class(PodSlot pod) {
  State& state = context_.state;
  const ClassId id = state.pod(pod).cls;
  if (std::any_of(kept_.begin(), kept_.end(), [&](PodSlot kept) { return state.pod(kept).cls == id; })) return;
  model::Pod keeps = state.pod(pod).pod;
  keeps.uid = fmt::format("looks:{}", names_made_++);
  keeps.keeps_class = true;
  const PodSlot slot = enter(std::move(keeps));
  context_.queue.of(id).last_used = UINT64_MAX;  // not one of those that are dropped for being idle
  if (kept_.size() < kKeptMax) {
    kept_.push_back(slot);
    return;
  }
  const PodSlot old = std::exchange(kept_[next_kept_], slot);
  if (ClassQueue& cls = context_.queue.of(state.pod(old).cls); cls.last_used == UINT64_MAX) cls.last_used = 0;
  state.remove_pod(old);
  next_kept_ = (next_kept_ + 1) % kKeptMax;
}

const Candidates& QueuedWorkloads::look(PodSlot pod) {
  const ClassId id = context_.state.pod(pod).cls;
  Candidates& candidates = context_.queue.of(id).candidates;
  WorkBudget unlimited{INT64_MAX};
  candidates.refresh(context_.state, context_.policies, context_.state.pod_class(id), context_.sets, unlimited);
  used_ += INT64_MAX - unlimited.left;
  return candidates;
}

// What `question` says of the candidates of a pod of the set, which gets no place.
template <typename Ask>
auto QueuedWorkloads::ask(const model::Workload& workload, size_t set, const Spec& spec, const Ask& question) {
  const PodSlot looks = enter(stand_in(workload, set, spec, -1));
  auto answer = question(look(looks));
  keep_class(looks);
  context_.state.remove_pod(looks);
  return answer;
}

NodeSlot QueuedWorkloads::best_node(const model::Workload& workload, size_t set, const Spec& spec) {
  return ask(workload, set, spec, [](const Candidates& candidates) { return candidates.best(); });
}

std::vector<QueuedWorkloads::Host> QueuedWorkloads::hosts(const model::Workload& workload, size_t set, const Spec& spec,
                                                          int64_t enough) {
  const PodSlot looks = enter(stand_in(workload, set, spec, -1));
  const Candidates& candidates = look(looks);
  const State& state = context_.state;
  std::vector<Host> out;
  for (const auto& [name, node] : state.nodes_by_name()) {
    const FailureSetId failure = candidates.failure(node);
    if (!failure.valid() || (failure != kFits && !context_.sets.preemption_helps(failure))) continue;
    const NodeView view = state.view(node);
    int64_t most = INT64_MAX;
    for (const ResourceAmount& request : state.pod_class(state.pod(looks).cls).requests)
      if (request.amount > 0) most = std::min(most, view.allocatable(request.id) / request.amount);
    if (most <= 0) continue;
    out.push_back({node, failure == kFits, most});
    enough -= std::min(enough, most);
    if (enough == 0) break;
  }
  keep_class(looks);
  context_.state.remove_pod(looks);
  return out;
}

bool QueuedWorkloads::fits_on(const model::Workload& workload, size_t set, const Spec& spec, NodeSlot node) {
  const KeptAside aside(context_.state, node);
  return ask(workload, set, spec, [&](const Candidates& candidates) {
    return candidates.objection().empty() && candidates.failure(node) == kFits;
  });
}

std::string QueuedWorkloads::why_not(PodSlot pod) {
  const Candidates& candidates = look(pod);
  const size_t nodes = context_.state.node_count();
  if (!candidates.objection().empty() || nodes == 0) return objection_message(candidates.objection(), nodes);
  return fit_message(candidates.counts(), context_.sets);
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
  const auto named = pods_.find(admission_.status(id).workload.full_name());
  if (named == pods_.end()) return out;
  for (const std::string& uid : named->second) add(context_.state.find_pod(uid));
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

bool QueuedWorkloads::place_set(const quota::PlaceRequest& request, size_t set, Search& search, std::string* why) {
  const Spec spec = spec_of(request, set);
  const quota::PodSetAssignment& given = (*request.pod_sets)[set];
  int32_t count = quota::still_needed(given, request.workload->pod_sets[set]);
  if (const auto group = groups_.find(request.id); group != groups_.end() && set < group->second.sets.size())
    count -= group->second.sets[set].came;
  if (spec == nullptr) return true;
  // All are there before the first is placed, so that where they want to be together it looks for room for all.
  const size_t first = search.pods.size();
  for (int32_t i = 0; i < count; ++i) search.pods.push_back(enter(stand_in(*request.workload, set, spec, -1)));
  for (int32_t i = 0; i < count; ++i) {
    const PodSlot pod = search.pods[first + static_cast<size_t>(i)];
    const NodeSlot node = look(pod).best();
    if (i == 0) keep_class(pod);
    if (!node.valid()) {
      if (why != nullptr) *why = no_node_has_it(request, set);
      if (why != nullptr && why->empty())
        *why = fmt::format("{} of {} pods of pod set {} have a place in flavor {}: {}", i, count, given.name,
                           fmt::join(quota::flavor_names(given), ", "), why_not(pod));
      return false;
    }
    search.txn.place(pod, node);
    search.found.push_back({set, node});
  }
  return true;
}

// Pod sets, those that ask for the most GPUs first.
std::vector<size_t> QueuedWorkloads::by_scarcity(const std::vector<model::PodSet>& sets) {
  std::vector<size_t> order(sets.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scarcity(sets[a]) > scarcity(sets[b]); });
  return order;
}

// One pod after the other gets the best node that is left. `partly`: also where not all have one.
bool QueuedWorkloads::find(const quota::PlaceRequest& request, const std::vector<PodSlot>& gone,
                           std::vector<Found>& found, std::string* why, bool partly) {
  const std::vector<model::PodSet>& sets = request.workload->pod_sets;
  Search search{Txn(context_.state), {}, found};
  for (const PodSlot slot : standing(request.id, false)) search.txn.evict(slot);
  if (request.over != nullptr)
    for (const quota::WorkloadId id : *request.over)
      for (const PodSlot slot : standing(id, false)) search.txn.evict(slot);
  for (const PodSlot slot : gone) search.txn.evict(slot);
  bool all = true;
  for (const size_t set : by_scarcity(sets))
    if (all || partly) all = place_set(request, set, search, why) && all;
  search.txn.rollback();
  for (const PodSlot pod : search.pods) context_.state.remove_pod(pod);
  return all;
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
  if (!find(request, standing(gone), found, nullptr)) return false;
  const bool had_another = let_go(request.id);
  gave_back_ |= had_another && gone.empty();  // while others leave it is looked for in every cycle
  take_places(request, found, gone.empty() ? PodPhase::kHeld : PodPhase::kNominated);
  return true;
}

// Held: from now on; nominated: once others have left.
void QueuedWorkloads::take_places(const quota::PlaceRequest& request, const std::vector<Found>& found, PodPhase phase) {
  Group& group = groups_[request.id];
  const std::vector<model::PodSet>& sets = request.workload->pod_sets;
  group.sets.clear();
  group.stage = phase == PodPhase::kHeld ? Stage::kReserved : Stage::kWaiting;
  for (size_t i = 0; i < sets.size(); ++i)
    group.sets.push_back({sets[i].name, spec_of(request, i), quota::still_needed((*request.pod_sets)[i], sets[i])});
  for (const auto& [uid, set] : group.came)
    if (set < group.sets.size()) ++group.sets[set].came;
  for (const Found& place : found) add_stand_in(group, *request.workload, place.set, place.node, phase);
}

void QueuedWorkloads::release(quota::WorkloadId id) { gave_back_ |= let_go(id); }

// True: there was something to give back.
bool QueuedWorkloads::let_go(quota::WorkloadId id) {
  short_.erase(id);
  const auto group = groups_.find(id);
  if (group == groups_.end()) return false;
  bool gave_back = false;
  for (Set& set : group->second.sets)
    for (; !set.stand_ins.empty(); gave_back = true) drop_stand_in(set, set.stand_ins.size() - 1);
  group->second.stage = Stage::kWaiting;
  if (group->second.came.empty()) groups_.erase(group);
  return gave_back;
}

// The first index that no stand-in of the set has, unless one is named.
void QueuedWorkloads::add_stand_in(Group& group, const model::Workload& workload, size_t set, NodeSlot node,
                                   PodPhase phase, int32_t index) {
  auto& stand_ins = group.sets[set].stand_ins;
  if (index < 0) index = stand_ins.empty() ? 0 : stand_ins.back().second + 1;
  const PodSlot slot = enter(stand_in(workload, set, group.sets[set].spec, index));
  const auto at = std::find_if(stand_ins.begin(), stand_ins.end(), [&](const auto& s) { return s.second > index; });
  stand_ins.insert(at, {slot, index});
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
