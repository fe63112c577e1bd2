#include "scenario/event_log.h"

#include <fmt/format.h>

#include <algorithm>

#include "quota/admission.h"

namespace berth::scenario {
namespace {

std::string describe(const engine::Decision& decision) {
  const std::string pod = decision.namespace_name + "/" + decision.pod_name;
  if (decision.kind == engine::DecisionKind::kBind) {
    std::string out = fmt::format("bind {} to {}", pod, decision.node_name);
    for (const engine::VolumeBinding& volume : decision.volumes)
      out += fmt::format(", claim {} to {}", volume.claim, volume.volume.empty() ? "a new volume" : volume.volume);
    return out;
  }
  if (decision.kind == engine::DecisionKind::kEvict)
    return fmt::format("evict {} from {} for {}", pod, decision.node_name, decision.preemptor_uid);
  const std::string told = fmt::format("tell {}: {}", pod, decision.message ? *decision.message : "");
  return decision.kind == engine::DecisionKind::kNominate ? told + " Nominated for " + decision.node_name : told;
}

std::vector<std::string> describe(const std::vector<quota::AdmissionDecision>& decisions,
                                  const quota::Admission& admission) {
  std::vector<std::string> out;
  for (const quota::AdmissionDecision& decision : decisions) {
    const std::string name = admission.status(decision.workload).workload.full_name();
    if (decision.kind == quota::AdmissionDecision::Kind::kEvict) {
      out.push_back(fmt::format("evict workload {}: {} {}", name, decision.reason, decision.message));
      continue;
    }
    std::string text = fmt::format("admit {} to {}", name, decision.cluster_queue);
    for (const quota::PodSetAssignment& set : decision.assignment)
      for (const auto& [resource, pick] : set.flavors)
        text += fmt::format(", {} of {}: {} from {}", set.count, set.name, resource, pick.flavor);
    out.push_back(std::move(text));
  }
  return out;
}

}  // namespace

void RecordingEngine::apply(engine::Event event) {
  engine_.apply(event);
  if (record_) log_.emplace_back(std::move(event));
}

engine::CycleResult RecordingEngine::run_cycle(Time now) {
  engine::CycleResult result = engine_.run_cycle(now);
  if (record_)
    log_.emplace_back(
        RecordedCycle{now, result.decisions, describe(result.admissions, engine_.admission()), engine_.state().hash()});
  return result;
}

std::vector<std::string> replay(const EventLog& log, const engine::PolicySet& policies,
                                const engine::EngineOptions& options) {
  std::vector<std::string> differences;
  engine::Engine fresh(policies, options);
  size_t cycles = 0;
  for (const auto& call : log) {
    if (const auto* event = std::get_if<engine::Event>(&call)) {
      fresh.apply(*event);
      continue;
    }
    const auto& recorded = std::get<RecordedCycle>(call);
    const engine::CycleResult result = fresh.run_cycle(recorded.now);
    ++cycles;
    if (result.decisions != recorded.decisions || describe(result.admissions, fresh.admission()) != recorded.admissions)
      differences.push_back(
          fmt::format("cycle {} at {} decides otherwise", cycles, format_duration(recorded.now - Time{})));
    else if (fresh.state().hash() != recorded.state_hash)
      differences.push_back(
          fmt::format("cycle {} at {} ends in another state", cycles, format_duration(recorded.now - Time{})));
  }
  return differences;
}

std::vector<std::string> decisions_of(const EventLog& log) {
  std::vector<std::string> out;
  for (const auto& call : log) {
    const auto* cycle = std::get_if<RecordedCycle>(&call);
    if (cycle == nullptr) continue;
    std::vector<std::string> told;
    for (const engine::Decision& decision : cycle->decisions)
      (decision.kind != engine::DecisionKind::kUnschedulable ? out : told)
          .push_back(fmt::format("{}: {}", format_duration(cycle->now - Time{}), describe(decision)));
    for (const std::string& admission : cycle->admissions)
      out.push_back(fmt::format("{}: {}", format_duration(cycle->now - Time{}), admission));
    std::sort(told.begin(), told.end());
    out.insert(out.end(), told.begin(), told.end());
  }
  return out;
}

}  // namespace berth::scenario
