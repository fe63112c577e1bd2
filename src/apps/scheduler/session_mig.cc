// Session's part for dynamic MIG: nodes whose GPUs are cut anew for the pods that wait (mig/repartitioner.h), by what
// is written on them (mig_writer.h).
#include <fmt/format.h>

#include <algorithm>

#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"
#include "bridge/mig.h"

namespace berth::apps {
namespace {

using State = bridge::MigDesired::State;

std::string label_of(const api::Node& node, std::string_view name) {
  const std::string* value = node.metadata.labels.find(name);
  return value == nullptr ? "" : *value;
}

std::vector<bridge::DesiredDevice> desired_devices(const model::Node& node, const std::vector<mig::GpuDevice>& wanted) {
  std::vector<bridge::DesiredDevice> out;
  for (size_t d = 0; d < wanted.size(); ++d) {
    bridge::DesiredDevice device;
    if (d < node.cut_by_agent().size()) device.uuid = node.cut_by_agent()[d].uuid;
    device.mig_enabled = !wanted[d].whole;
    device.instances = mig::instances_of(wanted[d]);
    out.push_back(std::move(device));
  }
  return out;
}

std::string text_of(const model::ResourceList& amounts) {
  std::string out;
  for (const auto& [name, amount] : amounts) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", amount, name);
  return out.empty() ? "nothing" : out;
}

void log_kept(const engine::Engine& engine, const std::string& node) {
  const auto& all = engine.kept_gpus().all();
  const engine::NodeSlot slot = engine.state().find_node(node);
  const auto kept = all.find(slot);
  if (slot.valid() && engine.state().node(slot).is_being_cut()) return;  // what is kept beside the GPUs meanwhile
  if (kept == all.end()) return log_info("GPUs are kept no longer", {{"node", node}});
  log_info("GPUs are kept until they are idle and can be cut anew",
           {{"node", node}, {"for", engine.state().pod(kept->second.stand_in).pod.keeps_gpus_for}});
}

}  // namespace

NodeMig mig_of_seen(const api::Node& node) {
  NodeMig out{node.metadata.resource_version, std::nullopt, label_of(node, bridge::kMigConfig),
              label_of(node, bridge::kMigConfigState), ""};
  if (const std::string* text = node.metadata.annotation(bridge::kMigDesiredAnnotation))
    if (auto desired = bridge::read_mig_desired(*text)) out.desired = std::move(*desired);
  if (const std::string* text = node.metadata.annotation(bridge::kMigFailedAnnotation)) out.failed = *text;
  return out;
}

std::string node_problem(const api::Node& node, const SeenNode& seen) {
  if (!seen.node.set_aside.empty()) return seen.node.set_aside;
  if (!seen.node.mig_problem.empty()) return seen.node.mig_problem;
  if (seen.mig.desired && seen.mig.desired->state == State::kWanted) return "";
  if (seen.node.cut_by_others) return "";
  if (const auto mig = bridge::mig_of(node, bridge::DeviceKnowledge::kCounts); !mig) return mig.error().message;
  if (!seen.node.mig || !seen.node.cut_by_agent().empty()) return "";  // what an agent tells may be behind for a moment
  const auto devices = mig::devices_of(seen.node);
  return devices ? "" : devices.error().message;
}

void Session::handle(NodeUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenNode>>(&update)) {
      doubtful_ = doubtful_ || list->went_back;
      set_aside_.clear("Node");
      closed_.forget_all_nodes();
      absl::flat_hash_set<std::string> names;
      engine::NodesReplaced all;
      for (SeenNode& seen : list->objects) {
        names.insert(seen.node.name);
        if (take_in(seen)) all.nodes.push_back(std::move(seen.node));
      }
      for (const std::string& name : mig_->nodes())
        if (!names.contains(name)) forget_node(name);
      engine_.apply(std::move(all));
      nodes_listed_ = true;
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenNode>>(&update)) {
      set_aside_.remove("Node", "", upserted->object.node.name);
      if (take_in(upserted->object)) engine_.apply(engine::NodeUpserted{std::move(upserted->object.node)});
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenNode>>(&update)) {
      const std::string& name = deleted->object.node.name;
      set_aside_.remove("Node", "", name);
      closed_.forget(name);
      forget_node(name);
      engine_.apply(engine::NodeDeleted{name});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      closed_.forget(malformed->name);
      forget_node(malformed->name);
      engine_.apply(engine::NodeDeleted{malformed->name});  // takes no new work while it cannot be understood
      if (malformed->deleted) set_aside_.remove("Node", "", malformed->name);
      else quarantine("Node", *malformed);
    }
  }
}

