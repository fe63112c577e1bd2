// The part of Simulation that stands where NVIDIA's MIG manager would: it cuts a node's GPUs as it is told, in its
// time.
#include <fmt/format.h>

#include <algorithm>

#include "bridge/devices.h"
#include "bridge/mig.h"
#include "bridge/mig_desired.h"
#include "bridge/to_model.h"
#include "engine/node_without.h"
#include "scenario/simulation.h"

namespace berth::scenario {
namespace {

constexpr Duration kRepartitionDefault = Duration::seconds(30);
constexpr int64_t kGivenUpMax = 8;  // then a node is left as it is, so that a simulation comes to its end

// The list with what the node's GPUs are advertised as replaced.
model::ResourceList with_gpus(const model::ResourceList& before, const model::ResourceList& gpus) {
  model::ResourceList out;
  for (const auto& [name, amount] : before)
    if (!mig::is_cut_resource(name)) out.set(name, amount);
  out.add(gpus);
  return out;
}

// Sentences about GPUs of a node that are in use, where nobody knows which.
std::vector<std::string> in_use(const engine::State& state, const std::string& node) {
  std::vector<std::string> out;
  const engine::NodeSlot slot = state.find_node(node);
  const engine::NodeState without_kept = engine::node_without(state, slot, engine::kept_room(state, state.node(slot)));
  const engine::NodeView view(without_kept, state.resources(), state.volumes(), state.mix());
  for (uint32_t id = 0; id < state.resources().size(); ++id)
    if (state.resources().is_gpu(engine::ResourceId{id}) && view.used(engine::ResourceId{id}) > 0)
      out.push_back(fmt::format("node {} is cut anew, and {} {} are in use", node, view.used(engine::ResourceId{id}),
                                state.resources().name(engine::ResourceId{id})));
  return out;
}

// How the node's GPUs lie when they are cut into these by somebody who leaves nothing as it was; nothing: they cannot
// be.
std::optional<std::vector<mig::GpuDevice>> cut_into(const api::Node& node, const model::ResourceList& gpus) {
  model::Node after = bridge::to_model(node, bridge::DeviceKnowledge::kExact);
  after.allocatable = after.capacity = with_gpus(after.allocatable, gpus);
  if (!after.mig) return std::nullopt;
  auto devices = mig::devices_of(after);
  return devices ? std::optional(std::move(*devices)) : std::nullopt;
}

}  // namespace

void Simulation::repartition() {
  using Kind = mig::RepartitionStep::Kind;
  for (mig::RepartitionStep& step : repartitioner_.step(engine(), now_)) {
    if (step.kind == Kind::kKeep) {
      outbox_.emplace_back(engine::GpusKept{step.node, step.owner, step.resources});
      continue;
    }
    outbox_.emplace_back(engine::NodeRepartitioning{step.node, step.kind == Kind::kBegin, step.pods});
    if (step.kind == Kind::kBegin) {
      if (!agent_.knows(step.node)) expect_idle(step.node);
      begin_change(step.node, step.resources);
      continue;
    }
    end_change(step.node, step.kind == Kind::kTimedOut, step.why);
    if (step.kind == Kind::kTimedOut) leave_uncut(step.node);
  }
}

// The node is cut when it takes, from now on, what the node says that it does.
void Simulation::begin_change(const std::string& node, const model::ResourceList& wanted) {
  const auto takes = simulated(nodes_.at(node), kSimulatedRepartition).value_or(kRepartitionDefault);
  schedule(now_, takes, DueKind::kNodeCut, repartitions_.size());
  repartitions_.push_back({node, now_, std::nullopt, wanted, false});
}

// A node that comes may be one that Berth has begun to have cut, as is written on it.
void Simulation::adopt_change(const api::Node& node) {
  const std::string* text = node.metadata.annotation(bridge::kMigDesiredAnnotation);
  const auto desired = bridge::read_mig_desired(text == nullptr ? "" : *text);
  if (!desired || desired->state != bridge::MigDesired::State::kWanted) return;
  const std::string* state = node.metadata.labels.find(bridge::kMigConfigState);
  if (!desired->config.empty() && state != nullptr && *state == "failed") return;  // and the daemon is about to say so
  repartitioner_.restore(node.metadata.name, {.under_way = true,
                                              .wanted = desired->resources,
                                              .until = now_ + repartitioner_.options().timeout,
                                              .given_up = desired->failures,
                                              .devices = bridge::told_devices(*desired)});
  outbox_.emplace_back(engine::NodeRepartitioning{node.metadata.name, true});
  begin_change(node.metadata.name, desired->resources);
}

void Simulation::end_change(const std::string& node, bool given_up, const std::string& overtaken) {
  for (RepartitionReport& report : repartitions_) {
    if (report.node != node || report.ended) continue;
    report.ended = happened_ = now_;
    report.given_up = given_up;
    report.overtaken = overtaken;
  }
}

// After too many changes that did not come the node is not to be cut any more.
void Simulation::leave_uncut(const std::string& name) {
  const auto given_up = std::ranges::count_if(
      repartitions_, [&](const RepartitionReport& report) { return report.node == name && report.given_up; });
  const auto at = nodes_.find(name);
  if (given_up < kGivenUpMax || at == nodes_.end()) return;
  at->second.metadata.labels.set(std::string(bridge::kMigPolicy), "static");
  outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(at->second, bridge::DeviceKnowledge::kExact)});
}

