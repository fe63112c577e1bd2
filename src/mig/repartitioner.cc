#include "mig/repartitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "engine/node_without.h"
#include "engine/queued_workloads.h"
#include "mig/repartition_plan.h"
#include "quota/flavors.h"

namespace berth::mig {
namespace {

using engine::ClassId;
using engine::NodeState;
using engine::PodSlot;
using engine::ResourceId;
using engine::State;

constexpr int kRetryDoublingsMax = 6;

// What the devices in use leave free: no plan can count on where it lies, but that it is there. All pods are on these;
// below zero, where some are on ill ones, so that what is made has to do for these first.
model::ResourceList free_in_use(const State& state, const NodeState& node, std::span<const GpuDevice> devices) {
  std::vector<GpuDevice> busy;
  for (const GpuDevice& device : devices)
    if (!device.idle()) busy.push_back(device);
  model::ResourceList out = advertised(busy);
  for (uint32_t id = 0; id < node.used.size(); ++id)
    if (const std::string& name = state.resources().name(ResourceId{id}); is_cut_resource(name))
      out.set(name, out.get(name) - engine::NodeView::narrow(node.used[id]));
  return out;
}

// The devices under the names that the agent tells; none where there is no agent.
std::vector<model::GpuDevice> as_told(std::span<const model::GpuDevice> told, std::span<const GpuDevice> wanted) {
  std::vector<model::GpuDevice> out;
  for (size_t d = 0; d < std::min(told.size(), wanted.size()); ++d) {
    model::GpuDevice device;
    device.uuid = told[d].uuid;
    device.mig_enabled = !wanted[d].whole;
    device.mig_instances = instances_of(wanted[d]);
    out.push_back(std::move(device));
  }
  return out;
}

}  // namespace

std::optional<Repartitioner::Offer> Repartitioner::offer_of(const State& state, const std::string& name, Time now) {
  Offer offer;
  offer.name = name;
  offer.slot = state.find_node(name);
  const NodeState& node = state.node(offer.slot);
  offer.kept = engine::kept_room(state, node);
  const auto record = nodes_.find(name);
  if (record != nodes_.end() && record->second.under_way) {
    offer.under_way = true;
    offer.wanted = record->second.wanted;
    return offer;
  }
  if (record != nodes_.end() && record->second.until > now) return std::nullopt;
  const bool told = !node.node.cut_by_agent().empty();
  const IdleDevices::Known* found = idle_.find_beside_kept(state, offer.slot);
  if (found == nullptr) return std::nullopt;
  offer.shape = found->shape;
  offer.named = node.node.mig.hand == model::MigHand::kNamed;
  offer.before = offer.devices = found->devices;
  offer.wanted = cut_resources(node.node.allocatable);
  offer.idle = found->idle.advertised;
  if (told) offer.spare = free_in_use(state, engine::node_without(state, offer.slot, offer.kept), offer.before);
  return offer;
}

// Those that allow it, and those that are under way: while a node is being cut, what it says of its GPUs is not to be
// relied on.
std::set<std::string> Repartitioner::candidates(const State& state) const {
  std::set<std::string> out(state.mig_nodes().begin(), state.mig_nodes().end());
  for (const auto& [name, record] : nodes_) {
    const engine::NodeSlot slot = state.find_node(name);
    if (record.under_way && slot.valid() && state.node(slot).present) out.insert(name);
  }
  return out;
}

// The nodes that pods may be promised to: those under way, then those that would be cut, the smallest first of both.
std::vector<Repartitioner::Offer> Repartitioner::offers(const State& state, Time now) {
  std::vector<Offer> out;
  for (const std::string& name : candidates(state))
    if (auto offer = offer_of(state, name, now)) out.push_back(std::move(*offer));
  const auto devices = [&](const Offer& offer) { return state.node(offer.slot).node.mig.devices; };
  std::stable_sort(out.begin(), out.end(), [&](const Offer& a, const Offer& b) {
    return std::tuple(!a.under_way, devices(a)) < std::tuple(!b.under_way, devices(b));
  });
  return out;
}

void Repartitioner::end_changes(const State& state, Time now, std::vector<RepartitionStep>& steps) {
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    auto& [name, record] = *at;
    const engine::NodeSlot slot = state.find_node(name);
    if (!slot.valid() || (!record.under_way && record.until <= now && !state.mig_nodes().contains(name))) {
      at = nodes_.erase(at);
      continue;
    }
    ++at;
    const bool arrived = cut_resources(state.node(slot).node.allocatable) == record.wanted;
    if (arrived) record.given_up = 0;
    if (!record.under_way) continue;
    const std::string why = arrived ? "" : why_it_cannot_arrive(state.node(slot).node, record.devices, record.wanted);
    if (!arrived && why.empty() && record.until > now) continue;
    using Kind = RepartitionStep::Kind;
    steps.push_back({arrived       ? Kind::kArrived
                     : why.empty() ? Kind::kTimedOut
                                   : Kind::kOvertaken,
                     name,
                     {},
                     {},
                     {},
                     why,
                     arrived ? take_promised(name) : std::vector<std::string>()});
    if (auto work = promised_work_.extract(name); arrived && work) steps.push_back(std::move(work.mapped()));
    if (!arrived && why.empty()) {
      fail(name, now);
    } else {
      take_promised(name);
      record.under_way = false;
      record.until = now + options_.interval;
    }
  }
}