// True where the engine is to know the node. What it remembers of cuts counts from before this term, too.
bool Session::take_in(SeenNode& seen) {
  const std::string& name = seen.node.name;
  std::string& told = node_problems_[name];
  const bool set_aside = !seen.node.set_aside.empty(), instances = !seen.node.mig_problem.empty();
  if (set_aside) set_aside_.add("Node", name, seen.node.set_aside);
  if (seen.problem != told && !seen.problem.empty()) {
    if (set_aside) options_.metrics->quarantined("Node");
    log_warn(set_aside   ? "a node was set aside and takes no new work"
             : instances ? "a node's MIG instances take no new work"
                         : "a node's GPUs are left as they are cut",
             {{"node", name}, {"error", seen.problem}});
    events_->record(
        {.regarding = {.kind = "Node", .name = name, .uid = seen.node.uid},
         .type = "Warning",
         .reason = set_aside   ? "Quarantined"
                   : instances ? "MigInstancesSetAside"
                               : "MigPolicyIgnored",
         .action = set_aside ? "Scheduling" : "Repartitioning",
         .note = set_aside ? "Berth gives this node no new work with GPUs: " + seen.problem : seen.problem});
  }
  if (seen.problem.empty()) node_problems_.erase(name);
  else told = seen.problem;
  if (seen.node.mig || seen.mig.desired || mig_->find(name) != nullptr) {
    if (const auto& desired = seen.mig.desired; desired && desired->state != State::kWanted)
      repartitioner_.restore(name, {.under_way = false,
                                    .wanted = desired->resources,
                                    .until = clock_.monotonic() + (desired->until - clock_.wall()),
                                    .given_up = desired->failures});
    mig_->seen(name, std::move(seen.mig));
  }
  return !closed_.withhold(seen.node);
}

void Session::forget_node(const std::string& name) {
  mig_->gone(name);
  node_problems_.erase(name);
  repartitioner_.forget(name);
}

void Session::tell_node(const std::string& node, const char* reason, const std::string& note, bool warning) {
  const engine::NodeSlot slot = engine_.state().find_node(node);
  const std::string uid = slot.valid() ? engine_.state().node(slot).node.uid : "";
  (warning ? log_warn : log_info)("repartitioning", {{"node", node}, {"what", reason}, {"note", note}});
  events_->record({.regarding = {.kind = "Node", .name = node, .uid = uid},
                   .type = warning ? "Warning" : "Normal",
                   .reason = reason,
                   .action = "Repartitioning",
                   .note = note});
}

// What nodes say of the changes that are under way, before a cycle: those that another term has begun count, too.
void Session::follow_cuts(Time now) {
  for (const MigOutcome& outcome : mig_->tick(now)) hear(outcome, now);
  for (const std::string& node : mig_->changing()) {
    const mig::RepartitionRecord* record = repartitioner_.find(node);
    const engine::NodeSlot slot = engine_.state().find_node(node);
    const bool present = slot.valid() && engine_.state().node(slot).present;
    // A node that was closed for a while is new to both.
    if (present && (record == nullptr || !record->under_way || !engine_.state().node(slot).repartitioning))
      adopt_cut(node, *mig_->change(node), now);
  }
}

void Session::adopt_cut(const std::string& node, const bridge::MigDesired& desired, Time now) {
  const Duration left = std::min(desired.until - clock_.wall(), repartitioner_.options().timeout);
  repartitioner_.restore(node, {.under_way = true,
                                .wanted = desired.resources,
                                .until = now + left,
                                .given_up = desired.failures,
                                .devices = bridge::told_devices(desired)});
  engine_.apply(engine::NodeRepartitioning{node, true});
  cycle_due_ = true;
}

