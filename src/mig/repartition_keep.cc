// What is kept of nodes that are in use, for those who have waited long and whom no idle GPU serves, until it can be
// cut for them: the part of Repartitioner that chooses it (engine/kept_gpus.h).
//
// Where an agent tells the devices, as few are kept as it takes. Which of its instances a pod gets is kubelet's choice,
// so that of a device that is cut all of the node's instances of the same profiles are; of whole ones so many are,
// since any will do.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "engine/node_without.h"
#include "mig/repartition_plan.h"

namespace berth::mig {
namespace {

using engine::Engine;
using engine::NodeSlot;
using engine::NodeState;
using engine::PodSlot;
using engine::State;

constexpr Time kNobodyKnows{INT64_MAX};

// When nobody uses it any more, by what those declare who do; whether some of these run until they are deleted, and how
// many they are. The soonest comes first.
struct InUse {
  Time until{INT64_MIN};
  bool runs_on = false;
  int64_t pods = 0;
  void add(const std::optional<Time>& end, bool goes_on, Time now) {
    const bool known = end && *end > now;
    until = std::max(until, known ? *end : kNobodyKnows);
    runs_on |= !known && goes_on;
    ++pods;
  }
  auto operator<=>(const InUse&) const = default;
};

bool uses_gpus(const State& state, PodSlot pod) {
  const engine::PodClass& cls = state.pod_class(state.pod(pod).cls);
  return (cls.requests_gpu || cls.shares_gpu) && !engine::has_room_kept(state.pod(pod));
}

InUse use_of(const Engine& engine, const NodeState& node, Time now) {
  InUse out;
  for (const PodSlot pod : node.pods)
    if (uses_gpus(engine.state(), pod)) out.add(engine.expected_end(pod), engine.state().pod(pod).pod.runs_on(), now);
  return out;
}

// As the agent lists them; of pods that the engine does not know nobody knows when they end.
InUse use_of(const Engine& engine, const NodeState& node, const model::GpuDevice& device, Time now) {
  std::set<std::string> names(device.pods.begin(), device.pods.end());
  for (const model::MigDeviceInstance& instance : device.mig_instances)
    names.insert(instance.pods.begin(), instance.pods.end());
  InUse out;
  for (const std::string& name : names) {
    const auto pod =
        std::ranges::find_if(node.pods, [&](PodSlot slot) { return engine.state().pod(slot).pod.full_name() == name; });
    if (pod == node.pods.end()) out.add(std::nullopt, false, now);
    else out.add(engine.expected_end(*pod), engine.state().pod(*pod).pod.runs_on(), now);
  }
  return out;
}

}  // namespace

bool Repartitioner::Plan::promise_only(PodSlot pod) {
  Turns turns;
  reserved_.emplace_back(engine::QueueOrder{&state_}).insert(pod);
  add(state_.pod(pod).cls, reserved_.back().cbegin(), reserved_.back().cend(), turns);
  for (Offer& offer : offers_) offer.full_for.assign(requests_.size(), false);
  turn_ = rank_of(pod);
  return !turns.empty() && promise_one(turns.begin()->second) != nullptr;
}

// Who has waited long, or has room kept.
struct Repartitioner::Due {
  engine::QueueRank rank;
  std::string uid;
  std::string queue;                             // of workloads; of pods its number
  bool has_room = false;                         // which counts for its queue
  PodSlot pod;                                   // or
  const engine::WantedPlaces* wanted = nullptr;  // the first of these
};

// A node that is in use, as it would be offered once all but daemons have left it.
struct Repartitioner::Later {
  InUse use;
  Offer offer;
  std::vector<std::pair<InUse, size_t>> devices;  // where an agent tells them: those that are idle first are first

