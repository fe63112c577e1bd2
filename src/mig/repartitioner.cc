#include "mig/repartitioner.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine/evaluate.h"

namespace berth::mig {
namespace {

using engine::ClassId;
using engine::NodeState;
using engine::PodSlot;
using engine::ResourceId;
using engine::State;

constexpr int kRetryDoublingsMax = 6;
constexpr size_t kRememberedMax = 10'000;  // shapes, and refusals

model::ResourceList cut_requests(const State& state, const engine::PodClass& cls) {
  model::ResourceList out;
  for (const engine::ResourceAmount& request : cls.requests)
    if (is_cut_resource(state.resources().name(request.id)))
      out.set(state.resources().name(request.id), request.amount);
  return out;
}

// A waiting class and the first of its pods that has not had its turn.
struct Turn {
  ClassId cls;
  absl::btree_set<PodSlot, engine::QueueOrder>::const_iterator next, end;
};

bool uses_gpus(const State& state, const NodeState& node) {
  for (uint32_t id = 0; id < node.used.size(); ++id)
    if (node.used[id] > 0 && state.resources().is_gpu(ResourceId{id})) return true;
  return false;
}

// What devices_of() goes by, and with it whether something can be cut of them.
std::string shape_of(const model::Node& node) {
  std::string out = fmt::format("{} {}", node.mig.model->name, node.mig.devices);
  for (const model::ResourceList* list : {&node.allocatable, &node.capacity}) {
    out += '|';
    for (const auto& [name, amount] : *list)
      if (is_cut_resource(name)) out += fmt::format("{} {},", amount, name);
  }
  return out;
}

std::string text_of(const model::ResourceList& amounts) {
  std::string out;
  for (const auto& [name, amount] : amounts) out += fmt::format("{} {},", amount, name);
  return out;
}

// The node as it would be once it is cut. `wanted`: into what; null: open, since cut_for() says what it could have.
NodeState imagined(const State& state, engine::NodeSlot slot, const model::ResourceList* wanted) {
  NodeState out = state.node(slot);
  out.repartitioning = false;
  out.allocatable.resize(state.resources().size(), 0);
  for (uint32_t id = 0; id < state.resources().size(); ++id) {
    const std::string& resource = state.resources().name(ResourceId{id});
    if (is_cut_resource(resource))
      out.allocatable[id] = wanted != nullptr ? wanted->get(resource) : engine::kMaxAmount - 1;
  }
  return out;
}

}  // namespace

// A node that is being cut, or could be, with the pods that it has been promised to.
struct Repartitioner::Offer {
  std::string name;
  engine::NodeSlot slot;
  std::string shape;              // the same for nodes whose GPUs are alike, and cut alike
  std::optional<NodeState> node;  // as it would be; made when it is first needed
  bool under_way = false;
  std::vector<GpuDevice> before, devices;
  model::ResourceList needs;  // of those pods
};

// The nodes that pods may be promised to: those under way, then those that would be cut, the smallest first.
std::vector<Repartitioner::Offer> Repartitioner::offers(const State& state, Time now) {
  std::vector<Offer> out;
  for (const std::string& name : state.mig_nodes()) {
    const NodeState& node = state.node(state.find_node(name));
    const auto record = nodes_.find(name);
    Offer offer;
    offer.name = name;
    offer.under_way = record != nodes_.end() && record->second.under_way;
    if (!offer.under_way) {
      if (record != nodes_.end() && record->second.until > now) continue;
      if (node.repartitioning || uses_gpus(state, node)) continue;
      offer.shape = shape_of(node.node);
      if (known_.size() > kRememberedMax) known_.clear();
      const auto [known, fresh] = known_.try_emplace(offer.shape);
      if (fresh) {
        if (auto devices = devices_of(node.node)) known->second = std::move(*devices);
      }
      if (known->second.empty()) continue;
      offer.before = offer.devices = known->second;
    }
    offer.slot = state.find_node(name);
    out.push_back(std::move(offer));
  }
  std::stable_sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) {
    return std::tuple(!a.under_way, a.devices.size()) < std::tuple(!b.under_way, b.devices.size());
  });
  return out;
}

