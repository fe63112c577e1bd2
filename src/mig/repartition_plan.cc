#include "mig/repartition_plan.h"

#include <absl/container/flat_hash_map.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/evaluate.h"
#include "engine/node_without.h"

namespace berth::mig {
namespace {

using engine::ClassId;
using engine::NodeState;
using engine::PodSlot;
using engine::ResourceId;
using engine::State;

constexpr int64_t kFitUnits = 15;  // what asking whether a node could be cut so counts as

std::string text_of(const model::ResourceList& amounts) {
  std::string out;
  for (const auto& [name, amount] : amounts) fmt::format_to(std::back_inserter(out), "{} {},", amount, name);
  return out;
}

}  // namespace

model::ResourceList cut_requests(const State& state, const engine::PodClass& cls) {
  model::ResourceList out;
  for (const engine::ResourceAmount& request : cls.requests)
    if (is_cut_resource(state.resources().name(request.id)))
      out.set(state.resources().name(request.id), request.amount);
  if (cls.shares_gpu) out.add(model::kWholeGpuResource, 1);
  return out;
}

model::ResourceList other_requests(const State& state, const engine::PodClass& cls) {
  model::ResourceList out;
  for (const engine::ResourceAmount& request : cls.requests)
    if (const std::string& name = state.resources().name(request.id); !is_cut_resource(name))
      out.set(name, request.amount);
  return out;
}

Repartitioner::Plan::Plan(const engine::Engine& engine, std::vector<Offer>& offers, packing::MigDemand& demand,
                          const std::map<std::string, std::string>& promised_before, int64_t work)
    : engine_(engine),
      state_(engine.state()),
      offers_(offers),
      promised_before_(promised_before),
      peers_(state_),
      demand_(demand),
      work_(work) {
  for (Offer& offer : offers_) by_node_[offer.slot] = &offer;
  for (Offer& offer : offers_)
    for (const PodSlot slot : offer.kept) {
      if (offer.under_way || !engine::has_room_kept(state_.pod(slot))) continue;
      const std::optional<quota::WorkloadId> id = engine_.workloads().find(state_.pod(slot).pod.workload);
      const engine::QueueRank rank = id ? engine::queue_rank(engine_.admission().status(*id).workload) : rank_of(slot);
      offer.kept_for = std::min(offer.kept_for.value_or(rank), rank);
    }
}

void Repartitioner::Plan::run() {
  promise();
  gather();
  choose_devices();
}

std::optional<engine::QueueRank> Repartitioner::Plan::held_rank() const {
  if (engine_.held().valid()) return rank_of(engine_.held());
  const quota::WorkloadId workload = engine_.workloads().held();
  if (!workload.valid()) return std::nullopt;
  return engine::queue_rank(engine_.admission().status(workload).workload);
}

size_t Repartitioner::Plan::request_of(ClassId cls) {
  model::ResourceList asked = cut_requests(state_, state_.pod_class(cls));
  if (asked.empty()) return kNothing;
  const auto [at, fresh] = known_requests_.try_emplace(text_of(asked), requests_.size());
  if (fresh) requests_.push_back(std::move(asked));
  return at->second;
}

void Repartitioner::Plan::add(ClassId cls, Pods::const_iterator first, Pods::const_iterator end, Turns& turns) {
  const bool hopeless = !engine_.queue().find(cls)->candidates.objection().empty();
  if (first == end || hopeless) return;
  if (const size_t request = request_of(cls); request != kNothing)
    turns.emplace(rank_of(*first), Turn{{cls, request}, first, end});
}

Repartitioner::Plan::Turns Repartitioner::Plan::all_turns() {
  const PodSlot held = engine_.held();
  Turns turns;
  const auto& blocked = engine_.queue().blocked();
  for (const ClassId id : blocked)
    add(id, engine_.queue().find(id)->pods.begin(), engine_.queue().find(id)->pods.end(), turns);
  for (const PodSlot pod : engine_.reserved_pods()) {
    reserved_.emplace_back(engine::QueueOrder{&state_}).insert(pod);
    add(state_.pod(pod).cls, reserved_.back().cbegin(), reserved_.back().cend(), turns);
  }
  const auto& all = engine_.queue().classes();
  for (uint32_t i = 0; held.valid() && i < all.size(); ++i)  // those behind it have not been looked at
    if (all[i] != nullptr && !all[i]->pods.empty() && !blocked.contains(ClassId{i}))
      add(ClassId{i}, all[i]->pods.lower_bound(held), all[i]->pods.end(), turns);
  add_workloads(turns);
  return turns;
}

// Where it would be the turn of a workload, those come before it that borrow less, whatever their priorities: so it is
// in admission, and what they were to have there would be cut for it in vain.
Repartitioner::Plan::Turns::iterator Repartitioner::Plan::first_turn(Turns& turns,
                                                                     const std::optional<engine::QueueRank>& held) {
  auto first = turns.begin();
  if (first->second.wanted == nullptr) return first;
  const auto end = held && first->first < *held ? turns.lower_bound(*held) : turns.end();
  for (auto at = std::next(first); at != end; ++at)
    if (at->second.wanted != nullptr && at->second.borrowing() < first->second.borrowing()) first = at;
  return first;
}

// When one of a class finds nothing, none of the class will. While a pod is held, nodes are cut for those before it
// only. As these are then cut for some time, and in use for longer, it and those behind it have their turns on them,
// too, but for those that have a place elsewhere as things are.
void Repartitioner::Plan::promise() {
  Turns turns = all_turns();
  const std::optional<engine::QueueRank> held = held_rank();
  for (Offer& offer : offers_) offer.full_for.assign(requests_.size(), false);
  bool promised = false;
  while (!turns.empty()) {
    if (work_used_ >= work_ && promised) {
      unfinished_ = true;
      return;
    }
    const auto first = first_turn(turns, held);
    const engine::QueueRank rank = first->first;
    late_ = held && rank >= *held;
    if (late_ && !can_share()) return;
    Turn turn = first->second;
    turns.erase(first);
    turn_ = rank;
    if (turn.wanted != nullptr) {
      if (!promise_workload(turn)) continue;
      promised = true;
      if (++turn.workload < turn.wanted->workloads.size())
        turns.emplace(engine::queue_rank(engine_.admission().status(turn.wanted->workloads[turn.workload]).workload),
                      turn);
      continue;
    }
    if (!late_ || !stands(turn.asker, *turn.next)) {
      Offer* offer = promise_again(turn);
      if (offer == nullptr) offer = promise_one(turn);
      if (offer == nullptr) continue;
      places_[*turn.next] = offer;
      promised |= !offer->under_way;
      if (!offer->under_way) promises_[offer].emplace_back(turn.asker, *turn.next);
    }
    if (++turn.next != turn.end) turns.emplace(rank_of(*turn.next), turn);
  }
}

bool Repartitioner::Plan::can_share() const { return std::ranges::any_of(offers_, is_to_be_cut); }

// Whether the pod, which has not been looked at yet, has a place as things are beside those before it, on a node that
// is not to be cut. Which one that will be does not matter here: no other node is cut for those behind it.
bool Repartitioner::Plan::stands(const Asker& asker, PodSlot pod) {
  if (engine_.queue().blocked().contains(asker.cls)) return false;
  if (gpu_nodes_.empty())
    for (const auto& [name, slot] : state_.nodes_by_name())
      if (state_.node(slot).present && state_.node(slot).has_gpus) gpu_nodes_.push_back(slot);
  for (size_t& at = standing_from_[asker.cls]; at < gpu_nodes_.size(); ++at) {
    const auto offer = by_node_.find(gpu_nodes_[at]);
    if (offer != by_node_.end() && is_to_be_cut(*offer->second)) continue;
    if (stands_on(asker, pod, gpu_nodes_[at])) return true;
  }
  return false;
}

// What is under way for the class's next pod, which goes on having it, lest it take what is under way for another.
Repartitioner::Offer* Repartitioner::Plan::promise_again(const Turn& turn) {
  const auto before = promised_before_.find(state_.pod(*turn.next).pod.uid);
  if (before == promised_before_.end()) return nullptr;
  Offer* const offer = offer_of(state_.find_node(before->second));
  return offer != nullptr && offer->under_way && serve(turn.asker, *turn.next, *offer) ? offer : nullptr;
}

// The node that has been promised to the class's next pod, one that is to be cut anyhow where that will do; null: none
// is of use to the class any more. Who comes first of pods that are to be together passes over nodes that may be of use
// to the others.
Repartitioner::Offer* Repartitioner::Plan::promise_one(Turn& turn) {
  const engine::DomainId within = roomiest(turn);
  const auto serves = [&](Offer& offer) {
    const bool passed = within.valid() && peers_.gathers_in(turn.asker.cls, offer.slot) != within;
    return !passed && serve(turn.asker, *turn.next, offer);
  };
  for (size_t i = turn.promised; i < promised_.size(); ++i) {
    if (!serves(*promised_[i])) continue;
    if (!within.valid()) turn.promised = i;
    return promised_[i];
  }
  if (!within.valid()) turn.promised = promised_.size();
  for (size_t i = turn.offer; i < offers_.size(); ++i) {
    if (!serves(offers_[i])) continue;
    if (!within.valid()) turn.offer = i;
    return &offers_[i];
  }
  return nullptr;
}

// Where the class's pods want to be together and none has said where yet: the domain that could be cut for most of
// them; invalid where it is all the same. Looks at domains until there is no work left.
engine::DomainId Repartitioner::Plan::roomiest(const Turn& turn) {
  std::vector<std::pair<engine::DomainId, std::vector<Offer>>> domains;  // in the order of the nodes
  absl::flat_hash_map<engine::DomainId, size_t> known;
  for (const Offer& offer : offers_) {
    const engine::DomainId domain = peers_.gathers_in(turn.asker.cls, offer.slot);
    if (!domain.valid()) continue;
    const auto [at, fresh] = known.try_emplace(domain, domains.size());
    if (fresh) domains.emplace_back(domain, std::vector<Offer>());
    domains[at->second].second.push_back(offer);
  }
  engine::DomainId best;
  int64_t most = 0;
  const engine::PromisedPeers now = peers_;
  const size_t promised = promised_.size();
  for (auto& [domain, offers] : domains) {
    int64_t served = 0;
    size_t at = 0;
    for (auto pod = turn.next; pod != turn.end && at < offers.size() && work_used_ < work_; ++pod) {
      while (at < offers.size() && !serve(turn.asker, *pod, offers[at])) ++at;
      served += at < offers.size() ? 1 : 0;
    }
    peers_ = now;
    promised_.resize(promised);
    if (served > most) best = domain, most = served;
  }
  return best;
}

// Promises the node to one pod of the class, if it can have it.
bool Repartitioner::Plan::serve(const Asker& asker, PodSlot pod, Offer& offer) {
  const engine::PodClass& cls = state_.pod_class(asker.cls);
  const bool asks = asker.request != kNothing;
  if (asks && offer.full_for[asker.request] && !shares_with_others(cls, offer)) return false;
  if (((late_ || gathers_) && !is_to_be_cut(offer)) || is_kept_from_it(offer)) return false;
  ++work_used_;
  if (!offer.node) offer.node = imagined(offer);
  if (!may_have(asker, *offer.node, offer.slot)) return false;
  if (all_or_none_) changed_offers_.emplace_back(&offer, offer);
  if (asks && !offer.under_way && !shares_with_others(cls, offer) && !cut(asker, offer)) return false;
  occupy(cls, *offer.node);
  if (workload_.valid() && !offer.workload.valid()) offer.workload = workload_;
  if (workload_.valid() && offer.workload == workload_) {
    if (asks) offer.for_workload.add(requests_[asker.request]);
    offer.for_workload.add(other_requests(state_, cls));
  }
  peers_.add(pod, offer.slot);
  return true;
}

// Whether a share has room on a GPU that others of those before it will share.
bool Repartitioner::Plan::shares_with_others(const engine::PodClass& cls, const Offer& offer) const {
  if (!cls.shares_gpu || !offer.node) return false;
  const int64_t units = offer.node->node.gpus.units_of(cls.spec->gpu_share);
  return units > 0 && offer.node->best_shared(units) >= 0;
}

// Promises what is asked to one pod more, if the node can be cut so. False also where it has that as it is, and the pod
// fits nowhere as things are: something else keeps the pod from it, which may not do so elsewhere.
bool Repartitioner::Plan::cut(const Asker& asker, Offer& offer) {
  const model::ResourceList& asked = requests_[asker.request];
  model::ResourceList needs = offer.needs, beyond;
  needs.add(asked);
  for (const auto& [name, amount] : needs)
    if (amount > offer.spare.get(name)) beyond.set(name, amount - offer.spare.get(name));
  if (!asker.has_place_as_is &&
      std::ranges::all_of(beyond, [&](const auto& each) { return offer.idle.get(each.first) >= each.second; }))
    return false;
  work_used_ += kFitUnits;
  if (offer.named ? !named_for(offer.before, beyond) : !can_cut_for(offer.before, beyond, demand_)) {
    offer.full_for[asker.request] = true;
    return false;
  }
  if (gathers_ && !leaves_whole(offer, beyond)) return false;
  if (offer.needs.empty()) {
    promised_.push_back(&offer);
    work_used_ += offer.idle.size() > size_t{offer.idle.contains(model::kWholeGpuResource)} ? kSearchUnits : kCutUnits;
  }
  offer.needs = std::move(needs);
  offer.beyond = std::move(beyond);
  return true;
}

// Whether no more devices have to be cut than for those who have been promised the node so far.
bool Repartitioner::Plan::leaves_whole(const Offer& offer, const model::ResourceList& beyond) const {
  const auto whole_after = [&](const model::ResourceList& asked) -> int64_t {
    if (offer.named) {
      const auto config = named_for(offer.before, asked);
      return config ? advertised(config->devices).get(model::kWholeGpuResource) : -1;
    }
    const auto devices = cut_for(offer.before, asked, demand_);
    return devices ? advertised(*devices).get(model::kWholeGpuResource) : -1;
  };
  return whole_after(beyond) >= whole_after(offer.beyond);
}

// Nodes that were promised before others were, to pods that have room on what those are cut into, stay as they are.
void Repartitioner::Plan::gather() {
  turn_.reset();
  gathers_ = true;
  for (Offer* const offer : promised_) {
    const auto pods = promises_.find(offer);
    if (work_used_ >= work_ || pods == promises_.end()) continue;
    model::ResourceList asked;
    bool has_peers = false;
    for (const auto& [asker, pod] : pods->second) {
      asked.add(requests_[asker.request]);
      const engine::PodClass& cls = state_.pod_class(asker.cls);
      has_peers |= !cls.seen_by.empty() || !(cls.spec->peers == model::Peers{});
    }
    const bool has_others = asked != offer->needs;  // workloads, or shares on one GPU
    if (has_peers || has_others || !move_pods(*offer)) continue;
    offer->needs = offer->beyond = {};
    offer->node.reset();
  }
}

// True: all of its pods are promised others that are cut anyhow.
bool Repartitioner::Plan::move_pods(Offer& from) {
  all_or_none_ = true;
  const Mark before = mark();
  std::map<PodSlot, const Offer*> places = places_;
  const auto has_another = [&](const auto& each) {
    return std::ranges::any_of(promised_, [&](Offer* to) {
      const bool served = to != &from && !to->needs.empty() && serve(each.first, each.second, *to);
      if (served) places[each.second] = to;
      return served;
    });
  };
  const bool moved = std::ranges::all_of(promises_.at(&from), has_another);
  if (moved) places_ = std::move(places);
  else roll_back(before);
  all_or_none_ = false;
  return moved;
}

void Repartitioner::Plan::choose_devices() {
  std::map<std::string, std::vector<GpuDevice>> known;  // by shape and needs
  for (Offer& offer : offers_) {
    if (offer.under_way || offer.needs.empty()) continue;
    if (offer.named) {
      NamedConfig config = *named_for(offer.before, offer.beyond);
      offer.devices = std::move(config.devices);
      offer.config = std::move(config.name);
      continue;
    }
    const auto [at, fresh] = known.try_emplace(offer.shape + "|" + text_of(offer.beyond));
    if (fresh) at->second = cut_for(offer.before, offer.beyond, demand_).value_or(offer.before);
    offer.devices = at->second;
  }
}

void Repartitioner::Plan::occupy(const engine::PodClass& cls, NodeState& node) const {
  std::vector<Int128>& used = node.used;
  if (used.size() < state_.resources().size()) used.resize(state_.resources().size(), 0);
  for (const engine::ResourceAmount& request : cls.requests) used[request.id.value] += request.amount;
  if (cls.shares_gpu) {
    const int64_t units = node.node.gpus.units_of(cls.spec->gpu_share);
    const int32_t open = node.best_shared(units), device = open >= 0 ? open : node.devices.next_closed();
    used[node.share_resource.value] += node.devices.take(device, units, engine::ShareHolder::kStays);
  }
  node.host_ports.insert(node.host_ports.end(), cls.spec->host_ports.begin(), cls.spec->host_ports.end());
}

// The node as it would be once it is cut: under way, with what it will have; else open, since cut_for() says what it
// could have. GPUs that are shared now count as in use: who would fit there does not wait for others to be cut.
NodeState Repartitioner::Plan::imagined(const Offer& offer) const {
  NodeState out = engine::node_without(state_, offer.slot, offer.kept);
  out.repartitioning = out.node.cut_by_others = false;
  out.devices = engine::SharedDevices(out.node.gpus.units());
  out.listed = {};
  out.allocatable.resize(state_.resources().size(), 0);
  for (uint32_t id = 0; id < state_.resources().size(); ++id) {
    const std::string& resource = state_.resources().name(ResourceId{id});
    if (is_cut_resource(resource))
      out.allocatable[id] = offer.under_way ? offer.wanted.get(resource) : engine::kMaxAmount - 1;
  }
  return out;
}

}  // namespace berth::mig
