#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "api/requests.h"
#include "base/check.h"
#include "bridge/gpus.h"
#include "engine/in_the_way.h"
#include "model/gpu_limit.h"
#include "scenario/simulation.h"
#include "workloads/kueue/pod_group.h"

namespace berth::scenario {
namespace {

// One of a group that is not all there, or cannot be one, is told so.
engine::Explanation with_trouble(engine::Explanation verdict, const SimPod& pod, const PodGroups& groups) {
  if (pod.group != SIZE_MAX && !groups.all[pod.group].trouble.empty() && workloads::waits_for_admission(pod.object))
    verdict.message = groups.all[pod.group].trouble;
  return verdict;
}

// For a workload that has quota and no place: who has what it asks for on nodes that could have its pods. GPUs, where
// it asks for some.
std::vector<WorkloadReport::OnNode> on_its_nodes(const engine::Engine& engine, const WorkloadReport& workload,
                                                 engine::InTheWay& in_the_way) {
  const engine::State& state = engine.state();
  std::set<std::string> resources, gpus;
  for (const quota::WaitingFor::Account& account : workload.waits_for.quota)
    (model::is_gpu_resource(account.resource) ? gpus : resources).insert(account.resource);
  std::map<std::tuple<std::string, std::string, std::string, bool>, int64_t> amounts;
  for (const engine::PodSlot slot : in_the_way.of_place(engine.admission().find(workload.uid))) {
    const engine::PodState& pod = state.pod(slot);
    const std::string name = pod.pod.stand_in ? pod.pod.workload : pod.pod.namespace_name + "/" + pod.pod.name;
    const bool kept = pod.pod.stand_in && pod.phase == engine::PodPhase::kNominated;
    for (const std::string& resource : gpus.empty() ? resources : gpus)
      if (const int64_t amount = pod.pod.spec->requests.get(resource); amount > 0)
        amounts[{resource, name, state.node(pod.node).node.name, kept}] += amount;
  }
  std::vector<WorkloadReport::OnNode> out;
  for (const auto& [what, amount] : amounts) {
    const auto& [resource, name, node, kept] = what;
    out.push_back({resource, name, node, amount, kept});
  }
  std::ranges::sort(out, {}, [](const auto& one) { return std::tuple(one.resource, -one.amount, one.pod, one.node); });
  return out;
}

}  // namespace

std::optional<engine::Explanation> Simulation::explain(const std::string& name) {
  const auto found = find(name);
  if (!found) return std::nullopt;
  if (pods_[*found].stage == Stage::kRefused) {
    RefusedPod refused = refusal_of(pods_[*found]);
    return engine::Explanation{.known = true,
                               .reason = std::move(refused.reason),
                               .message = std::move(refused.message),
                               .node = "",
                               .nodes = {}};
  }
  return with_trouble(engine_.explain(pods_[*found].object.metadata.uid), pods_[*found], groups_);
}

PodReport Simulation::report_pod(const SimPod& pod) const {
  PodReport out;
  out.namespace_name = pod.object.metadata.namespace_name;
  out.name = pod.object.metadata.name;
  out.uid = pod.object.metadata.uid;
  if (const api::OwnerReference* owner = pod.object.metadata.controller(); owner != nullptr)
    out.owner = fmt::format("{} {}/{}", owner->kind, out.namespace_name, owner->name);
  else if (const std::string_view group = workloads::group_of(pod.object.metadata); !group.empty())
    out.owner = fmt::format("Pod group {}/{}", out.namespace_name, group);
  out.node = pod.object.spec.node_name;
  out.reason = pod.reason;
  out.submitted = pod.submitted;
  out.started = pod.started;
  out.finished = pod.finished;
  out.requests = api::effective_requests(pod.object);
  out.gpu_share = bridge::gpu_share_of(pod.object.metadata, out.requests);
  out.gpu_devices = pod.gpu_devices;
  const engine::State& state = engine().state();
  if (const engine::PodSlot slot = state.find_pod(pod.object.metadata.uid); slot.valid() && !out.node.empty())
    out.gpu_devices = state.devices_of(slot);
  out.feasible = pod.feasible;
  out.feasible_count = pod.feasible_count;
  out.nominated_node = pod.nominated_node;
  for (const size_t victim : pod.evicted) out.evicted.push_back(pod_name(pods_[victim].object));
  if (pod.stage == Stage::kEnded) {
    const api::PodStatus& status = pod.object.status;
    out.ended = status.phase.empty() ? "Deleted" : status.phase == "Running" ? "Deleted" : status.phase;
    if (pod.preempted && out.ended == "Deleted") out.ended = "Preempted";
    if (pod.reason == kFailedCreate) out.ended = kFailedCreate;
    if (status.phase == "Failed" && !status.reason.empty()) out.ended += ": " + status.reason;
  }
  if (pod.object.status.phase == "Failed" && pod.object.status.reason == kDeadlineExceeded) {
    out.reason = kDeadlineExceeded;
    out.message = "Pod was active on the node longer than the specified deadline";
  } else if (out.ended == "Preempted") {
    out.reason = "Preempted";
    out.message = fmt::format("Preempted on {}", out.node);
  } else if (out.ended == "Deleted" && (pod.reason == "Scheduled" || pod.reason == "Bound")) {
    out.reason = "Deleted";
    out.message = fmt::format("Deleted on {}", out.node);
  } else if (pod.reason == "Scheduled")
    out.message = fmt::format("Successfully assigned {} to {}{}", pod_name(pod.object), out.node,
                              bridge::with_gpus_text(out.gpu_devices));
  else if (pod.reason == "Bound")
    out.message = "spec.nodeName names " + out.node +
                  (nodes_.contains(out.node) ? bridge::with_gpus_text({.limit = out.gpu_devices.limit})
                                             : ", which is not among the nodes");
  else if (pod.reason == kFailedCreate) out.message = "It was refused until its workload wanted no more pods";
  else if (pod.reason == kDeadlineExceeded) out.message = "Job was active longer than specified deadline";
  else if (pod.reason == kBackoffLimitExceeded) out.message = "Job has reached the specified backoff limit";
  return out;
}

Report Simulation::report() {
  Report out;
  out.end = happened_;
  out.gpus_peak = gpus_peak_.gpus;
  out.mig_instances_peak = gpus_peak_.mig_instances;
  out.repartitions = repartitions_;
  absl::flat_hash_map<const model::SchedulingSpec*, size_t> verdicts;
  for (const SimPod& pod : pods_) {
    PodReport& row = out.pods.emplace_back(report_pod(pod));
    if (pod.reason == kDeadlineExceeded || pod.reason == kBackoffLimitExceeded) row.waiting = true;
    if (pod.stage == Stage::kRefused) {
      row.waiting = true;
      RefusedPod refused = refusal_of(pod);
      row.reason = std::move(refused.reason);
      row.message = std::move(refused.message);
      row.refusal = std::move(refused.why);
    }
    if (pod.stage != Stage::kWaiting) continue;
    row.waiting = !pod.object.metadata.deleted;
    const engine::PodSlot slot = engine().state().find_pod(pod.object.metadata.uid);
    check(slot.valid(), "the engine knows every waiting pod");
    const engine::PodState& state = engine().state().pod(slot);
    engine::Explanation verdict;
    const bool shares = state.phase == engine::PodPhase::kPending;
    auto [at, fresh] = verdicts.try_emplace(shares ? state.pod.spec.get() : nullptr, out.verdicts.size());
    if (fresh || !shares) {
      at->second = out.verdicts.size();
      out.verdicts.push_back(with_trouble(engine_.explain(pod.object.metadata.uid), pod, groups_));
    }
    row.verdict = at->second;
    row.reason = out.verdicts[row.verdict].reason;
    row.message = out.verdicts[row.verdict].message;
    if (!row.waiting) row.ended = row.reason;
    if (state.phase == engine::PodPhase::kNominated) row.nominated_node = engine().state().node(state.node).node.name;
    if (pod.verdict && (row.reason == "Unschedulable" || row.reason == "Nominated")) row.message = *pod.verdict;
  }
  report_limits(out);
  out.workloads = queues_.workloads(engine().admission());
  engine::InTheWay in_the_way(engine(), now_);
  for (WorkloadReport& workload : out.workloads)
    if (workload.reason == "WaitingForPlace") workload.on_nodes = on_its_nodes(engine(), workload, in_the_way);
  out.queues = QueueController::queues(engine().admission());
  const engine::State& state = engine().state();
  for (const auto& [name, node] : nodes_) {
    std::vector<int64_t> used = state.used_without_nominees(state.find_node(name));
    used.resize(state.resources().size());
    NodeReport& row = out.nodes.emplace_back(NodeReport{name, node.capacity, node.allocatable, {}, {}});
    const engine::NodeState& known = state.node(state.find_node(name));
    row.device_mode = model::device_mode(known.node);
    row.share_limit = model::share_limit(known.node);
    row.set_aside = known.node.set_aside;
    if (!row.set_aside.empty()) row.share_limit = "";
    row.mig_problem = known.node.mig_problem;
    if (row.capacity.empty()) row.capacity = row.allocatable;
    for (uint32_t id = 0; id < state.resources().size(); ++id) {
      const std::string& resource = state.resources().name(engine::ResourceId{id});
      if (used[id] > 0 || row.allocatable.contains(resource) || row.capacity.contains(resource))
        row.use.set(resource, used[id]);
    }
  }
  return out;
}

// Whose pods a ResourceQuota refuses does not run, and when it does is not the engine's to know.
engine::Forecasts Simulation::forecast() const {
  engine::ForecastLimits limits;
  for (const auto& [workload, refused] : refused_pods_)
    if (const std::string uid = queues_.uid_of({workload, SIZE_MAX}); !uid.empty()) limits.refused.insert(uid);
  return engine().forecast(limits);
}

Report Simulation::report_with_forecasts() {
  Report out = report();
  const engine::Forecasts forecasts = foreseen_ ? foreseen_->second : forecast();
  const Duration later = foreseen_ ? foreseen_->first - out.end : Duration{0};
  const auto add = [&](auto& rows) {
    for (auto& row : rows) {
      const auto known = forecasts.find(row.uid);
      if (known == forecasts.end()) continue;
      row.forecast = known->second;
      for (std::optional<Duration>* time : {&row.forecast->p50, &row.forecast->p90})
        if (*time) *time = **time + later;
    }
  };
  add(out.pods);
  add(out.workloads);
  return out;
}

}  // namespace berth::scenario