// Who has been promised the node, by UID; no longer.
std::vector<std::string> Repartitioner::take_promised(const std::string& node) {
  std::vector<std::string> out;
  for (auto at = promised_.begin(); at != promised_.end();) {
    if (at->second == node) out.push_back(at->first);
    at = at->second == node ? promised_.erase(at) : std::next(at);
  }
  return out;
}

void Repartitioner::fail(const std::string& node, Time now) {
  take_promised(node);
  RepartitionRecord& record = nodes_[node];
  record.under_way = false;
  record.until = now + Duration{options_.retry.nanos << std::min(record.given_up, kRetryDoublingsMax)};
  ++record.given_up;
}

void Repartitioner::withdraw(const std::string& node, Time now) {
  take_promised(node);
  RepartitionRecord& record = nodes_[node];
  record.under_way = false;
  record.until = now + options_.again;
}

bool Repartitioner::restore(const std::string& node, const RepartitionRecord& record) {
  const auto [at, fresh] = nodes_.emplace(node, record);
  if (fresh || !record.under_way || at->second.under_way) return fresh;
  at->second = record;
  return true;
}

const RepartitionRecord* Repartitioner::find(const std::string& node) const {
  const auto at = nodes_.find(node);
  return at == nodes_.end() ? nullptr : &at->second;
}

