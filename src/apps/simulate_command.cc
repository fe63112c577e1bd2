#include "apps/simulate_command.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <memory>

#include "apps/choices.h"
#include "apps/exit_code.h"
#include "apps/offline_run.h"

namespace berth::apps {
namespace {

using scenario::ReportFormat;

struct Flags {
  OfflineInput input;
  std::string format = "table";
};

const std::map<std::string, ReportFormat, std::less<>> kFormats = {{"table", ReportFormat::kTable},
                                                                   {"wide", ReportFormat::kWide},
                                                                   {"json", ReportFormat::kJson},
                                                                   {"yaml", ReportFormat::kYaml}};

constexpr const char* kFooter = R"(Examples:
  berth simulate -f examples/demo              a folder of manifests
  berth simulate -f nodes.yaml -f job.yaml     would this job fit?
  kubectl get nodes,pods,pvc,pv,storageclasses -A -o yaml | berth simulate -f - -f job.yaml
  berth simulate -f cluster/ --config berth.yaml   with the daemon's policy weights
  berth simulate -f cluster/ -o wide           with each node's own reason
  berth simulate -f cluster/ -o json | jq '.pods[] | select(.node == null)'

Annotations for simulation only, on pods and on what makes pods:
  berth.dev/simulated-arrival: 10m    submitted so long after the start
  berth.dev/simulated-runtime: 90m    what it really takes

Exit codes: 0 all was placed, 3 something does not fit, 2 bad input, 1 anything else.)";

int simulate(const Flags& flags) {
  OfflineInput input = flags.input;
  input.list_feasible = flags.format == "json" || flags.format == "yaml";
  const auto cluster = run_offline(input);
  if (cluster == nullptr) return kExitUsage;
  const scenario::Report report = cluster->report();
  std::cout << scenario::render(report, kFormats.at(flags.format)) << std::flush;
  if (!std::cout) {
    std::cerr << "error: cannot write the report\n";
    return kExitFailure;
  }
  return report.waiting() == 0 ? kExitOk : kExitWillNotFit;
}

}  // namespace

void add_simulate_command(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("simulate", "Schedule manifests offline, in virtual time");
  command->footer(kFooter);
  command
      ->add_option("-f,--filename", flags->input.files,
                   "Manifests: a file, a folder, or - for standard input; repeatable")
      ->required()
      ->type_name("FILE|DIR");
  command->add_option("-o,--output", flags->format, "How to print the result")
      ->check(one_of({"table", "wide", "json", "yaml"}))
      ->type_name("table|wide|json|yaml");
  command->add_option("--weight", flags->input.weights, "Weight of a scoring policy, for example pack=5; repeatable")
      ->type_name("POLICY=NUMBER");
  add_config_option(*command, flags->input);
  command->callback([flags, &exit_code] { exit_code = simulate(*flags); });
}

}  // namespace berth::apps
