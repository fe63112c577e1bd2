#include "apps/why_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <initializer_list>
#include <iostream>
#include <memory>

#include "api/names.h"
#include "apps/exit_code.h"
#include "apps/offline_run.h"
#include "base/printable.h"
#include "scenario/report_table.h"
#include "scenario/verdict_text.h"

namespace berth::apps {
namespace {

struct Flags {
  OfflineInput input;
  std::string pod;
  std::string namespace_name = "default";
};

constexpr const char* kFooter = R"(Examples:
  berth why -f cluster/ train-0
  berth why -f cluster/ -n nlp pod/train-0
  berth why -f cluster/ job/train
  kubectl get nodes,pods,priorityclasses -A -o yaml | berth why -f - default/train-0
With queues, also jobs,namespaces,workloads,clusterqueues,localqueues,cohorts,resourceflavors,admissionchecks.)";

// "train-0", "pod/train-0" and "nlp/train-0" all name the same; `prefixes` are those of its kind.
std::string full_name(const Flags& flags, std::initializer_list<std::string_view> prefixes) {
  std::string name = flags.pod;
  for (const std::string_view prefix : prefixes)
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  return name.find('/') == std::string::npos ? flags.namespace_name + "/" + name : name;
}

void say_not_found(const std::string& name, const scenario::Report& report) {
  std::vector<std::string> names;
  for (const scenario::PodReport& pod : report.pods) names.push_back(pod.namespace_name + "/" + pod.name);
  std::string_view near = api::closest(name, {names.begin(), names.end()});
  const std::string elsewhere = name.substr(name.find('/'));  // the same name in another namespace
  for (const std::string& candidate : names)
    if (near.empty() && candidate.ends_with(elsewhere)) near = candidate;
  std::cerr << "error: no pod is called " << printable(name)
            << (near.empty() ? "; `berth simulate` lists the pods" : fmt::format("; did you mean {}?", near)) << "\n";
}

// "job/train" and "workload/train" name what waits in a queue; so does a name that no pod has.
const scenario::WorkloadReport* find_workload(const Flags& flags, const scenario::Report& report) {
  const std::string name = full_name(flags, {"job/", "jobs/", "workload/", "workloads/"});
  const auto found = std::find_if(report.workloads.rbegin(), report.workloads.rend(),
                                  [&](const scenario::WorkloadReport& workload) { return workload.name == name; });
  return found == report.workloads.rend() ? nullptr : &*found;  // the latest
}

// What the API server has refused to store; of the kind that is named before the slash, if one is.
const scenario::RefusedObject* find_refused(const Flags& flags, const scenario::Report& report) {
  const std::string name = full_name(flags, {"job/", "jobs/", "pvc/", "persistentvolumeclaim/"});
  for (const scenario::RefusedObject& object : report.refused)
    if (object.namespace_name + "/" + object.name == name) return &object;
  return nullptr;
}

int why(const scenario::RefusedObject& object) {
  std::cout << printable(fmt::format("{} {}/{}", object.kind, object.namespace_name, object.name)) << ": Forbidden\n  "
            << printable(object.message, 2000) << "\n";
  return kExitOk;
}

// Of the Job or other controller of that name that has made pods: "Job nlp/train"; empty: none has.
std::string find_owner(const Flags& flags, const scenario::Report& report) {
  const std::string name = " " + full_name(flags, {"job/", "jobs/"});
  for (const scenario::PodReport& pod : report.pods)
    if (pod.owner.ends_with(name)) return pod.owner;
  return "";
}

int why(const scenario::WorkloadReport& workload, const scenario::Report& report) {
  const std::string called = fmt::format("{} {}", workload.kind, workload.name);
  std::cout << printable(called) << ": " << workload.state << (workload.reason.empty() ? "" : ", " + workload.reason)
            << "\n";
  if (!workload.message.empty()) std::cout << "  " << printable(workload.message, 2000) << "\n";
  if (!workload.evicted_for.empty()) std::cout << "  evicted: " << printable(workload.evicted_for) << "\n";
  std::cout << scenario::quota_text(workload) << scenario::owned_pods_text(called, report);
  if (workload.forecast) std::cout << "  forecast: " << scenario::forecast_text(*workload.forecast) << "\n";
  return kExitOk;
}

int why(const Flags& flags) {
  OfflineInput input = flags.input;
  input.forecasts = true;
  const auto cluster = run_offline(input);
  if (cluster == nullptr) return kExitUsage;
  const std::string name = full_name(flags, {"pod/", "pods/", "po/"});
  const scenario::Report report = cluster->report_with_forecasts();
  for (auto pod = report.pods.rbegin(); pod != report.pods.rend(); ++pod) {
    if (pod->namespace_name + "/" + pod->name != name) continue;
    std::cout << printable(name) << ": " << printable(pod->waiting || pod->ended.empty() ? pod->reason : pod->ended)
              << "\n  " << printable(pod->message, 2000) << "\n  asks for " << scenario::asks_text(*pod) << "\n";
    if (pod->forecast) std::cout << "  forecast: " << scenario::forecast_text(*pod->forecast) << "\n";
    for (const scenario::WorkloadReport& workload : report.workloads)
      if ((workload.kind == "Pod" && workload.name == name) ||
          (workload.kind == "Pod group" && pod->owner == "Pod group " + workload.name))
        why(workload, report);
    if (pod->verdict >= report.verdicts.size()) return kExitOk;
    const auto& verdict = report.verdicts[pod->verdict];
    if (!verdict.nodes.empty()) std::cout << "\nNode by node:\n";
    for (const std::string& line : scenario::verdict_lines(verdict, "  ", 8)) std::cout << line << "\n";
    return kExitOk;
  }
  if (const auto* workload = find_workload(flags, report); workload != nullptr) return why(*workload, report);
  if (const auto* refused = find_refused(flags, report); refused != nullptr) return why(*refused);
  if (const std::string owner = find_owner(flags, report); !owner.empty()) {
    std::cout << printable(owner) << "\n" << scenario::owned_pods_text(owner, report);
    return kExitOk;
  }
  say_not_found(name, report);
  return kExitFailure;
}

}  // namespace

void add_why_command(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "why", "Say why a pod waits, node by node, or where and with what it runs; or why a Job waits in its queue");
  command->footer(kFooter);
  add_files_option(*command, flags->input)->required()->allow_extra_args(false);
  command->add_option("-n,--namespace", flags->namespace_name, "The pod's namespace")->type_name("NAMESPACE");
  command->add_option("pod", flags->pod, "The pod: NAME, pod/NAME or NAMESPACE/NAME; or job/NAME")
      ->required()
      ->type_name("POD");
  add_config_option(*command, flags->input);
  command->callback([flags, &exit_code] { exit_code = why(*flags); });
}

}  // namespace berth::apps
