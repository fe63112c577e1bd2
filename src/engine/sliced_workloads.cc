// The pods of sets that are cut into slices: the part of QueuedWorkloads that knows which pod is in which slice.
//
// Who is in a slice goes by numbers (PodSet::slices): every place has one, that which is kept and that of a pod that
// has come. A pod with a number of its own takes the place of that number, one without takes any; where one has gone,
// the next has its number. After a restart the pods that are there say by their nodes which slices they are of.
#include <algorithm>

#include "engine/queued_workloads.h"

namespace berth::engine {

bool QueuedWorkloads::has_slices(const model::Pod& pod) const {
  const auto known = by_name_.find(pod.workload);
  if (known == by_name_.end()) return false;
  const std::vector<model::PodSet>& sets = admission_.status(known->second).workload.pod_sets;
  return std::ranges::any_of(sets, [&](const model::PodSet& set) {
    return !set.slices.empty() && (set.name == pod.pod_set || (pod.pod_set.empty() && sets.size() == 1));
  });
}

// In how many layers some of the number's slice are there and in the node's domain; −1: in some they are in another.
int QueuedWorkloads::agreement(const PlaceSearch::Set& set, const model::PodSet& pods, int32_t number,
                               NodeSlot node) const {
  const auto domain = [&](NodeSlot slot, const model::SliceLayer& layer) {
    const std::string* value = context_.state.node(slot).node.labels.find(layer.key);
    return value == nullptr ? std::string_view() : std::string_view(*value);
  };
  int out = 0;
  for (size_t i = 0; i < pods.slices.size(); ++i) {
    const model::SliceLayer& layer = pods.slices[i];
    bool any = false;
    for (const auto& [other, stands] : set.there) {
      if (other / layer.size != number / layer.size) continue;
      any = true;
      if (domain(stands, layer) != domain(node, layer)) return -1;
    }
    if (any) out = static_cast<int>(i) + 1;
  }
  return out;
}

// The number that is lacking whose slice is the most at home there.
std::optional<int32_t> QueuedWorkloads::number_at(quota::WorkloadId id, size_t set, NodeSlot node) const {
  const Set& known = groups_.at(id).sets[set];
  const model::PodSet& pods = admission_.status(id).workload.pod_sets[set];
  const PlaceSearch::Set lacks = lacking(id, pods, set, known.looks, known.wanted, true);
  std::optional<int32_t> best;
  int most = -1;
  for (const int32_t number : lacks.numbers)
    if (const int agrees = agreement(lacks, pods, number, node); agrees > most) {
      most = agrees;
      best = number;
    }
  return best;
}

// None: the pod has no place yet, and waits until one is kept for it.
std::optional<int32_t> QueuedWorkloads::number_for(quota::WorkloadId id, size_t set, const model::Pod& pod) const {
  const Group& group = groups_.at(id);
  const Set& known = group.sets[set];
  const auto has = [&](int32_t number) {
    return std::ranges::any_of(
        group.came, [&](const auto& came) { return came.second.set == set && came.second.number == number; });
  };
  const auto node_of = [&](const auto& stand_in) { return context_.state.pod(stand_in.first).node; };
  const bool own = pod.index && *pod.index < known.wanted && !has(*pod.index);
  if (pod.node_name.empty()) {
    for (const auto& stand_in : known.stand_ins)
      if ((!own || stand_in.second == *pod.index) && context_.state.node(node_of(stand_in)).present)
        return stand_in.second;
    return std::nullopt;
  }
  if (own) return pod.index;
  const NodeSlot node = context_.state.find_node(pod.node_name);
  for (const auto& stand_in : known.stand_ins)
    if (node_of(stand_in) == node) return stand_in.second;
  if (node.valid())
    if (const auto number = number_at(id, set, node)) return number;
  for (int32_t number = 0; number < known.wanted; ++number)
    if (!has(number)) return number;
  return std::nullopt;
}

// As many of the places that are lacking as there are, each slice beside those of it that are there.
void QueuedWorkloads::fill_slices(quota::WorkloadId id, size_t set) {
  Group& group = groups_.at(id);
  const model::Workload& workload = admission_.status(id).workload;
  const Set& known = group.sets[set];
  const PlaceSearch::Set lacks = lacking(id, workload.pod_sets[set], set, known.looks, known.wanted, true);
  if (lacks.numbers.empty()) return;
  std::vector<Found> found;
  {
    PlaceSearch search(context_, stand_ins_, workload, false);
    if (!search.run({lacks}, true)) short_.insert(id);
    found = search.found();
  }
  for (const Found& place : found) add_stand_in(group, workload, set, place.node, PodPhase::kHeld, place.number);
  if (!found.empty()) freed_.insert(workload.full_name());
}

}  // namespace berth::engine