  // What to keep of it.
  model::ResourceList gpus(const model::Node& node, const model::ResourceList& needs,
                           packing::MigDemand& demand) const {
    if (devices.empty()) return cut_resources(node.allocatable);
    const model::ResourceList allocatable = cut_resources(node.allocatable);
    std::vector<GpuDevice> some = offer.before;
    for (GpuDevice& device : some) device.fixed = true;
    model::ResourceList out;
    for (const auto& [until, d] : devices) {
      some[d].fixed = false;
      for (const auto& [name, amount] : advertised(std::span(&some[d], 1)))
        out.set(name, name == model::kWholeGpuResource ? out.get(name) + amount : allocatable.get(name));
      if (can_cut_for(some, needs, demand)) break;
    }
    return out;
  }
};

std::vector<Repartitioner::Due> Repartitioner::all_due(const Engine& engine, const engine::DuePods& pods) {
  const State& state = engine.state();
  std::vector<Due> out;
  for (const auto& [pod, queue] : pods.pods)
    out.push_back({engine::queue_rank(state.pod(pod).pod), state.pod(pod).pod.uid, fmt::format("{}", queue),
                   state.pod(pod).node_kept, pod});
  const auto& rooms = engine.admission().kept().rooms;
  std::set<quota::WorkloadId> without;  // that have no nodes kept, be it that quota is
  for (const engine::WantedPlaces& wanted : engine.workloads().wanted()) {
    const quota::WorkloadId id = wanted.workloads.front();
    const quota::WorkloadStatus& first = engine.admission().status(id);
    const auto room = rooms.find(id);
    const bool has_nodes = room != rooms.end() && room->second.in_nodes && !wanted.kept.empty();
    if (!wanted.has_waited || has_nodes || first.phase != quota::WorkloadPhase::kPending) continue;
    without.insert(id);
    out.push_back(
        {engine::queue_rank(first.workload), first.workload.uid, "queue " + first.cluster_queue, false, {}, &wanted});
  }
  for (const auto& [id, room] : rooms) {
    const model::Workload& workload = engine.admission().status(id).workload;
    if (!without.contains(id))
      out.push_back({engine::queue_rank(workload), workload.uid, "queue " + room.cluster_queue, true, {}});
  }
  std::ranges::stable_sort(out, {}, &Due::rank);
  return out;
}

std::optional<Repartitioner::Later> Repartitioner::later(const Engine& engine, NodeSlot slot, Time now) {
  const State& state = engine.state();
  const NodeState& node = state.node(slot);
  const auto record = nodes_.find(node.node.name);
  const bool is_left_alone = record != nodes_.end() &&
                             (record->second.under_way || (record->second.given_up > 0 && record->second.until > now));
  if (is_left_alone || node.is_being_cut()) return std::nullopt;
  const IdleDevices::Known* left = idle_.find_when_left(node.node);
  if (left == nullptr) return std::nullopt;
  Later out;
  out.offer.name = node.node.name;
  out.offer.slot = slot;
  std::ranges::copy_if(node.pods, std::back_inserter(out.offer.kept),
                       [&](PodSlot pod) { return !state.pod(pod).pod.daemon; });
  out.offer.named = node.node.mig.hand == model::MigHand::kNamed;
  out.offer.wanted = cut_resources(node.node.allocatable);
  out.offer.before = out.offer.devices = left->devices;
  out.offer.idle = left->idle.advertised;
  out.use = use_of(engine, node, now);
  const std::span<const model::GpuDevice> told = node.node.cut_by_agent();
  for (size_t d = 0; d < told.size() && !out.offer.named; ++d)
    if (out.offer.before[d].idle()) out.devices.emplace_back(use_of(engine, node, told[d], now), d);
  std::ranges::sort(out.devices);
  if (!out.devices.empty()) out.use = out.devices.front().first;
  return out;
}

// Chooses among the nodes. What is kept already stays as it is while the node is cut as it was then. False: they are of
// no use to it.
bool Repartitioner::keep_for(const Engine& engine, const Due& due, std::span<const Later* const> nodes, Keeps& keeps) {
  std::vector<Offer> offers;
  for (const Later* each : nodes) offers.push_back(each->offer);
  Plan plan(engine, offers, demand_, promised_, INT64_MAX);
  const bool served = due.wanted != nullptr ? plan.promise_only(*due.wanted) : plan.promise_only(due.pod);
  work_used_ += plan.work_used();
  const auto is_to_be_cut = [](const Offer& offer) {
    return std::ranges::any_of(offer.beyond,
                               [&](const auto& each) { return offer.idle.get(each.first) < each.second; });
  };
  if (!served || std::ranges::none_of(offers, is_to_be_cut)) return false;
  const State& state = engine.state();
  const model::ResourceList beside =
      due.pod.valid() ? other_requests(state, state.pod_class(state.pod(due.pod).cls)) : model::ResourceList();
  for (size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].needs.empty()) continue;
    const model::Node& node = engine.state().node(offers[i].slot).node;
    RepartitionStep step{RepartitionStep::Kind::kKeep, node.name, {}, {}};
    step.owner = due.uid;
    const auto kept = engine.kept_gpus().all().find(offers[i].slot);
    const auto kept_as = kept_as_.find(node.name);
    const bool is_kept = kept != engine.kept_gpus().all().end() && kept->second.owner == due.uid &&
                         kept_as != kept_as_.end() && kept_as->second == cut_resources(node.allocatable);
    if (is_kept) {
      step.resources = engine.state().pod(kept->second.stand_in).pod.spec->requests;
    } else {
      step.resources = nodes[i]->gpus(node, offers[i].beyond, demand_);
      for (const auto& [name, amount] : due.wanted != nullptr ? offers[i].for_workload : beside)
        if (!is_cut_resource(name)) step.resources.add(name, amount);
    }
    keeps.insert_or_assign(node.name, std::move(step));
  }
  return true;
}

