#include "apps/scheduler_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "api/names.h"
#include "apps/choices.h"
#include "apps/configuration_file.h"
#include "apps/scheduler/daemon.h"
#include "apps/scheduler/log.h"
#include "base/printable.h"
#include "kube/kubeconfig.h"

namespace berth::apps {
namespace {

constexpr size_t kErrorBytesMax = 4000;

struct Flags {
  std::string config_file, kubeconfig, context, log_format, log_level;
  std::vector<std::string> scheduler_names;
  std::optional<bool> leader_elect;
  std::optional<int> port;
};

// Nothing after writing to standard error all that is wrong.
std::optional<kube::ClusterAccess> load_access(const ClientConfiguration& client) {
  api::Problems problems;
  auto access = kube::load_access({.kubeconfig = client.kubeconfig, .context = client.context, .getenv = {}}, problems);
  for (const api::Problem& problem : problems) std::fprintf(stderr, "error: %s\n", api::to_string(problem).c_str());
  return access;
}

int run_scheduler(const Flags& flags) {
  std::optional<Configuration> configuration = load_configuration(flags.config_file);
  if (!configuration) return 2;
  if (!flags.kubeconfig.empty()) configuration->client.kubeconfig = flags.kubeconfig;
  if (!flags.context.empty()) configuration->client.context = flags.context;
  if (!flags.scheduler_names.empty()) configuration->scheduler_names = flags.scheduler_names;
  if (flags.leader_elect) configuration->leader_election.leader_elect = *flags.leader_elect;
  if (flags.port) configuration->http.port = *flags.port;
  if (!flags.log_format.empty()) configuration->logging.format = flags.log_format;
  if (!flags.log_level.empty()) configuration->logging.level = flags.log_level;
  for (const std::string& name : configuration->scheduler_names) {
    const std::string wrong = api::check_dns1123_subdomain(name);
    if (wrong.empty()) continue;
    std::fprintf(stderr, "error: --scheduler-name '%s': %s\n", printable(name).c_str(), wrong.c_str());
    return 2;
  }
  const auto access = load_access(configuration->client);
  if (!access) return 2;
  set_up_log(configuration->logging.format, configuration->logging.level);
  const Status status = run_daemon(*configuration, *access);
  if (status) return 0;
  std::fprintf(stderr, "error: %s\n", printable(status.error().message, kErrorBytesMax).c_str());
  return status.error().code == ErrorCode::kInvalidInput || status.error().code == ErrorCode::kNotFound ? 2 : 1;
}

}  // namespace

void add_scheduler_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("scheduler", "Schedule pods on a Kubernetes API server");
  command->footer(
      "Example:\n  berth scheduler --kubeconfig ~/.kube/config --scheduler-name berth\n\n"
      "Without --kubeconfig: KUBECONFIG, ~/.kube/config, then the pod's service account. What it needs to be allowed\n"
      "to do is in deploy/rbac.yaml. SIGTERM drains binds and gives the lease back.");
  command->add_option("--config", flags->config_file,
                      "BerthConfiguration file; `berth config` prints one with all defaults");
  command->add_option("--kubeconfig", flags->kubeconfig, "Kubeconfig file");
  command->add_option("--context", flags->context, "Context of the kubeconfig");
  command->add_option("--scheduler-name", flags->scheduler_names,
                      "spec.schedulerName of the pods to schedule; may be repeated");
  command->add_option("--leader-elect", flags->leader_elect, "Take part in leader election (true or false)")
      ->check(one_of({"true", "false"}));
  command->add_option("--port", flags->port, "Port of /metrics, /healthz and /readyz; 0 for any free one")
      ->check(CLI::Range(0, 65535));
  command->add_option("--log-format", flags->log_format, "text or json")->check(one_of({"text", "json"}));
  command->add_option("--log-level", flags->log_level, "debug, info, warn or error")
      ->check(one_of({"debug", "info", "warn", "error"}));
  command->callback([flags, &exit_code] { exit_code = run_scheduler(*flags); });
}

void add_config_command(CLI::App& app, int& exit_code) {
  const auto file = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("config", "Print the configuration with every default, or check a file");
  command->add_option("--config", *file, "Check this file and print what it comes to");
  command->callback([file, &exit_code] {
    const std::optional<Configuration> configuration = load_configuration(*file);
    if (configuration) std::fputs(to_yaml(*configuration).c_str(), stdout);
    exit_code = configuration ? 0 : 2;
  });
}

}  // namespace berth::apps
