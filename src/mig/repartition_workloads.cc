// Workloads that wait for a place: the part of Repartitioner::Plan that promises nodes to all of their pods, or none.
#include <algorithm>
#include <iterator>
#include <set>

#include "engine/evaluate.h"
#include "engine/node_without.h"
#include "mig/repartition_plan.h"
#include "quota/flavors.h"

namespace berth::mig {

using engine::DomainId;
using engine::NodeSlot;
using engine::NodeState;
using engine::PodSlot;
using engine::WantedPlaces;

namespace {

Int128 node_free(const NodeState& node, engine::ResourceId id) {
  const int64_t all = id.value < node.allocatable.size() ? node.allocatable[id.value] : 0;
  return all - (id.value < node.used.size() ? node.used[id.value] : Int128{0});
}

}  // namespace

bool Repartitioner::Plan::may_have(const Asker& asker, const NodeState& node, engine::NodeSlot slot) {
  engine::Reasons reasons;
  const engine::PodClass& cls = state_.pod_class(asker.cls);
  for (const engine::ResourceAmount& request : cls.requests)  // most often, and at once
    if (request.amount > node_free(node, request.id)) return false;
  if (!engine::run_filters(engine_.policies(), cls, {node, state_.resources(), state_.volumes(), state_.mix()},
                           reasons))
    return false;
  const engine::ClassQueue* known = engine_.queue().find(asker.cls);
  return peers_.admit(engine_.policies(), asker.cls, known == nullptr ? nullptr : known->candidates.groups(), slot);
}

void Repartitioner::Plan::add_workloads(Turns& turns) {
  for (const WantedPlaces& wanted : engine_.workloads().wanted()) {
    bool asks = false;
    for (const WantedPlaces::Option& option : wanted.options)
      for (const WantedPlaces::Set& set : option.sets) asks |= request_of(state_.pod(set.pod).cls) != kNothing;
    if (!asks) continue;
    if (!quota_) quota_ = engine_.admission().ledger().tree();
    Turn turn;
    turn.wanted = &wanted;
    turns.emplace(engine::queue_rank(engine_.admission().status(wanted.workloads.front()).workload), turn);
  }
}

// The first of those that are alike.
bool Repartitioner::Plan::promise_only(const WantedPlaces& wanted) {
  for (const WantedPlaces::Option& option : wanted.options)
    for (const WantedPlaces::Set& set : option.sets) request_of(state_.pod(set.pod).cls);
  for (Offer& offer : offers_) offer.full_for.assign(requests_.size(), false);
  quota_ = engine_.admission().ledger().tree();
  turn_ = engine::queue_rank(engine_.admission().status(wanted.workloads.front()).workload);
  Turn turn;
  turn.wanted = &wanted;
  return promise_workload(turn) && !workloads_.empty();
}

// False: no more of those that are alike can be served.
bool Repartitioner::Plan::promise_workload(Turn& turn) {
  const quota::WorkloadStatus& status = engine_.admission().status(turn.wanted->workloads[turn.workload]);
  if (status.workload.uid.empty() || status.phase != quota::WorkloadPhase::kPending) return true;  // waits no more
  const quota::QuotaNode queue = quota_->queue(status.cluster_queue);
  if (!queue.valid()) return false;
  for (const WantedPlaces::Option& option : turn.wanted->options) {
    const quota::Amounts usage = quota::usage_of(*quota_, option.given.pod_sets, status.workload);
    const quota::QuotaNode root = quota_->root(queue);
    if (!quota_->has_room(queue, usage) && (!option.given.evicts || promised_quota_.contains(root))) continue;
    std::vector<PodSlot> kept = turn.workload == 0 ? turn.wanted->kept : std::vector<PodSlot>();
    for (const auto& [node, gpus] : engine_.kept_gpus().all())
      if (gpus.owner == status.workload.uid) kept.push_back(gpus.stand_in);
    workload_ = turn.wanted->workloads[turn.workload];
    bool all = promise_all(option, kept);
    if (!all && (option.sets.size() > 1 || (!option.sets.empty() && option.sets.front().count > 1))) {
      spares_offers_ = true;
      all = promise_all(option, kept);
      spares_offers_ = false;
    }
    if (!all && turn.workload == 0 && !turn.wanted->kept_after.empty()) {
      std::ranges::copy(turn.wanted->kept_after, std::back_inserter(kept));
      all = promise_all(option, kept);
    }
    workload_ = {};
    if (!all) continue;
    quota_->add_usage(queue, usage);
    promised_quota_.insert(root);
    workloads_.push_back(turn.wanted->workloads[turn.workload]);
    return true;
  }
  return false;
}

// What is `kept` for the workload is given back when it has places for all.
bool Repartitioner::Plan::promise_all(const WantedPlaces::Option& option, const std::vector<PodSlot>& kept) {
  all_or_none_ = option.sets.size() > 1 || (!option.sets.empty() && option.sets.front().count > 1) || !kept.empty();
  const std::optional<Mark> before = all_or_none_ ? std::optional(mark()) : std::nullopt;
  for (const PodSlot pod : kept) leave_out(pod);
  const bool all = std::ranges::all_of(option.sets, [&](const WantedPlaces::Set& set) { return promise_set(set); });
  if (!all && before) roll_back(*before);
  all_or_none_ = false;
  changed_offers_.clear();
  changed_standing_.clear();
  changed_left_out_.clear();
  return all;
}

// Pods that are to be together get the first domain that has room for all of them; where none has, those that need not
// be get any places.
bool Repartitioner::Plan::promise_set(const WantedPlaces::Set& set) {
  const engine::ClassId cls = state_.pod(set.pod).cls;
  const Asker asker{cls, request_of(cls), true};
  if (!engine::run_pre_filters(engine_.policies(), state_.pod_class(cls), state_).empty()) return false;
  std::vector<DomainId> domains;
  std::set<DomainId> seen;
  if (!state_.pod_class(cls).peers.gathering.empty())
    for (const auto& [name, node] : state_.nodes_by_name())
      if (const DomainId domain = peers_.gathers_in(cls, node); domain.valid() && seen.insert(domain).second)
        domains.push_back(domain);
  if (domains.empty()) return promise_set_in(set, asker, {});
  for (const DomainId domain : domains) {
    const std::optional<Mark> before = all_or_none_ ? std::optional(mark()) : std::nullopt;
    if (promise_set_in(set, asker, domain)) return true;
    if (before) roll_back(*before);
  }
  return promise_set_in(set, asker, {});  // the filters of groups see to it that those that must be are together
}

// The places that are there come first, then nodes in the order in which they are offered, those that are to be cut
// anyhow before others. Where that does not do for a gang, places that are there on nodes which may be cut for others
// of it are left to these. While a pod is held workloads have not had their turn since, and what was cut for them may
// be there.
bool Repartitioner::Plan::promise_set_in(const WantedPlaces::Set& set, const Asker& asker, DomainId within) {
  std::vector<NodeSlot> places = set.places;
  std::ptrdiff_t told = std::ssize(places);  // each for one pod
  std::vector<Offer*> offers;
  const auto is_within = [&](NodeSlot node) { return !within.valid() || peers_.gathers_in(asker.cls, node) == within; };
  if (within.valid() || spares_offers_) {
    places.clear();
    told = 0;
    for (const auto& [name, node] : state_.nodes_by_name())
      if (state_.node(node).present && offer_of(node) == nullptr && is_within(node)) places.push_back(node);
  } else if (engine_.held().valid()) {
    for (const std::string& name : state_.mig_nodes())
      if (const NodeSlot node = state_.find_node(name); offer_of(node) == nullptr) places.push_back(node);
  }
  for (Offer& offer : offers_)
    if (is_within(offer.slot)) offers.push_back(&offer);
  std::stable_partition(offers.begin(), offers.end(),
                        [](const Offer* offer) { return offer->under_way || !offer->needs.empty(); });
  const bool looks = late_ && !within.valid() && !offers.empty();
  auto place = places.begin();
  auto offer = offers.begin();
  for (int32_t i = 0; i < set.count; ++i) {
    bool served = false;
    while (place != places.end() && !served) {
      served = place_as_is(asker, set.pod, *place);
      if (!served || place - places.begin() < told) ++place;
    }
    served = served || (looks && stands(asker, set.pod));
    for (; !served && offer != offers.end(); ++offer)
      if (served = serve(asker, set.pod, **offer); served) break;
    if (!served) return false;
  }
  return true;
}

bool Repartitioner::Plan::place_as_is(const Asker& asker, PodSlot pod, NodeSlot slot) {
  Offer* const offer = offer_of(slot);
  const bool stays = offer == nullptr || (late_ && !is_to_be_cut(*offer));
  return stays ? stands_on(asker, pod, slot) : serve(asker, pod, *offer);
}

bool Repartitioner::Plan::stands_on(const Asker& asker, PodSlot pod, NodeSlot slot) {
  const auto known = standing_.find(slot);
  ++work_used_;
  if (!may_have(asker, known == standing_.end() ? state_.node(slot) : known->second, slot)) return false;
  NodeState& node = standing_.try_emplace(slot, state_.node(slot)).first->second;
  if (all_or_none_) changed_standing_.emplace_back(slot, node);
  occupy(state_.pod_class(asker.cls), node);
  peers_.add(pod, slot);
  return true;
}

// The pod is where it is no more, and no node with it; those that could be cut are without it anyhow.
void Repartitioner::Plan::leave_out(PodSlot pod) {
  const engine::PodState& leaves = state_.pod(pod);
  const bool is_kept = leaves.pod.stand_in && leaves.phase == engine::PodPhase::kNominated;
  if (!is_kept || !left_out_.insert(pod).second) return;
  changed_left_out_.push_back(pod);
  peers_.leave(pod);
  if (offer_of(leaves.node) != nullptr) return;
  NodeState& node = standing_.try_emplace(leaves.node, state_.node(leaves.node)).first->second;
  changed_standing_.emplace_back(leaves.node, node);
  engine::take_out(state_, pod, node);
}

Repartitioner::Offer* Repartitioner::Plan::offer_of(NodeSlot node) {
  const auto at = by_node_.find(node);
  return at == by_node_.end() ? nullptr : at->second;
}

void Repartitioner::Plan::roll_back(const Mark& mark) {
  for (; changed_offers_.size() > mark.offers; changed_offers_.pop_back())
    *changed_offers_.back().first = std::move(changed_offers_.back().second);
  for (; changed_left_out_.size() > mark.left_out; changed_left_out_.pop_back())
    left_out_.erase(changed_left_out_.back());
  for (; changed_standing_.size() > mark.standing; changed_standing_.pop_back())
    standing_.insert_or_assign(changed_standing_.back().first, std::move(changed_standing_.back().second));
  peers_ = mark.peers;
  standing_from_.clear();
}

}  // namespace berth::mig