// Promises the node to one pod of the class, if it can have it. False also where the node has what the pod asks for as
// it is: something else keeps the pod from it, which may not do so elsewhere.
bool Repartitioner::serve(const engine::Engine& engine, const engine::PodClass& cls, Offer& offer, int& cuts_left) {
  const State& state = engine.state();
  model::ResourceList needs = offer.needs;
  std::string refusal;
  if (!offer.under_way) {
    needs.add(cut_requests(state, cls));
    refusal = offer.shape + "|" + text_of(needs);
    if (refused_.contains(refusal)) return false;
  }
  if (!offer.node) offer.node = imagined(state, offer.slot, offer.under_way ? &nodes_.at(offer.name).wanted : nullptr);
  engine::Reasons reasons;
  if (!engine::run_filters(engine.policies(), cls, {*offer.node, state.resources(), state.volumes(), state.mix()},
                           reasons))
    return false;
  if (!offer.under_way) {
    if (--cuts_left < 0) return false;
    auto devices = cut_for(offer.before, needs, demand_);
    if (!devices) {
      if (refused_.size() > kRememberedMax) refused_.clear();
      refused_.insert(std::move(refusal));
      return false;
    }
    offer.devices = std::move(*devices);
    offer.needs = std::move(needs);
  }
  std::vector<Int128>& used = offer.node->used;
  for (const engine::ResourceAmount& request : cls.requests) {
    if (used.size() <= request.id.value) used.resize(request.id.value + 1, 0);
    used[request.id.value] += request.amount;
  }
  std::vector<model::HostPort>& ports = offer.node->host_ports;
  ports.insert(ports.end(), cls.spec->host_ports.begin(), cls.spec->host_ports.end());
  return offer.under_way || advertised(offer.devices) != advertised(offer.before);
}

// Gives each waiting pod its turn, in the queue's order. When one of a class finds nothing, none of the class will.
void Repartitioner::plan(const engine::Engine& engine, std::vector<Offer>& offers) {
  const State& state = engine.state();
  std::map<PodSlot, Turn, engine::QueueOrder> turns(engine::QueueOrder{&state});
  for (const ClassId id : engine.queue().blocked()) {
    const engine::ClassQueue& waiting = *engine.queue().find(id);
    if (waiting.candidates.objection().empty() && !cut_requests(state, state.pod_class(id)).empty())
      turns.emplace(*waiting.pods.begin(), Turn{id, waiting.pods.begin(), waiting.pods.end()});
  }
  int cuts_left = kCutsMax;
  while (!turns.empty() && cuts_left > 0) {
    Turn turn = turns.begin()->second;
    turns.erase(turns.begin());
    const engine::PodClass& cls = state.pod_class(turn.cls);
    const bool served =
        std::any_of(offers.begin(), offers.end(), [&](Offer& offer) { return serve(engine, cls, offer, cuts_left); });
    if (served && ++turn.next != turn.end) turns.emplace(*turn.next, turn);
  }
}

void Repartitioner::end_changes(const State& state, Time now, std::vector<RepartitionStep>& steps) {
  for (auto at = nodes_.begin(); at != nodes_.end();) {
    auto& [name, record] = *at;
    const engine::NodeSlot slot = state.find_node(name);
    if (!slot.valid() || (!record.under_way && !state.mig_nodes().contains(name))) {
      at = nodes_.erase(at);
      continue;
    }
    ++at;
    model::ResourceList has;
    for (const auto& [resource, amount] : state.node(slot).node.allocatable)
      if (amount > 0 && is_cut_resource(resource)) has.set(resource, amount);
    const bool arrived = has == record.wanted;
    if (arrived) record.given_up = 0;
    if (!record.under_way || (!arrived && record.until > now)) continue;
    record.under_way = false;
    const auto doublings = std::min(record.given_up, kRetryDoublingsMax);
    record.until = now + (arrived ? options_.interval : Duration{options_.retry.nanos << doublings});
    record.given_up += arrived ? 0 : 1;
    steps.push_back({arrived ? RepartitionStep::Kind::kArrived : RepartitionStep::Kind::kTimedOut, name, {}, {}});
  }
}

std::vector<RepartitionStep> Repartitioner::step(const engine::Engine& engine, Time now) {
  std::vector<RepartitionStep> steps;
  end_changes(engine.state(), now, steps);
  const auto& blocked = engine.queue().blocked();
  const bool waiting = std::any_of(blocked.begin(), blocked.end(), [&](ClassId id) {
    return !cut_requests(engine.state(), engine.state().pod_class(id)).empty();
  });
  if (waiting && !engine.state().mig_nodes().empty() && steps.empty()) {  // else the engine has news to hear first
    std::vector<Offer> all = offers(engine.state(), now);
    plan(engine, all);
    for (Offer& offer : all) {
      if (offer.under_way || offer.needs.empty()) continue;
      for (const auto& [name, count] : offer.needs)
        if (const auto profile = model::parse_mig_resource(offer.devices.front().mig.layout.model(), name))
          demand_.observe(offer.devices.front().mig.layout.model().profiles[*profile].name, count);
      if (advertised(offer.devices) == advertised(offer.before)) continue;
      fill_up(offer.before, offer.devices, demand_);
      model::ResourceList wanted = advertised(offer.devices);
      NodeRecord& record = nodes_[offer.name];
      record.under_way = true;
      record.wanted = wanted;
      record.until = now + options_.timeout;
      steps.push_back({RepartitionStep::Kind::kBegin, offer.name, std::move(offer.devices), std::move(wanted)});
    }
  }
  find_wakeup(now);
  return steps;
}

void Repartitioner::find_wakeup(Time now) {
  wakeup_.reset();
  for (const auto& [name, record] : nodes_)
    if (record.until > now) wakeup_ = std::min(wakeup_.value_or(record.until), record.until);
}

}  // namespace berth::mig