// Numbers of pods and classes are used again, so that they say nothing.
std::vector<uint64_t> Repartitioner::who_waits(const engine::Engine& engine) {
  const auto name_of = [&](PodSlot pod) {
    return pod.valid() ? std::hash<std::string>()(engine.state().pod(pod).pod.uid) : 0;
  };
  const auto workload_name = [&](quota::WorkloadId id) {
    return id.valid() ? std::hash<std::string>()(engine.admission().status(id).workload.uid) : 0;
  };
  std::vector<uint64_t> seen{name_of(engine.held()), workload_name(engine.workloads().held())};
  for (const ClassId id : engine.queue().blocked()) {
    const engine::PodClass& cls = engine.state().pod_class(id);
    if (!cls.requests_gpu && !cls.shares_gpu) continue;
    const engine::ClassQueue& waiting = *engine.queue().find(id);
    seen.insert(seen.end(), {cls.serial, cls.generation, waiting.pods.size(), name_of(*waiting.pods.begin())});
  }
  for (const PodSlot pod : engine.reserved_pods()) seen.push_back(name_of(pod));
  for (const auto& [pod, queue] : engine.due_pods().pods) seen.push_back(name_of(pod));
  bool gathers = false;  // some are to be together, so that it matters what is free beside what may be cut
  const quota::QuotaTree* quota = engine.workloads().wanted().empty() ? nullptr : &engine.admission().ledger().tree();
  for (const engine::WantedPlaces& wanted : engine.workloads().wanted()) {
    seen.insert(seen.end(),
                {workload_name(wanted.workloads.front()), wanted.workloads.size(), uint64_t{wanted.has_waited}});
    const quota::WorkloadStatus& first = engine.admission().status(wanted.workloads.front());
    const quota::QuotaNode queue = quota->queue(first.cluster_queue);
    for (const engine::WantedPlaces::Option& option : wanted.options) {
      for (const engine::WantedPlaces::Set& set : option.sets) {
        const engine::PodClass& cls = engine.state().pod_class(engine.state().pod(set.pod).cls);
        seen.insert(seen.end(), {cls.serial, cls.generation, set.places.size()});
        for (const engine::NodeSlot place : set.places) seen.push_back(place.value);
        gathers |= !cls.peers.gathering.empty();
      }
      if (queue.valid())
        for (const auto& [fr, amount] : quota::usage_of(*quota, option.given.pod_sets, first.workload))
          seen.push_back(static_cast<uint64_t>(quota->available(queue, fr)));
    }
  }
  if (gathers) seen.push_back(engine.state().change_end());
  return seen;
}

// True where a plan would see what the last one saw, which came to nothing.
bool Repartitioner::nothing_new(const engine::Engine& engine, Time now) {
  std::vector<uint64_t> seen = waiting_ = who_waits(engine);
  for (const std::string& name : candidates(engine.state())) {
    const engine::NodeSlot slot = engine.state().find_node(name);
    seen.insert(seen.end(), {slot.value, engine.state().node(slot).generation});
  }
  if (seen == looked_at_ && (!wakeup_ || *wakeup_ > now)) return true;
  looked_at_ = std::move(seen);
  return false;
}

// The nodes that are to be cut for the pods that they were promised to.
void Repartitioner::begin(const State& state, std::vector<Offer>& offers, Time now,
                          std::vector<RepartitionStep>& steps) {
  for (Offer& offer : offers) {
    if (offer.under_way || offer.needs.empty() || advertised(offer.devices) == advertised(offer.before)) continue;
    const model::MigModel& model = offer.devices.front().mig.layout.model();
    for (const auto& [name, count] : offer.needs)
      if (const auto profile = model::parse_mig_resource(model, name))
        demand_.observe(model.profiles[*profile].name, count);
    if (!offer.named) fill_up(offer.before, offer.devices, demand_);
    RepartitionRecord& record = nodes_[offer.name];
    record.under_way = true;
    record.wanted = offer.wanted;
    for (const auto& [name, amount] : advertised(offer.before))
      record.wanted.set(name, record.wanted.get(name) - amount);
    record.wanted.add(advertised(offer.devices));
    record.wanted = cut_resources(record.wanted);
    record.until = now + options_.timeout;
    record.devices = as_told(state.node(offer.slot).node.cut_by_agent(), offer.devices);
    steps.push_back(
        {RepartitionStep::Kind::kBegin, offer.name, std::move(offer.devices), record.wanted, std::move(offer.config)});
    if (auto beside = beside_.extract(offer.name)) steps.push_back(std::move(beside.mapped()));
  }
}