// The node has been cut; unless nobody waits for that any more, or somebody has come to use what was to be cut, or it
// has fallen ill, or its GPUs cannot be what a manifest says that they are to be: then who cuts refuses, as NVIDIA's
// tools do, and Berth gives it up in its time. Those who have come are not of Berth's own choice, which keeps everybody
// away meanwhile.
void Simulation::cut_node(size_t repartition) {
  const RepartitionReport& report = repartitions_[repartition];
  const auto at = nodes_.find(report.node);
  if (report.ended || at == nodes_.end()) return;
  api::Node& node = at->second;
  const engine::State& state = engine().state();
  const bool told = agent_.knows(report.node);
  if (const auto wrong =
          told ? agent_.cut(report.node, repartitioner_.find(report.node)->devices) : in_use(state, report.node);
      !wrong.empty()) {
    const bool ours = std::ranges::any_of(pods_, [&](const SimPod& pod) {
      if (pod.object.spec.node_name != report.node || pod.reason != "Scheduled" || !pod.started) return false;
      const engine::PodSlot slot = state.find_pod(pod.object.metadata.uid);
      if (!slot.valid() || *pod.started < report.begun) return false;
      const engine::PodClass& cls = state.pod_class(state.pod(slot).cls);
      return cls.requests_gpu || cls.shares_gpu;
    });
    for (const std::string& sentence : wrong)
      if (ours) broken_.push_back(fmt::format("at {}: {}", format_duration(now_ - Time{}), sentence));
    return;
  }
  if (!told) {
    const auto cut = cut_into(node, report.resources);
    if (!cut) return;
    agent_.find_cut(report.node, *cut);
  }
  if (bridge::mig_manager_cuts(node)) node.metadata.labels.set(std::string(bridge::kMigConfigState), "success");
  if (node.metadata.annotation(bridge::kDevicesAnnotation) != nullptr)
    node.metadata.annotations.set(std::string(bridge::kDevicesAnnotation), agent_.annotation(report.node));
  node.allocatable = with_gpus(node.allocatable, report.resources);
  if (!node.capacity.empty()) node.capacity = with_gpus(node.capacity, report.resources);
  outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(node, bridge::DeviceKnowledge::kExact)});
}

// Somebody's devices have changed hands.
void Simulation::tell_devices(const std::string& name) {
  api::Node& node = nodes_.at(name);
  node.metadata.annotations.set(std::string(bridge::kDevicesAnnotation), agent_.annotation(name));
  outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(node, bridge::DeviceKnowledge::kExact)});
}

// A node whose GPUs somebody uses is never cut where devices are not known.
void Simulation::expect_idle(const std::string& node) {
  for (const std::string& sentence : in_use(engine().state(), node))
    broken_.push_back(fmt::format("at {}: {}", format_duration(now_ - Time{}), sentence));
}

}  // namespace berth::scenario
