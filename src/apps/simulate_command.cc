#include "apps/simulate_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "apps/choices.h"
#include "apps/exit_code.h"
#include "apps/offline_run.h"
#include "apps/trace_run.h"
#include "base/printable.h"
#include "model/quantity.h"

namespace berth::apps {
namespace {

using scenario::ReportFormat;

// Of each pod's feasible nodes so many are named: a report of all of them would grow with pods times nodes.
constexpr size_t kFeasibleNamesMax = 100;

struct Flags {
  OfflineInput input;
  TraceFlags trace;
  std::string format = "table";
};

const std::map<std::string, ReportFormat, std::less<>> kFormats = {{"table", ReportFormat::kTable},
                                                                   {"wide", ReportFormat::kWide},
                                                                   {"json", ReportFormat::kJson},
                                                                   {"yaml", ReportFormat::kYaml}};

constexpr const char* kFooter = R"(Examples:
  berth simulate -f examples/demo              a folder of manifests
  berth simulate -f nodes.yaml -f job.yaml     would this job fit?
  kubectl get nodes,pods,priorityclasses,runtimeclasses,resourcequotas,limitranges,pdb,pvc,pv,storageclasses,csinodes -A -o yaml | berth simulate -f - -f job.yaml
  berth simulate -f cluster/ --config berth.yaml   with the daemon's policy weights
  berth simulate -f cluster/ -o wide           with each node's own reason
  berth simulate -f cluster/ -o json | jq '.pods[] | select(.node == null)'
  berth simulate --trace openb --nodes nodes.csv --pods pods.csv --policy best-fit
                                               fill a fleet of GPUs until it overflows; see docs/traces.md
  berth simulate --trace openb --nodes nodes.csv --pods pods.csv --batch all --svg curves.svg
                                               the same with all pods planned together, and drawn

Annotations for simulation only, on pods and on what makes pods:
  berth.dev/simulated-arrival: 10m    submitted so long after the start
  berth.dev/simulated-runtime: 90m    what it really takes
  berth.dev/simulated-repartition: 1m on nodes with dynamic MIG: how long cutting their GPUs anew takes

Exit codes: 0 all was placed, 3 something does not fit, 2 bad input, 1 anything else.)";

// What pods that are bound by their manifests do that no scheduler would: told once, and no reason to stop.
void note_what_was_bound(const scenario::Report& report) {
  const auto is_there = [&](const std::string& name) {
    return std::any_of(report.nodes.begin(), report.nodes.end(), [&](const auto& node) { return node.name == name; });
  };
  for (const scenario::PodReport& pod : report.pods)
    if (pod.reason == "Bound" && pod.ended.empty() && !is_there(pod.node))
      std::cerr << "note: Pod " << printable(pod.namespace_name + "/" + pod.name) << ": spec.nodeName names "
                << printable(pod.node) << ", which is not among the nodes\n";
  for (const scenario::NodeReport& node : report.nodes)
    for (const auto& [resource, used] : node.use)
      if (used > node.allocatable.get(resource))
        std::cerr << "note: Node " << printable(node.name) << ": its pods ask for "
                  << model::format_resource(resource, used) << " " << printable(resource) << ", and it has "
                  << model::format_resource(resource, node.allocatable.get(resource)) << "\n";
}

int simulate(const Flags& flags) {
  OfflineInput input = flags.input;
  if (const std::string wrong = wrong_choice(flags.format, {"table", "wide", "json", "yaml"}); !wrong.empty())
    input.wrong_flags.push_back("--output: " + printable(wrong) + "; see `berth simulate --help`");
  const bool for_programs = flags.format == "json" || flags.format == "yaml";
  if (for_programs) input.list_feasible = kFeasibleNamesMax;
  input.forecasts = for_programs;
  const auto cluster = run_offline(input);
  if (cluster == nullptr) return kExitUsage;
  const scenario::Report report = for_programs ? cluster->report_with_forecasts() : cluster->report();
  note_what_was_bound(report);
  std::cout << scenario::render(report, kFormats.at(flags.format)) << std::flush;
  if (!std::cout) {
    std::cerr << "error: cannot write the report\n";
    return kExitFailure;
  }
  return report.waiting() + report.workloads_waiting() + report.refused.size() == 0 ? kExitOk : kExitWillNotFit;
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("simulate", "Schedule manifests offline, in virtual time");
  command->footer(kFooter);
  CLI::Option* const files = add_files_option(*command, flags->input);
  command->add_option("-o,--output", flags->format, "How to print the result")->type_name("table|wide|json|yaml");
  CLI::Option* const weights = command->add_option("--weight", flags->input.weights,
                                                   "Weight of a scoring policy, for example pack=5; repeatable");
  weights->type_name("POLICY=NUMBER");
  CLI::Option* const config = add_config_option(*command, flags->input);
  CLI::Option* const set_packing =
      command->add_flag("--set-packing", flags->input.set_packing,
                        "Give waiting pods of one priority places together, so that most GPUs are allocated");
  CLI::Option* const trace = add_trace_options(*command, flags->trace);
  for (CLI::Option* const other : {files, weights, config, set_packing}) other->excludes(trace);
  command->callback([flags, files, trace, &exit_code] {
    if (trace->count() > 0) {
      exit_code = run_trace(flags->trace, flags->format);
      return;
    }
    if (files->count() == 0) throw CLI::RequiredError("--filename");
    exit_code = simulate(*flags);
  });
}

}  // namespace berth::apps