void Repartitioner::plan(const engine::Engine& engine, std::vector<Offer>& offers, int64_t work) {
  Plan plan(engine, offers, demand_, promised_, work);
  plan.run();
  work_used_ += plan.work_used();
  unfinished_ = plan.unfinished();
  if (!unfinished_) promised_.clear(), promised_work_.clear();  // else who has not had a turn has what he had
  for (const Offer& offer : offers) {
    if (!offer.workload.valid()) continue;
    RepartitionStep step{RepartitionStep::Kind::kKeep, offer.name, {}, offer.for_workload};
    step.owner = engine.admission().status(offer.workload).workload.uid;
    promised_work_.insert_or_assign(offer.name, std::move(step));
  }
  served_.clear();
  beside_.clear();
  for (const auto& [name, work_step] : promised_work_) {
    RepartitionStep& step = beside_[name] = work_step;
    step.resources = {};
    for (const auto& [resource, amount] : work_step.resources)
      if (!is_cut_resource(resource)) step.resources.set(resource, amount);
  }
  std::map<engine::QueueRank, std::pair<PodSlot, const Offer*>> places;
  for (const auto& [pod, offer] : plan.places())
    places.emplace(engine::queue_rank(engine.state().pod(pod).pod), std::pair(pod, offer));
  for (const auto& [rank, place] : places) {
    const auto& [pod, offer] = place;
    const std::string& uid = engine.state().pod(pod).pod.uid;
    promised_[uid] = offer->name;
    served_.insert(uid);
    RepartitionStep& step = beside_[offer->name];
    step.kind = RepartitionStep::Kind::kKeep;
    step.node = offer->name;
    if (step.owner.empty()) step.owner = uid;
    step.resources.add(other_requests(engine.state(), engine.state().pod_class(engine.state().pod(pod).cls)));
  }
  for (const quota::WorkloadId id : plan.workloads()) served_.insert(engine.admission().status(id).workload.uid);
}

// Who has come since has a turn on what is under way before it is given to whom it was promised then.
void Repartitioner::promise_again(const engine::Engine& engine, Time now, int64_t work) {
  const auto is_done = [&](const auto& each) {
    const engine::NodeSlot slot = engine.state().find_node(each.first);
    return each.second.under_way && slot.valid() &&
           cut_resources(engine.state().node(slot).node.allocatable) == each.second.wanted;
  };
  if (promised_.empty() || std::ranges::none_of(nodes_, is_done) || who_waits(engine) == waiting_) return;
  std::vector<Offer> under_way = offers(engine.state(), now);
  std::erase_if(under_way, [](const Offer& offer) { return !offer.under_way; });
  plan(engine, under_way, work);
}

std::vector<RepartitionStep> Repartitioner::step(const engine::Engine& engine, Time now, int64_t work) {
  std::vector<RepartitionStep> steps;
  work_used_ = 0;
  unfinished_ = false;
  promise_again(engine, now, work);
  end_changes(engine.state(), now, steps);
  const State& state = engine.state();
  const auto asks = [&](ClassId id) { return !cut_requests(state, state.pod_class(id)).empty(); };
  const auto waiting = [&] {
    return std::ranges::any_of(engine.queue().blocked(), asks) ||
           std::ranges::any_of(engine.reserved_pods(), [&](PodSlot pod) { return asks(state.pod(pod).cls); }) ||
           !engine.workloads().wanted().empty();
  };
  const bool possible = !state.mig_nodes().empty() && steps.empty();  // else there is news to be heard first
  if (possible && !waiting()) {
    served_.clear();
    keep_gpus(engine, now, steps);
  } else if (possible && !nothing_new(engine, now)) {
    std::vector<Offer> all = offers(state, now);
    plan(engine, all, work);
    begin(state, all, now, steps);
    if (unfinished_) looked_at_.clear();
    else if (!engine.held().valid() && !engine.workloads().held().valid()) keep_gpus(engine, now, steps);
  }
  find_wakeup(now);
  return steps;
}

void Repartitioner::find_wakeup(Time now) {
  wakeup_.reset();
  for (const auto& [name, record] : nodes_)
    if (record.until > now) wakeup_ = std::min(wakeup_.value_or(record.until), record.until);
  if (const Time again = keeps_since_ + kKeepsSpan; keeps_ >= kKeepsMax && again > now)
    wakeup_ = std::min(wakeup_.value_or(again), again);
}

}  // namespace berth::mig