void Session::hear(const MigOutcome& outcome, Time now) {
  using Kind = MigOutcome::Kind;
  switch (outcome.kind) {
    case Kind::kAdopted:
      log_info("a node is being repartitioned since before this term", {{"node", outcome.node}});
      return adopt_cut(outcome.node, *outcome.desired, now);
    case Kind::kWithdrawn:
      log_debug("a node was not repartitioned: it has changed meanwhile",
                {{"node", outcome.node}, {"why", outcome.why}});
      options_.metrics->repartition("withdrawn");
      repartitioner_.withdraw(outcome.node, now);
      break;
    case Kind::kRefused:
      log_error(
          "a node may not be repartitioned: Berth's role needs patch on nodes; deploy/rbac.yaml lists what is needed",
          {{"node", outcome.node}, {"error", outcome.why}});
      repartitioner_.fail(outcome.node, now);
      options_.metrics->repartition("failed");
      break;
    case Kind::kFailed:
      repartitioner_.fail(outcome.node, now);
      return end_cut({outcome.node}, State::kFailed, outcome.why, now);
  }
  engine_.apply(engine::NodeRepartitioning{outcome.node, false});
  cycle_due_ = true;
}

// After a cycle that has finished: nodes to be cut, and those that are.
void Session::repartition(Time now) {
  if (!options_.may_bind()) return;
  for (const mig::RepartitionStep& step : repartitioner_.step(engine_, now, plan_.work())) {
    using Kind = mig::RepartitionStep::Kind;
    if (step.kind == Kind::kKeep) {
      engine_.apply(engine::GpusKept{step.node, step.owner, step.resources});
      log_kept(engine_, step.node);
      cycle_due_ = true;
    } else if (step.kind == Kind::kBegin) begin_cut(step, now);
    else if (step.kind == Kind::kArrived) end_cut({step.node, false, step.pods}, State::kArrived, "", now);
    else if (step.kind == Kind::kOvertaken) end_cut({step.node}, State::kFailed, step.why, now);
    else end_cut({step.node}, State::kFailed, "it was not done in time", now);
  }
  for (const MigOutcome& outcome : mig_->tick(now)) hear(outcome, now);
  cycle_due_ = cycle_due_ || repartitioner_.unfinished();
  for (const auto& wakeup : {repartitioner_.wakeup(), mig_->wakeup()}) {
    if (!wakeup) continue;
    wakeup_ = has_wakeup_ ? std::min(wakeup_, *wakeup) : *wakeup;
    has_wakeup_ = true;
  }
}

void Session::begin_cut(const mig::RepartitionStep& step, Time now) {
  const model::Node& node = engine_.state().node(engine_.state().find_node(step.node)).node;
  engine_.apply(engine::NodeRepartitioning{step.node, true});
  cycle_due_ = true;  // pods that wait are told
  if (mig_->find(step.node) == nullptr || mig_->busy(step.node)) {
    repartitioner_.withdraw(step.node, now);  // the end of the change before is still to be written
    engine_.apply(engine::NodeRepartitioning{step.node, false});
    return;
  }
  const mig::RepartitionRecord& record = *repartitioner_.find(step.node);
  const Time wall = clock_.wall();
  bridge::MigDesired desired;
  desired.id = fmt::format("{:x}", wall.nanos);
  desired.since = wall;
  desired.until = wall + (record.until - now);
  desired.failures = record.given_up;
  desired.config = step.config;
  desired.resources = step.resources;
  desired.devices = desired_devices(node, step.devices);
  mig_->begin(step.node, std::move(desired));
  options_.metrics->repartition("begun");
  tell_node(step.node, "MigRepartitioning",
            fmt::format("for pods that wait, its GPUs are to become {}{}", text_of(step.resources),
                        step.config.empty() ? "" : fmt::format(" ({})", step.config)));
}

// `why` of those that failed.
void Session::end_cut(const engine::NodeRepartitioning& over, State how, const std::string& why, Time now) {
  const std::string& node = over.name;
  const mig::RepartitionRecord& record = *repartitioner_.find(node);
  const Duration left = record.until - now;
  mig_->end(node, how, why, clock_.wall() + left, record.given_up);
  engine_.apply(over);
  cycle_due_ = true;
  options_.metrics->repartition(how == State::kArrived ? "arrived" : "failed");
  if (how == State::kArrived)
    return tell_node(node, "MigRepartitioned", fmt::format("its GPUs are {} now", text_of(record.wanted)));
  tell_node(node, "MigRepartitionFailed",
            fmt::format("its GPUs did not become {}: {}. They are used as they are, and left alone for {}",
                        text_of(record.wanted), why, format_duration(left)),
            true);
}

}  // namespace berth::apps
