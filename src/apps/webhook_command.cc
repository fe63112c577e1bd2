#include "apps/webhook_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/names.h"
#include "apps/choices.h"
#include "apps/exit_code.h"
#include "apps/scheduler/log.h"
#include "apps/unrequested_gpus.h"
#include "apps/webhook/server.h"
#include "base/printable.h"
#include "kube/kubeconfig.h"
#include "model/quantity.h"

namespace berth::apps {
namespace {

struct Flags {
  WebhookOptions options;
  std::string unrequested_gpus = "warn", log_format = "text", log_level = "info";
  std::vector<std::string> node_max;
  std::string kubeconfig, context;
  bool watch = false;
  int shutdown_delay_s = 5;
};

constexpr const char* kFooter =
    R"(Serves over HTTPS: /convert (kueue.x-k8s.io v1beta1 and v1beta2), /mutate, /validate, /healthz, /readyz, /metrics.
Without --watch it asks the API server nothing and needs no rights. With it, it looks at LocalQueues, ClusterQueues,
ResourceQuotas and LimitRanges (KUBECONFIG, ~/.kube/config, then the pod's service account, unless --kubeconfig is
given), refuses queues that do not exist, and warns of those that lead nowhere and of Jobs whose pods would be refused. deploy/webhook.yaml runs it.

Example:
  berth webhook --cert-file /tls/tls.crt --key-file /tls/tls.key --node-max nvidia.com/gpu=8)";

int usage_error(const std::string& what) {
  std::fprintf(stderr, "error: %s\n", printable(what).c_str());
  return kExitUsage;
}

// Reads RESOURCE=COUNT into the rules; what is wrong with it otherwise.
std::string read_node_max(const std::string& text, webhook::Rules& rules) {
  const size_t equals = text.find('=');
  const std::string resource = text.substr(0, equals);
  if (equals == std::string::npos) return fmt::format("--node-max '{}': write RESOURCE=COUNT, nvidia.com/gpu=8", text);
  if (!model::is_gpu_resource(resource))
    return fmt::format("--node-max '{}': '{}' is no GPU resource that Berth knows", text, resource);
  const Result<int64_t> count = model::parse_resource(resource, text.substr(equals + 1));
  if (!count) return fmt::format("--node-max '{}': {}", text, count.error().message);
  if (!rules.node_max.emplace(resource, *count).second)
    return fmt::format("--node-max '{}': {} is given twice", text, resource);
  return "";
}

// Reads how the cluster is reached; false after writing what is wrong.
bool read_access(Flags& flags) {
  api::Problems problems;
  flags.options.access =
      kube::load_access({.kubeconfig = flags.kubeconfig, .context = flags.context, .getenv = {}}, problems);
  for (const api::Problem& problem : problems) std::fprintf(stderr, "error: %s\n", api::to_string(problem).c_str());
  return flags.options.access.has_value();
}

int run(Flags& flags) {
  webhook::Rules& rules = flags.options.rules;
  for (const std::string& text : flags.node_max)
    if (const std::string wrong = read_node_max(text, rules); !wrong.empty()) return usage_error(wrong);
  if (const std::string wrong = api::check_dns1123_subdomain(rules.scheduler_name); !wrong.empty())
    return usage_error(fmt::format("--scheduler-name '{}': {}", rules.scheduler_name, wrong));
  rules.unrequested_gpus = unrequested_gpus_named(flags.unrequested_gpus);
  flags.options.shutdown_delay = Duration::seconds(flags.shutdown_delay_s);
  if (!flags.watch && !(flags.kubeconfig.empty() && flags.context.empty()))
    return usage_error("--kubeconfig and --context are for --watch");
  if (flags.watch && !read_access(flags)) return kExitUsage;
  set_up_log(flags.log_format, flags.log_level);
  const Status status = run_webhook(flags.options);
  if (status) return kExitOk;
  std::fprintf(stderr, "error: %s\n", printable(status.error().message).c_str());
  return status.error().code == ErrorCode::kInvalidInput ? kExitUsage : kExitFailure;
}

}  // namespace

void add_webhook_command(CLI::App& app, int& exit_code) {
  const auto flags = std::make_shared<Flags>();
  WebhookOptions& options = flags->options;
  CLI::App* command =
      app.add_subcommand("webhook", "Convert, complete and check objects when the API server asks about them");
  command->footer(kFooter);
  command->add_option("--cert-file", options.cert_file, "Certificate of the server, PEM; read again when it changes")
      ->required();
  command->add_option("--key-file", options.key_file, "Its key, PEM")->required();
  command->add_option("--address", options.address, "Address to listen on")->capture_default_str();
  command->add_option("--port", options.port, "Port to listen on; 0 for any free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("--scheduler-name", options.rules.scheduler_name,
                   "schedulerName for Jobs and pods that name a queue and no other scheduler")
      ->capture_default_str();
  command
      ->add_option(
          "--unrequested-gpus", flags->unrequested_gpus,
          "What becomes of pods that reach for GPUs (NVIDIA_VISIBLE_DEVICES) and request none: ignore, warn or "
          "deny")
      ->check(one_of({"ignore", "warn", "deny"}))
      ->capture_default_str();
  command
      ->add_option(
          "--node-max", flags->node_max,
          "The most of a GPU resource that any node has, where the pool of nodes is fixed; a pod that asks for "
          "more is refused. May be repeated")
      ->type_name("RESOURCE=COUNT");
  command->add_flag("--pod-finalizer", options.rules.pod_finalizer,
                    "Give pods that name a queue the finalizer kueue.x-k8s.io/managed, which a controller takes off");
  command->add_flag(
      "--watch", flags->watch,
      "Watch LocalQueues, ClusterQueues, ResourceQuotas and LimitRanges, for which it needs the rights to");
  command->add_option("--kubeconfig", flags->kubeconfig, "Kubeconfig file, for --watch");
  command->add_option("--context", flags->context, "Context of the kubeconfig");
  command
      ->add_option("--shutdown-delay", flags->shutdown_delay_s,
                   "Seconds to serve on after SIGTERM, while /readyz says no")
      ->check(CLI::Range(0, 300))
      ->capture_default_str();
  command->add_option("--log-format", flags->log_format, "text or json")->check(one_of({"text", "json"}));
  command->add_option("--log-level", flags->log_level, "debug, info, warn or error")
      ->check(one_of({"debug", "info", "warn", "error"}));
  command->callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace berth::apps
