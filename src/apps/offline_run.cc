#include "apps/offline_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <tuple>

#include "apps/configuration_file.h"
#include "apps/files.h"
#include "apps/progress_line.h"
#include "base/printable.h"
#include "io/system_clock.h"
#include "policy/registry.h"

namespace berth::apps {
namespace {

// One "pack=5", as given to --weight.
Result<std::pair<std::string, int64_t>> parse_weight(const std::string& text) {
  const size_t equals = text.find('=');
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const char* begin = equals == std::string::npos ? end : text.data() + equals + 1;
  if (const auto parsed = std::from_chars(begin, end, value);
      begin == end || parsed.ec != std::errc{} || parsed.ptr != end)
    return fail(ErrorCode::kInvalidInput,
                fmt::format("--weight {}: write it as POLICY=NUMBER, for example pack=5", printable(text)));
  const std::string name = printable(text.substr(0, equals));
  BERTH_TRY_VOID(policy::check_weight(name, value));
  return std::pair(name, value);
}

// `options` with `weights` over those of the cluster; what is wrong with these is appended to `wrong`.
engine::PolicySet policies_from(policy::PolicyOptions options, const std::vector<std::string>& weights,
                                std::vector<std::string>& wrong) {
  for (const std::string& text : weights) {
    if (const auto weight = parse_weight(text)) options.weights[weight->first] = weight->second;
    else wrong.push_back(weight.error().message);
  }
  Result<engine::PolicySet> policies = policy::make_policy_set(options);
  if (!policies) wrong.push_back(policies.error().message);
  return policies.value_or(engine::PolicySet{});
}

std::string how_far(const scenario::Simulation& cluster) {
  return fmt::format("simulated {}: {} of {} pods placed", format_duration(cluster.now() - Time{}),
                     cluster.pods_placed(), cluster.pods_expected());
}

}  // namespace

CLI::Option* add_files_option(CLI::App& command, OfflineInput& input) {
  return command
      .add_option("-f,--filename", input.files, "Manifests: a file, a folder, or - for standard input; repeatable")
      ->type_name("FILE|DIR");
}

CLI::Option* add_config_option(CLI::App& command, OfflineInput& input) {
  return command
      .add_option(
          "--config", input.config_file,
          "BerthConfiguration file, as for the daemon; what concerns its connections, ports and work is of no account")
      ->type_name("FILE");
}

std::unique_ptr<scenario::Simulation> run_offline(const OfflineInput& input) {
  const std::optional<Configuration> configuration = load_configuration(input.config_file);
  api::Problems problems;
  std::vector<std::string> notes;
  const auto files = read_manifest_files(input.files, problems);
  scenario::PriorityClasses classes;
  const auto& levels = configuration ? configuration->topology_levels : bridge::default_topology_levels();
  auto manifests = scenario::read_manifests(files, classes, problems, notes, levels);
  std::vector<std::string> wrong_flags = input.wrong_flags;
  engine::PolicySet policies =
      policies_from(configuration ? configuration->policies : policy::PolicyOptions{}, input.weights, wrong_flags);
  if (problems.empty() && manifests.empty())
    problems.push_back(
        {files.empty() ? "" : files.front().name, 0, "", "no objects in the input; give manifests of nodes and pods"});
  std::stable_sort(problems.begin(), problems.end(),
                   [](auto& a, auto& b) { return std::tie(a.file, a.line) < std::tie(b.file, b.line); });
  for (const api::Problem& problem : problems) std::cerr << "error: " << api::to_string(problem) << "\n";
  for (const std::string& wrong : wrong_flags) std::cerr << "error: " << wrong << "\n";
  if (!problems.empty() || !wrong_flags.empty() || !configuration) return nullptr;

  engine::EngineOptions options = configuration->engine;
  options.list_feasible = input.list_feasible;
  options.set_packing.enabled |= input.set_packing;
  auto cluster = std::make_unique<scenario::Simulation>(scenario::SimulationOptions{
      .policies = std::move(policies), .engine = options, .topology_levels = levels, .forecasts = input.forecasts});
  if (const Status submitted = cluster->submit(std::move(manifests)); !submitted) {
    std::cerr << "error: " << submitted.error().message << "\n";
    return nullptr;
  }
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
  const io::SystemClock& clock = io::SystemClock::instance();
  ProgressLine progress(std::cerr, isatty(STDERR_FILENO) == 1, clock.monotonic());
  const bool done = cluster->run_to_end([&] { progress.update(clock.monotonic(), [&] { return how_far(*cluster); }); });
  if (!done)
    std::cerr << fmt::format(
        "note: stopped after {}: pods are evicted and replaced again and again, and none has ended for long; this is "
        "how things stand then\n",
        format_duration(cluster->now() - Time{}));
  return cluster;
}

}  // namespace berth::apps