// Each in its turn. Who is served by what is being cut, or about to be, has nothing more kept, but what is kept for
// him; of his queue, nobody else has anything kept anew for as long: what is kept already stays, for who is served may
// be another one without it.
void Repartitioner::keep_gpus(const Engine& engine, Time now, std::vector<RepartitionStep>& steps) {
  if (keeps_since_ + kKeepsSpan <= now) keeps_since_ = now, keeps_ = 0;
  if (keeps_ >= kKeepsMax) return;
  const auto before = std::ssize(steps);
  const State& state = engine.state();
  const auto& kept = engine.kept_gpus().all();
  const auto begins = [&](const std::string& name) {  // in this step; what is kept there now is for who has it cut
    return std::ranges::any_of(steps, [&](const RepartitionStep& step) {
      return step.kind == RepartitionStep::Kind::kBegin && step.node == name;
    });
  };
  Keeps keeps;
  for (const auto& [node, each] : kept) {
    if (!served_.contains(each.owner)) continue;
    const std::string& name = state.node(node).node.name;
    RepartitionStep step{RepartitionStep::Kind::kKeep, name, {}, state.pod(each.stand_in).pod.spec->requests};
    step.owner = each.owner;
    keeps.emplace(name, std::move(step));
  }
  std::vector<Later> nodes;  // the soonest first; made when they are first needed
  bool are_made = false;
  const auto make_nodes = [&] {
    for (const std::string& name : state.mig_nodes())
      if (auto each = later(engine, state.find_node(name), now)) nodes.push_back(std::move(*each));
    std::ranges::stable_sort(nodes, {}, [&](const Later& each) { return std::tuple(each.use, each.offer.name); });
  };
  const engine::DuePods due_pods = engine.due_pods();
  std::map<std::string, int32_t> kept_in, served_in;  // by queue
  std::set<engine::ClassId> in_vain;                  // of pods
  for (const Due& due : all_due(engine, due_pods)) {
    int32_t &kept_before = kept_in[due.queue], &served_before = served_in[due.queue];
    if (due.has_room || served_.contains(due.uid)) {
      ++(due.has_room ? kept_before : served_before);
      continue;
    }
    const int32_t before_it = kept_before + (engine.kept_gpus().keeps_for(due.uid) ? 0 : served_before);
    if (before_it >= due_pods.per_queue || (due.pod.valid() && in_vain.contains(state.pod(due.pod).cls))) continue;
    if (!std::exchange(are_made, true)) make_nodes();
    std::vector<const Later*> own, others;
    for (const Later& each : nodes) {
      if (keeps.contains(each.offer.name)) continue;
      others.push_back(&each);
      const auto at = kept.find(each.offer.slot);
      if (at != kept.end() && at->second.owner == due.uid && !each.use.runs_on) own.push_back(&each);
    }
    const bool has_some = (!own.empty() && keep_for(engine, due, own, keeps)) || keep_for(engine, due, others, keeps);
    if (has_some) ++kept_before;
    else if (due.pod.valid()) in_vain.insert(state.pod(due.pod).cls);
  }
  for (const auto& [node, each] : kept)
    if (const std::string& name = state.node(node).node.name; !keeps.contains(name) && !begins(name))
      steps.push_back({RepartitionStep::Kind::kKeep, name, {}, {}});
  kept_as_.clear();
  for (auto& [name, step] : keeps) {
    if (begins(name)) continue;
    const NodeSlot node = state.find_node(name);
    kept_as_[name] = cut_resources(state.node(node).node.allocatable);
    const auto at = kept.find(node);
    const bool is_same = at != kept.end() && at->second.owner == step.owner &&
                         state.pod(at->second.stand_in).pod.spec->requests == step.resources;
    if (!is_same) steps.push_back(std::move(step));
  }
  if (std::ssize(steps) > before) ++keeps_;
}

}  // namespace berth::mig
