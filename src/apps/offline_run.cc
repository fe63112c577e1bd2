#include "apps/offline_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <iostream>
#include <map>
#include <tuple>

#include "apps/configuration_file.h"
#include "apps/files.h"
#include "apps/progress_line.h"
#include "base/printable.h"
#include "io/system_clock.h"
#include "policy/registry.h"

namespace berth::apps {
namespace {

// `by_name` with "pack=5", as given to --weight, over it.
Result<engine::PolicySet> policies_from(std::map<std::string, int64_t> by_name,
                                        const std::vector<std::string>& weights) {
  for (const std::string& text : weights) {
    const size_t equals = text.find('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    const char* begin = equals == std::string::npos ? end : text.data() + equals + 1;
    if (const auto parsed = std::from_chars(begin, end, value);
        begin == end || parsed.ec != std::errc{} || parsed.ptr != end)
      return fail(ErrorCode::kInvalidInput,
                  fmt::format("--weight {}: write it as POLICY=NUMBER, for example pack=5", printable(text)));
    by_name[printable(text.substr(0, equals))] = value;
  }
  return policy::make_policy_set(by_name);
}

std::string how_far(const scenario::Simulation& cluster) {
  return fmt::format("simulated {}: {} of {} pods placed", format_duration(cluster.now() - Time{}),
                     cluster.pods_placed(), cluster.pods_expected());
}

}  // namespace

void add_config_option(CLI::App& command, OfflineInput& input) {
  command
      .add_option("--config", input.config_file,
                  "BerthConfiguration file, as for the daemon: its scores, verdictInterval and backoff count")
      ->type_name("FILE");
}

std::unique_ptr<scenario::Simulation> run_offline(const OfflineInput& input) {
  const std::optional<Configuration> configuration = load_configuration(input.config_file);
  api::Problems problems;
  std::vector<std::string> notes;
  const auto files = read_manifest_files(input.files, problems);
  scenario::PriorityClasses classes;
  auto manifests = scenario::read_manifests(files, classes, problems, notes);
  auto policies =
      policies_from(configuration ? configuration->score_weights : std::map<std::string, int64_t>{}, input.weights);
  if (problems.empty() && manifests.empty())
    problems.push_back(
        {files.empty() ? "" : files.front().name, 0, "", "no objects in the input; give manifests of nodes and pods"});
  std::stable_sort(problems.begin(), problems.end(),
                   [](auto& a, auto& b) { return std::tie(a.file, a.line) < std::tie(b.file, b.line); });
  for (const api::Problem& problem : problems) std::cerr << "error: " << api::to_string(problem) << "\n";
  if (!policies) std::cerr << "error: " << policies.error().message << "\n";
  if (!problems.empty() || !policies || !configuration) return nullptr;

  engine::EngineOptions options = configuration->engine;
  options.list_feasible = input.list_feasible;
  auto cluster = std::make_unique<scenario::Simulation>(
      scenario::SimulationOptions{.policies = *std::move(policies), .engine = options});
  if (const Status submitted = cluster->submit(std::move(manifests)); !submitted) {
    std::cerr << "error: " << submitted.error().message << "\n";
    return nullptr;
  }
  for (const std::string& note : notes) std::cerr << "note: " << note << "\n";
  const io::SystemClock& clock = io::SystemClock::instance();
  ProgressLine progress(std::cerr, isatty(STDERR_FILENO) == 1, clock.monotonic());
  cluster->run_to_end([&] { progress.update(clock.monotonic(), [&] { return how_far(*cluster); }); });
  return cluster;
}

}  // namespace berth::apps
