// Workloads that want a place: the part of QueuedWorkloads that tells them to whoever could have nodes made ready for
// them, and keeps what these might be made from for who comes first.
#include "engine/wanted_places.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "engine/gpu_asks.h"
#include "engine/node_without.h"
#include "engine/queued_workloads.h"

namespace berth::engine {
namespace {

constexpr size_t kLooksMax = 64;  // at workloads behind one that gives way

}  // namespace

// As pods wait (QueueOrder), whichever their queues are.
bool QueuedWorkloads::comes_before(quota::WorkloadId a, quota::WorkloadId b) const {
  return queue_rank(admission_.status(a).workload) < queue_rank(admission_.status(b).workload);
}

bool QueuedWorkloads::gives_way(const quota::PlaceRequest& request, const std::set<quota::WorkloadId>& placeless) {
  if (context_.state.mig_nodes().empty()) return false;
  const std::vector<PodSlot> pods = first_blocked();
  const auto may_need_them = [&](quota::WorkloadId id) {
    return id != request.id && !asked_.contains(id) && comes_before(id, request.id) &&
           asks_for_gpus(admission_.status(id).workload);
  };
  const QueueRank own = queue_rank(*request.workload);
  const auto pod_may_need_them = [&](PodSlot pod) {
    return !asked_pods_.contains(pod) && queue_rank(context_.state.pod(pod).pod) < own;
  };
  if (std::ranges::none_of(placeless, may_need_them) && std::ranges::none_of(pods, pod_may_need_them)) return false;
  std::vector<Found> found;
  if (!find(request, {}, found, nullptr)) return false;
  const bool takes_some = std::ranges::any_of(found, [&](const Found& place) {
    return context_.state.node(place.node).node.mig && asks_for_gpus(request.workload->pod_sets[place.set]);
  });
  if (!takes_some) return false;
  asking_.insert(placeless.begin(), placeless.end());
  asking_pods_.insert(pods.begin(), pods.end());
  if (!held_.valid() || comes_before(request.id, held_)) held_ = request.id;
  return true;
}

// Of each class of pods that fits nowhere and asks for GPUs, the first.
std::vector<PodSlot> QueuedWorkloads::first_blocked() const {
  std::vector<PodSlot> out;
  for (const ClassId id : context_.queue.blocked()) {
    const PodClass& cls = context_.state.pod_class(id);
    const ClassQueue& waiting = *context_.queue.find(id);
    if ((cls.requests_gpu || cls.shares_gpu) && !waiting.pods.empty() && waiting.candidates.objection().empty())
      out.push_back(*waiting.pods.begin());
  }
  return out;
}

// A run begins. Those that were asked about in the one before keep nobody away in this one.
void QueuedWorkloads::begin_asking() {
  if (!held_.valid()) {
    asked_.clear();
    asked_pods_.clear();
  }
  asked_.merge(std::exchange(asking_, {}));
  asked_pods_.merge(std::exchange(asking_pods_, {}));
  held_ = {};
}

WantedPlaces::Option QueuedWorkloads::wanted_option(const quota::PlaceRequest& request,
                                                    const quota::PlaceOption& given) {
  const std::vector<model::PodSet>& sets = request.workload->pod_sets;
  WantedPlaces::Option out{{}, given};
  std::vector<Found> found;
  const bool single = sets.size() == 1 && quota::still_needed(request.pod_sets->front(), sets.front()) == 1;
  quota::PlaceRequest beside = request;
  beside.over = nullptr;
  if (!single && !find(beside, {}, found, nullptr, true) && !request.over->empty()) {
    std::vector<Found> more;
    find(request, {}, more, nullptr, true);
    if (more.size() > found.size()) found = std::move(more);
  }
  for (const size_t set : by_scarcity(sets)) {
    const PodLooks looks = looks_of(request, set);
    const int32_t count = quota::still_needed((*request.pod_sets)[set], sets[set]);
    if (looks.spec == nullptr || count <= 0) continue;
    model::Pod pod = stand_ins_.make(*request.workload, set, looks, -1);
    pod.keeps_class = true;
    WantedPlaces::Set& wanted = out.sets.emplace_back(WantedPlaces::Set{stand_ins_.enter(std::move(pod)), count, {}});
    for (const Found& place : found)
      if (place.set == set) wanted.places.push_back(place.node);
    if (!context_.state.pod_class(context_.state.pod(wanted.pod).cls).peers.spread.empty()) stand_ins_.look(wanted.pod);
  }
  return out;
}

// Only where some nodes could be made ready. Where one gives way, those that have not had their turn yet count, too:
// what is left of nodes that are made ready before it may be their only chance.
void QueuedWorkloads::note_wanted() {
  const std::vector<WantedPlaces> before = std::exchange(wanted_, {});
  std::map<const void*, size_t> groups;
  if (!context_.state.mig_nodes().empty()) {
    std::vector<quota::WantsPlace> all = admission_.wanting_places();
    if (held_.valid()) std::ranges::move(admission_.wanting_from(held_, kLooksMax), std::back_inserter(all));
    std::set<quota::WorkloadId> seen;
    for (const quota::WantsPlace& wants : all) {
      if (!seen.insert(wants.id).second) continue;
      const model::Workload& workload = admission_.status(wants.id).workload;
      if (!asks_for_gpus(workload) || is_sliced(workload)) continue;  // which domains would do is not told
      const auto [at, fresh] = groups.try_emplace(wants.options.get(), wanted_.size());
      if (fresh) wanted_.emplace_back();
      wanted_[at->second].workloads.push_back(wants.id);
      if (!fresh) continue;
      wanted_.back().has_waited = wants.has_waited;
      wanted_.back().kept = standing(wants.id, false);
      std::vector<quota::WorkloadId> over;  // what is kept for those after it is there for who has waited as long
      for (const auto& [id, room] : admission_.kept().rooms)
        if (wants.has_waited && id != wants.id && room.keeps_places() && comes_before(wants.id, id)) over.push_back(id);
      for (const quota::WorkloadId id : over)
        std::ranges::copy_if(standing(id, false), std::back_inserter(wanted_.back().kept_after),
                             [&](PodSlot slot) { return is_kept_room(context_.state.pod(slot)); });
      for (const quota::PlaceOption& option : *wants.options)
        wanted_.back().options.push_back(
            wanted_option({wants.id, &workload, &option.pod_sets, &admission_.flavors(), &over}, option));
    }
  }
  for (const WantedPlaces& wanted : before)
    for (const WantedPlaces::Option& option : wanted.options)
      for (const WantedPlaces::Set& set : option.sets) context_.state.remove_pod(set.pod);
}

}  // namespace berth::engine
