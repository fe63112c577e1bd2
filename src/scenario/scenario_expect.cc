#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "bridge/gpus.h"
#include "limits/amounts.h"
#include "model/quantity.h"
#include "scenario/report_table.h"
#include "scenario/scenario_player.h"
#include "scenario/verdict_text.h"

namespace berth::scenario {
namespace {

using Kind = LinedValue::Kind;

std::string short_name(const PodReport& pod) {
  return pod.namespace_name == "default" ? pod.name : pod.namespace_name + "/" + pod.name;
}

std::string list_text(const std::vector<std::string>& names) { return fmt::format("[{}]", fmt::join(names, ", ")); }

std::vector<std::string> texts(const LinedValue& list) {
  std::vector<std::string> out;
  for (const auto& [key, item] : list.members) out.push_back(item.text);
  return out;
}

}  // namespace

void ScenarioPlayer::expect(const LinedValue& what) {
  const Report report = cluster_.report();
  std::vector<std::string> running, pending;
  for (const PodReport& pod : report.pods) {
    if (pod.waiting) pending.push_back(short_name(pod));
    else if (pod.ended.empty() && !pod.node.empty()) running.push_back(short_name(pod));
  }
  constexpr std::string_view kListed[] = {"running",       "pending", "bound",   "evicted",
                                          "repartitioned", "notes",   "problems"};
  for (const auto& [key, value] : what.members) {
    if (value.kind == Kind::kList && std::ranges::find(kListed, key) == std::ranges::end(kListed))
      mismatch(value, fmt::format("{}: expected a mapping of names, but it is a list", key));
    else if (key == "running") expect_count(value, running, "running");
    else if (key == "pending") expect_count(value, pending, "pending");
    else if (key == "placements") expect_placements(value, report);
    else if (key == "devices") expect_devices(value, report);
    else if (key == "reasons") expect_texts(value, true);
    else if (key == "states") expect_texts(value, false);
    else if (key == "details") expect_details(value);
    else if (key == "ended") expect_ended(value, report);
    else if (key == "bound") expect_decided(value, key, engine::DecisionKind::kBind);
    else if (key == "evicted") expect_decided(value, key, engine::DecisionKind::kEvict);
    else if (key == "nominated") expect_nominated(value);
    else if (key == "repartitioned") expect_repartitioned(value);
    else if (key == "problems") expect_problems(value);
    else if (key == "notes") expect_notes(value);
    else if (key == "workloads") expect_workloads(value, report, false);
    else if (key == "waits_for") expect_workloads(value, report, true);
    else if (key == "queues") expect_queues(value, report);
    else if (key == "refused") expect_refused(value, report);
    else if (key == "forecasts") expect_forecasts(value);
    else if (key == "quota_use") expect_quota_use(value, report);
    else mismatch(value, fmt::format("no expectation is called '{}'", key));
  }
  heard_ = cluster_.log().size();
  cuts_heard_ = cluster_.repartitions().size();
}

const PodReport* ScenarioPlayer::find(const Report& report, const std::string& name) const {
  for (auto pod = report.pods.rbegin(); pod != report.pods.rend(); ++pod)
    if (name == short_name(*pod) || name == pod->namespace_name + "/" + pod->name) return &*pod;
  return nullptr;
}

void ScenarioPlayer::compare(const LinedValue& expected, std::string_view actual, std::string_view of) {
  if (expected.text == actual) return;
  mismatches_.push_back({expected.line, fmt::format("{}: expected {}, but it is {}", of, expected.text, actual),
                         expected.text, std::string(actual)});
}

// A number, or the names in the order of submission.
void ScenarioPlayer::expect_count(const LinedValue& value, const std::vector<std::string>& actual,
                                  std::string_view what) {
  if (value.kind != Kind::kList) {
    if (value.text != std::to_string(actual.size()))
      mismatches_.push_back(
          {value.line,
           fmt::format("{}: expected {}, but it is {}: {}", what, value.text, actual.size(), list_text(actual)),
           value.text, std::to_string(actual.size())});
    return;
  }
  if (texts(value) != actual)
    mismatches_.push_back(
        {value.line, fmt::format("{}: expected {}, but it is {}", what, list_text(texts(value)), list_text(actual)),
         list_text(texts(value)), list_text(actual)});
}

// {pod: node}, null for a pod that waits.
void ScenarioPlayer::expect_placements(const LinedValue& value, const Report& report) {
  for (const auto& [name, node] : value.members) {
    const PodReport* pod = find(report, name);
    if (pod == nullptr) mismatch(node, fmt::format("placements: there is no pod {}", name));
    else compare(node, pod->node.empty() ? "null" : pod->node, "placement of " + name);
  }
}

// {pod: "0,1 (NVLink)"}, none for a pod whose devices are not known.
void ScenarioPlayer::expect_devices(const LinedValue& value, const Report& report) {
  for (const auto& [name, devices] : value.members) {
    const PodReport* pod = find(report, name);
    if (pod == nullptr) mismatch(devices, fmt::format("devices: there is no pod {}", name));
    else
      compare(devices, pod->gpu_devices.numbers.empty() ? "none" : bridge::told_devices(pod->gpu_devices),
              "devices of " + name);
  }
}

// {pod: message} as of now, or {pod: state}: "Unschedulable", "SchedulingGated", "Backoff", "Unknown", "Bound", ….
void ScenarioPlayer::expect_texts(const LinedValue& value, bool message) {
  for (const auto& [name, text] : value.members) {
    const auto explanation = cluster_.explain(name);
    if (!explanation || !explanation->known) mismatch(text, fmt::format("the engine knows no pod {}", name));
    else
      compare(text, message ? explanation->message : explanation->reason,
              (message ? "reason of " : "state of ") + name);
  }
}

// {pod: {node: "text: detail; text: detail"}}: Berth's own verdict.
void ScenarioPlayer::expect_details(const LinedValue& value) {
  for (const auto& [name, nodes] : value.members) {
    const auto explanation = cluster_.explain(name);
    for (const auto& [node, text] : nodes.members) {
      std::string actual = "not examined";
      if (explanation)
        for (const engine::NodeExplanation& candidate : explanation->nodes) {
          if (candidate.node != node) continue;
          std::vector<std::string> parts;
          for (const engine::NodeReason& reason : candidate.reasons)
            parts.push_back(reason.detail.empty() ? reason.text : reason.text + ": " + reason.detail);
          actual = parts.empty() ? "fits" : fmt::format("{}", fmt::join(parts, "; "));
        }
      compare(text, actual, fmt::format("verdict on {} for {}", node, name));
    }
  }
}

// {pod: "Succeeded at 1h"}.
void ScenarioPlayer::expect_ended(const LinedValue& value, const Report& report) {
  for (const auto& [name, text] : value.members) {
    const PodReport* pod = find(report, name);
    if (pod == nullptr) {
      mismatch(text, fmt::format("ended: there is no pod {}", name));
      continue;
    }
    std::string actual = pod->ended.empty() ? "not yet" : pod->ended;
    if (pod->finished) actual += " at " + format_duration(*pod->finished - Time{});
    compare(text, actual, "end of " + name);
  }
}

// {pod: node}, null for a pod that is nominated for none.
void ScenarioPlayer::expect_nominated(const LinedValue& value) {
  const engine::State& state = cluster_.engine().state();
  std::map<std::string, std::string> nominated;
  for (const engine::PodSlot slot : state.pods()) {
    const engine::PodState& pod = state.pod(slot);
    if (pod.phase == engine::PodPhase::kNominated)
      nominated[pod.pod.namespace_name == "default" ? pod.pod.name : pod.pod.full_name()] =
          state.node(pod.node).node.name;
  }
  for (const auto& [name, node] : value.members)
    compare(node, nominated.contains(name) ? nominated[name] : "null", "nomination of " + name);
}

// The pods that were bound, or told to leave, since the last expectation, in that order.
void ScenarioPlayer::expect_decided(const LinedValue& value, std::string_view what, engine::DecisionKind kind) {
  std::vector<std::string> actual;
  for (size_t i = heard_; i < cluster_.log().size(); ++i) {
    const auto* cycle = std::get_if<RecordedCycle>(&cluster_.log()[i]);
    if (cycle == nullptr) continue;
    for (const engine::Decision& decision : cycle->decisions)
      if (decision.kind == kind)
        actual.push_back(decision.namespace_name == "default" ? decision.pod_name
                                                              : decision.namespace_name + "/" + decision.pod_name);
  }
  expect_count(value, actual, what);
}

// "node: resources" of the nodes that began to be cut anew since the last expectation, or how many did.
void ScenarioPlayer::expect_repartitioned(const LinedValue& value) {
  std::vector<std::string> actual;
  for (size_t i = cuts_heard_; i < cluster_.repartitions().size(); ++i) {
    const RepartitionReport& cut = cluster_.repartitions()[i];
    std::vector<std::string> parts;
    for (const auto& [resource, amount] : cut.resources) parts.push_back(fmt::format("{} {}", amount, resource));
    actual.push_back(fmt::format("{}: {}", cut.node, fmt::join(parts, ", ")));
  }
  expect_count(value, actual, "repartitioned");
}

// {workload: "Admitted with h100", "Pending: WaitingForQuota", "Finished"}, or why it waits; by the name of what was
// submitted.
void ScenarioPlayer::expect_workloads(const LinedValue& value, const Report& report, bool why) {
  for (const LinedMember& member : value.members) {
    const std::string& name = member.name;
    const LinedValue& text = member.value;
    const auto is_it = [&](const WorkloadReport& workload) {
      return workload.name == name || workload.name == "default/" + name;
    };
    const auto found = std::find_if(report.workloads.rbegin(), report.workloads.rend(), is_it);  // the latest
    if (found == report.workloads.rend()) {
      mismatch(text, fmt::format("workloads: there is no workload {}", name));
      continue;
    }
    std::string actual = found->state;
    if (found->state == "Pending") actual += ": " + found->reason;
    if (found->state == "Admitted" || found->state == "QuotaReserved") actual += " with " + flavors_text(*found);
    compare(text, why ? found->message : actual, (why ? "what it waits for: " : "workload ") + name);
  }
}

// {cluster queue: "4 of 8 nvidia.com/gpu in h100, 2 borrowed"}: what it uses of its quota; several by "; ".
void ScenarioPlayer::expect_queues(const LinedValue& value, const Report& report) {
  for (const LinedMember& member : value.members) {
    const std::string& name = member.name;
    const LinedValue& text = member.value;
    const auto found = std::find_if(report.queues.begin(), report.queues.end(),
                                    [&](const QueueReport& queue) { return queue.name == name; });
    if (found == report.queues.end()) {
      mismatch(text, fmt::format("queues: there is no ClusterQueue {}", name));
      continue;
    }
    std::vector<std::string> parts;
    for (const QueueReport::Held& held : found->held) {
      const auto shown = [&](int64_t amount) { return model::format_quota(held.resource, amount); };
      std::string part =
          fmt::format("{} of {} {} in {}", shown(held.used), shown(held.nominal), held.resource, held.flavor);
      if (held.borrowed > 0) part += fmt::format(", {} borrowed", shown(held.borrowed));
      parts.push_back(std::move(part));
    }
    compare(text, fmt::format("{}", fmt::join(parts, "; ")), "use of " + name);
  }
}

// {job: message}: objects other than pods that the API server does not store.
void ScenarioPlayer::expect_refused(const LinedValue& value, const Report& report) {
  for (const LinedMember& member : value.members) {
    const auto found = std::find_if(report.refused.begin(), report.refused.end(),
                                    [&](const RefusedObject& object) { return object.name == member.name; });
    compare(member.value, found == report.refused.end() ? "" : found->message, "refusal of " + member.name);
  }
}

// {pod or job: "starts in 20m, at the latest in 1h; 2 of 2 in its way declare a runtime"}; none for one that does not
// wait.
void ScenarioPlayer::expect_forecasts(const LinedValue& value) {
  const Report report = cluster_.report_with_forecasts();
  for (const LinedMember& member : value.members) {
    std::optional<engine::Forecast> forecast;
    if (const PodReport* pod = find(report, member.name); pod != nullptr) forecast = pod->forecast;
    for (const WorkloadReport& workload : report.workloads)
      if (workload.name == member.name || workload.name == "default/" + member.name) forecast = workload.forecast;
    compare(member.value, forecast ? forecast_text(*forecast) : "none", "forecast of " + member.name);
  }
}

// {ResourceQuota: "pods=1 of 4, requests.nvidia.com/gpu=2 of 8"}.
void ScenarioPlayer::expect_quota_use(const LinedValue& value, const Report& report) {
  for (const LinedMember& member : value.members) {
    std::vector<std::string> parts;
    for (const limits::QuotaUse& quota : report.quotas)
      if (quota.name == member.name)
        for (const auto& [resource, used] : quota.used)
          parts.push_back(fmt::format("{}={} of {}", resource, limits::amount_text(resource, used),
                                      limits::amount_text(resource, quota.hard.get(resource))));
    compare(member.value, fmt::format("{}", fmt::join(parts, ", ")), "use of " + member.name);
  }
}

// Texts, each within the problem of the same position that the last manifests had.
void ScenarioPlayer::expect_notes(const LinedValue& value) {
  for (const std::string& expected : texts(value)) {
    const auto has = [&](const std::string& note) { return note.find(expected) != std::string::npos; };
    if (std::none_of(notes_.begin(), notes_.end(), has)) mismatch(value, "no note says: " + expected);
  }
}

void ScenarioPlayer::expect_problems(const LinedValue& value) {
  problems_line_ = 0;
  std::vector<std::string> actual;
  for (const api::Problem& problem : problems_) actual.push_back(problem.path + ": " + problem.message);
  const auto expected = texts(value);
  for (size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i >= expected.size()) mismatch(value, "problems: one more: " + actual[i]);
    else if (i >= actual.size()) mismatch(value, "problems: missing: " + expected[i]);
    else if (actual[i].find(expected[i]) == std::string::npos) compare(value.members[i].value, actual[i], "problem");
  }
}

}  // namespace berth::scenario
