#include "apps/configuration.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/names.h"
#include "api/reader.h"
#include "apps/unrequested_gpus.h"
#include "base/printable.h"
#include "scenario/engine_options.h"
#include "scenario/policy_options.h"

namespace berth::apps {
namespace {

using api::Field, api::Reader;
using scenario::read_duration;

void read_bounded(const Reader& reader, int32_t& out, int32_t low, int32_t high) {
  int32_t value = 0;
  if (!reader.read(value)) return;
  if (value < low || value > high) return reader.problem(fmt::format("{} is outside {} to {}", value, low, high));
  out = value;
}

// A text that `check` finds nothing wrong with.
void read_word(const Reader& reader, std::string& out, std::string (*check)(std::string_view)) {
  std::string word;
  if (!reader.read(word)) return;
  if (const std::string wrong = check(word); !wrong.empty()) return reader.problem(wrong);
  out = word;
}

void read_name(const Reader& reader, std::string& out) { read_word(reader, out, &api::check_dns1123_subdomain); }

void read_choice(const Reader& reader, std::string& out, std::initializer_list<std::string_view> choices) {
  std::string value;
  if (!reader.read(value)) return;
  if (std::find(choices.begin(), choices.end(), value) == choices.end())
    return reader.problem(fmt::format("'{}' is none of: {}", value, fmt::join(choices, ", ")));
  out = value;
}

constexpr Field<LeaderElectionConfiguration> kLeaderElection[] = {
    {"leaderElect", [](const Reader& r, LeaderElectionConfiguration& c) { r.read(c.leader_elect); }},
    {"resourceNamespace", [](const Reader& r, LeaderElectionConfiguration& c) { read_name(r, c.resource_namespace); }},
    {"resourceName", [](const Reader& r, LeaderElectionConfiguration& c) { read_name(r, c.resource_name); }},
    {"leaseDuration", [](const Reader& r, LeaderElectionConfiguration& c) { read_duration(r, c.lease_duration); }},
    {"renewDeadline", [](const Reader& r, LeaderElectionConfiguration& c) { read_duration(r, c.renew_deadline); }},
    {"retryPeriod", [](const Reader& r, LeaderElectionConfiguration& c) { read_duration(r, c.retry_period); }},
};

constexpr Field<ClientConfiguration> kClient[] = {
    {"kubeconfig", [](const Reader& r, ClientConfiguration& c) { r.read(c.kubeconfig); }},
    {"context", [](const Reader& r, ClientConfiguration& c) { r.read(c.context); }},
    {"bindConnections", [](const Reader& r, ClientConfiguration& c) { read_bounded(r, c.bind_connections, 1, 1024); }},
    {"maxOutstandingBinds",
     [](const Reader& r, ClientConfiguration& c) { read_bounded(r, c.max_outstanding_binds, 1, 100'000); }},
    {"bindTimeout", [](const Reader& r, ClientConfiguration& c) { read_duration(r, c.bind_timeout); }},
    {"noteConnections", [](const Reader& r, ClientConfiguration& c) { read_bounded(r, c.note_connections, 1, 1024); }},
};

constexpr Field<HttpConfiguration> kHttp[] = {
    {"bindAddress", [](const Reader& r, HttpConfiguration& c) { r.read(c.bind_address); }},
    {"port", [](const Reader& r, HttpConfiguration& c) { read_bounded(r, c.port, 0, 65535); }},
    {"tlsCertFile", [](const Reader& r, HttpConfiguration& c) { r.read(c.tls_cert_file); }},
    {"tlsPrivateKeyFile", [](const Reader& r, HttpConfiguration& c) { r.read(c.tls_private_key_file); }},
};

constexpr Field<LoggingConfiguration> kLogging[] = {
    {"format",
     [](const Reader& r, LoggingConfiguration& c) {
       read_choice(r, c.format, {"text", "json"});
     }},
    {"level",
     [](const Reader& r, LoggingConfiguration& c) {
       read_choice(r, c.level, {"debug", "info", "warn", "error"});
     }},
};

constexpr Field<engine::EngineOptions> kBackoff[] = {
    {"initial", [](const Reader& r, engine::EngineOptions& o) { read_duration(r, o.backoff_initial); }},
    {"max", [](const Reader& r, engine::EngineOptions& o) { read_duration(r, o.backoff_max); }},
    {"rejectedMax", [](const Reader& r, engine::EngineOptions& o) { read_duration(r, o.rejection_backoff_max); }},
};

void read_scheduler_names(const Reader& reader, Configuration& out) {
  std::vector<std::string> names;
  if (!reader.read(names)) return;
  if (names.empty()) return reader.problem("must name at least one scheduler, for example berth");
  for (size_t i = 0; i < names.size(); ++i) {
    if (const std::string wrong = api::check_dns1123_subdomain(names[i]); !wrong.empty())
      return reader.problem(fmt::format("'{}' is no scheduler's name: {}", names[i], wrong));
    if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) !=
        names.begin() + static_cast<ptrdiff_t>(i))
      return reader.problem(fmt::format("'{}' is named twice", names[i]));
  }
  out.scheduler_names = std::move(names);
}

constexpr Field<bridge::TopologyLevel> kTopologyLevel[] = {
    {"name",
     [](const Reader& r, bridge::TopologyLevel& level) { read_word(r, level.name, &api::check_dns1123_label); }},
    {"key", [](const Reader& r, bridge::TopologyLevel& level) { read_word(r, level.key, &api::check_qualified_name); }},
};

void read_topology_levels(const Reader& reader, Configuration& out) {
  if (!reader.expect(api::JsonType::kArray)) return;
  bridge::TopologyLevels levels;
  for (api::Items items(reader); items.next();) {
    const Reader& item = items.value();
    bridge::TopologyLevel level;
    api::read_object(item, kTopologyLevel, level);
    if ((level.name.empty() && item.sound("name")) || (level.key.empty() && item.sound("key")))
      item.problem("a level needs a name and the key of a node label");
    for (const bridge::TopologyLevel& other : levels)
      if ((!level.name.empty() && other.name == level.name) || (!level.key.empty() && other.key == level.key))
        item.problem("another level has the same name or key; remove one");
    levels.push_back(std::move(level));
  }
  if (levels.empty()) reader.problem("must have at least one level; without the field there are four");
  out.topology_levels = std::move(levels);
}

constexpr Field<Configuration> kConfiguration[] = {
    {"apiVersion"},
    {"kind"},
    {"schedulerNames", &read_scheduler_names},
    {"topologyLevels", &read_topology_levels},
    {"scores", [](const Reader& r, Configuration& c) { scenario::read_weights(r, c.policies.weights); }},
    {"prices", [](const Reader& r, Configuration& c) { scenario::read_prices(r, c.policies); }},
    {"pools", [](const Reader& r, Configuration& c) { scenario::read_pools(r, c.policies); }},
    {"queues", [](const Reader& r, Configuration& c) { scenario::read_queues(r, c.policies); }},
    {"setPacking", [](const Reader& r, Configuration& c) { scenario::read_set_packing(r, c.engine.set_packing); }},
    {"reservations", [](const Reader& r, Configuration& c) { scenario::read_reservations(r, c.engine.reservations); }},
    {"waitForPodsReady",
     [](const Reader& r, Configuration& c) { scenario::read_pods_ready(r, c.engine.admission.pods_ready); }},
    {"fairSharing", [](const Reader& r, Configuration& c) { scenario::read_fair_sharing(r, c.engine.admission.fair); }},
    {"admissionFairSharing",
     [](const Reader& r, Configuration& c) { scenario::read_usage(r, c.engine.admission.usage); }},
    {"cycleMaxWork",
     [](const Reader& r, Configuration& c) {
       int32_t work = 0;
       if (read_bounded(r, work, 1, INT32_MAX); work > 0) c.cycle_max_work = work;
     }},
    {"turnMax", [](const Reader& r, Configuration& c) { read_duration(r, c.turn_max); }},
    {"verdictInterval", [](const Reader& r, Configuration& c) { read_duration(r, c.engine.report_interval); }},
    {"volumeBindTimeout", [](const Reader& r, Configuration& c) { read_duration(r, c.volume_bind_timeout); }},
    {"unrequestedGpus", [](const Reader& r, Configuration& c) { read_unrequested_gpus(r, c.unrequested_gpus); }},
    {"backoff", [](const Reader& r, Configuration& c) { api::read_object(r, kBackoff, c.engine); }},
    {"clientConnection", [](const Reader& r, Configuration& c) { api::read_object(r, kClient, c.client); }},
    {"leaderElection",
     [](const Reader& r, Configuration& c) { api::read_object(r, kLeaderElection, c.leader_election); }},
    {"http", [](const Reader& r, Configuration& c) { api::read_object(r, kHttp, c.http); }},
    {"logging", [](const Reader& r, Configuration& c) { api::read_object(r, kLogging, c.logging); }},
};

// What no single field can tell; each where the fields that it looks at could be read.
void check_together(const Reader& root, const Configuration& c) {
  scenario::check_policies(root, c.policies);
  const LeaderElectionConfiguration& le = c.leader_election;
  const bool lease = root.sound({"leaderElection", "leaseDuration"});
  const bool deadline = root.sound({"leaderElection", "renewDeadline"});
  const bool retry = root.sound({"leaderElection", "retryPeriod"}), address = root.sound({"http", "bindAddress"});
  if (lease && le.lease_duration.nanos % Duration::seconds(1).nanos != 0)
    root.problem_at("leaderElection", "leaseDuration must be whole seconds, as the Lease object has them");
  if (lease && deadline && le.renew_deadline >= le.lease_duration)
    root.problem_at("leaderElection",
                    "renewDeadline must be shorter than leaseDuration, or two leaders could act at once");
  if (deadline && retry && le.retry_period * 2 > le.renew_deadline)
    root.problem_at("leaderElection", "retryPeriod must be at most half of renewDeadline");
  if (deadline && root.sound({"clientConnection", "bindTimeout"}) && c.client.bind_timeout >= le.renew_deadline)
    root.problem_at("clientConnection",
                    "bindTimeout must be shorter than leaderElection.renewDeadline: a bind has to end "
                    "before the lease can");
  if (root.sound({"backoff", "initial"}) && root.sound({"backoff", "max"}) &&
      c.engine.backoff_initial > c.engine.backoff_max)
    root.problem_at("backoff", "initial must not be longer than max");
  if (!root.sound({"http", "tlsCertFile"}) || !root.sound({"http", "tlsPrivateKeyFile"})) return;
  const bool tls = !c.http.tls_cert_file.empty() && !c.http.tls_private_key_file.empty();
  if (c.http.tls_cert_file.empty() != c.http.tls_private_key_file.empty())
    root.problem_at("http", "tlsCertFile and tlsPrivateKeyFile go together");
  if (address && !is_loopback(c.http.bind_address) && !tls)
    root.problem_at("http", fmt::format("bindAddress {} is not a loopback address: set tlsCertFile and "
                                        "tlsPrivateKeyFile, or bind to 127.0.0.1",
                                        c.http.bind_address));
}

}  // namespace

bool is_loopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Configuration read_configuration(std::string_view text, const std::string& file, api::Problems& problems) {
  Configuration out;
  const std::vector<api::Document> documents = api::read_plain_documents(text, file, problems);
  if (documents.size() > 1) problems.push_back({file, 0, "", "one BerthConfiguration document is expected"});
  if (documents.empty() && problems.empty())
    problems.push_back({file, 0, "", "the file is empty; `berth config` prints a complete example"});
  if (documents.empty()) return out;
  const api::Document& document = documents.front();
  if (document.api_version != "berth.dev/v1alpha1" || document.kind != "BerthConfiguration") {
    problems.push_back({file, 1, "",
                        fmt::format("expected apiVersion berth.dev/v1alpha1 and kind BerthConfiguration, found '{}' "
                                    "and '{}'; `berth config` prints a complete example",
                                    document.api_version, document.kind)});
    return out;
  }
  api::ProblemSink sink{.strict = true, .document = &document, .problems = {}};
  const Status status = api::read_json(document.json, sink, [&](const Reader& root) {
    api::read_object(root, kConfiguration, out);
    check_together(root, out);
  });
  if (!status) problems.push_back({file, 0, "", status.error().message});
  problems.insert(problems.end(), sink.problems.begin(), sink.problems.end());
  return out;
}

namespace {

// As YAML reads it; what printable() writes for a control character is an escape of YAML too.
std::string quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return "\"" + printable(out, std::string::npos) + "\"";
}

std::string scores_yaml(const Configuration& configuration) {
  std::string out;
  for (const engine::PolicyInfo* policy : policy::all_policies()) {
    if (!policy->scores()) continue;
    const auto at = configuration.policies.weights.find(std::string(policy->name));
    const int64_t weight = at == configuration.policies.weights.end() ? policy->default_weight : at->second;
    out += fmt::format("  {}: {}  # {}\n", policy->name, weight, policy->summary);
  }
  return out;
}

std::string levels_yaml(const Configuration& configuration) {
  std::string out;
  for (const bridge::TopologyLevel& level : configuration.topology_levels)
    out += fmt::format("  - {{name: {}, key: {}}}\n", quoted(level.name), quoted(level.key));
  return out;
}

std::string prices_yaml(const Configuration& configuration) {
  const auto& prices = configuration.policies.gpu_prices;
  std::string out = fmt::format(
      "{}  # dollars for a GPU-hour, by nvidia.com/gpu.product: {{NVIDIA-L4: 0.80}}; other "
      "models count as the dearest\n",
      prices.empty() ? " {}" : "");
  for (const auto& [model, micros] : prices)
    out += fmt::format("  {}: {}\n", quoted(model), model::format_micros(micros));
  return out;
}

// The inside of an object.
std::string weights_yaml(const policy::Weights& weights) {
  std::string out;
  for (const auto& [name, weight] : weights) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", name, weight);
  return out;
}

std::string pools_yaml(const Configuration& configuration) {
  const auto& pools = configuration.policies.pools;
  std::string out = fmt::format(
      "{}  # weights of their own for nodes: {{name: batch, nodeSelector: {{pool: batch}}, "
      "scores: {{power: 5}}}}; the first that selects a node counts\n",
      pools.empty() ? " []" : "");
  for (const policy::PoolOptions& pool : pools) {
    std::string labels;
    for (const auto& [key, value] : pool.node_selector)
      labels += fmt::format("{}{}: {}", labels.empty() ? "" : ", ", quoted(key), quoted(value));
    out += fmt::format("  - {{name: {}, nodeSelector: {{{}}}, scores: {{{}}}}}\n", quoted(pool.name), labels,
                       weights_yaml(pool.weights));
  }
  return out;
}

std::string queues_yaml(const Configuration& configuration) {
  const auto& queues = configuration.policies.queues;
  std::string out = fmt::format(
      "{}  # weights of their own for pods with the label kueue.x-k8s.io/queue-name: {{name: training, scores: "
      "{{pack: 5}}}}; or name: namespace/training\n",
      queues.empty() ? " []" : "");
  for (const policy::QueueOptions& queue : queues)
    out += fmt::format("  - {{name: {}, scores: {{{}}}}}\n", quoted(queue.name), weights_yaml(queue.weights));
  return out;
}

std::string admission_yaml(const quota::AdmissionOptions& options) {
  const quota::WaitForPodsReady& ready = options.pods_ready;
  std::string weights;
  for (const auto& [resource, weight] : options.usage.resource_weights)
    weights += fmt::format("{}{}: {}", weights.empty() ? "" : ", ", quoted(resource),
                           static_cast<double>(weight) / model::kFairWeightUnit);
  return fmt::format(
      R"(waitForPodsReady:  # an admitted workload of a queue leaves again if its pods are not all ready in time
  enabled: {}
  timeout: {}  # since it was admitted
  recoveryTimeout: {}  # since they were ready last; null: as timeout; 0s: it may take for ever
  blockAdmission: {}  # nobody is admitted while the pods of another are not ready
  requeuingStrategy:
    timestamp: {}  # Eviction or Creation: by which it ranks in its queue again
    backoffLimitCount: {}  # so often it is queued again, then it is deactivated; null: always
    backoffBaseSeconds: {}  # before it is queued again; doubles each time
    backoffMaxSeconds: {}
fairSharing:  # of ClusterQueues and Cohorts by their weights: who has the smaller share comes first, and takes from who has more
  enable: {}
  preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]  # one after the other; or one of them
admissionFairSharing:  # of LocalQueues whose ClusterQueue has the admissionScope UsageBasedAdmissionFairSharing
  usageHalfLifeTime: {}  # what was used counts half after so long; 0s: not at all
  usageSamplingInterval: {}  # a workload counts as if it had run so long when it is admitted; while it runs usage is written as often
  resourceWeights: {{{}}}  # of a GPU, a core, a byte; those that are not named weigh 1
)",
      ready.enabled, format_duration(ready.timeout),
      ready.recovery_timeout ? format_duration(*ready.recovery_timeout) : "null", ready.block_admission,
      ready.timestamp == quota::RequeuingTimestamp::kEviction ? "Eviction" : "Creation",
      ready.backoff_limit ? std::to_string(*ready.backoff_limit) : "null",
      ready.backoff_base.nanos / Duration::seconds(1).nanos, ready.backoff_max.nanos / Duration::seconds(1).nanos,
      options.fair.has_value(), format_duration(options.usage.half_life),
      format_duration(options.usage.sampling_interval), weights);
}

}  // namespace

std::string to_yaml(const Configuration& c) {
  std::string names;
  for (const std::string& name : c.scheduler_names) names += (names.empty() ? "" : ", ") + quoted(name);
  std::string out = fmt::format(
      R"(apiVersion: berth.dev/v1alpha1
kind: BerthConfiguration
schedulerNames: [{}]  # pods with one of these in spec.schedulerName are Berth's to schedule
topologyLevels:  # of berth.dev/topology, the widest first: a name and the node label whose values are its domains
{}scores:  # weights, 0 to 10000; 0 turns a rule off
{}prices:{}pools:{}queues:{}setPacking:
  enabled: {}  # waiting pods of one priority are given places together, so that most GPUs are allocated
  headBound: {}  # a pod that has waited so long takes its turn before the others of its priority
  maxWork: {}  # candidates examined for one set, at most; and no more than half of what the cycle has left
reservations:
  enabled: {}  # what becomes free is kept for a pod or workload that has waited long and fits nowhere
  after: {}  # that it has waited
  perQueue: {}  # pods or workloads of one queue, or pods of none, for which room is kept at a time
{}cycleMaxWork: {}  # candidates examined in one cycle before new events are looked at, at most
turnMax: {}  # longest stretch without a look at new events: cycles examine fewer candidates where they would be slower
verdictInterval: {}  # a waiting pod hears of a changed verdict at most this often
volumeBindTimeout: {}  # for the claims of a pod that has a place; then it gives the place back and tries again
unrequestedGpus: {}  # a pod with NVIDIA_VISIBLE_DEVICES that requests no GPU: ignore, warn (an event) or deny (it waits)
backoff:
  initial: {}  # after a bind that failed; doubles with each in a row
  max: {}
  rejectedMax: {}  # after the kubelet refused pods of the same owner
)",
      names, levels_yaml(c), scores_yaml(c), prices_yaml(c), pools_yaml(c), queues_yaml(c),
      c.engine.set_packing.enabled, format_duration(c.engine.set_packing.head_bound), c.engine.set_packing.work_max,
      c.engine.reservations.enabled, format_duration(c.engine.reservations.after), c.engine.reservations.per_queue,
      admission_yaml(c.engine.admission), c.cycle_max_work, format_duration(c.turn_max),
      format_duration(c.engine.report_interval), format_duration(c.volume_bind_timeout), to_string(c.unrequested_gpus),
      format_duration(c.engine.backoff_initial), format_duration(c.engine.backoff_max),
      format_duration(c.engine.rejection_backoff_max));
  out += fmt::format(R"(clientConnection:
  kubeconfig: {}  # empty: KUBECONFIG, ~/.kube/config, else the pod's service account
  context: {}  # empty: the current context
  bindConnections: {}  # binds on the wire at once
  maxOutstandingBinds: {}  # binds decided and not yet answered
  bindTimeout: {}  # shorter than renewDeadline
  noteConnections: {}  # events and status patches on the wire at once
)",
                     quoted(c.client.kubeconfig), quoted(c.client.context), c.client.bind_connections,
                     c.client.max_outstanding_binds, format_duration(c.client.bind_timeout), c.client.note_connections);
  out += fmt::format(R"(leaderElection:
  leaderElect: {}
  resourceNamespace: {}
  resourceName: {}
  leaseDuration: {}
  renewDeadline: {}
  retryPeriod: {}
http:  # /metrics, /healthz, /readyz
  bindAddress: {}  # beyond loopback TLS is required, and /metrics asks for a token
  port: {}  # 0: any free one
  tlsCertFile: {}
  tlsPrivateKeyFile: {}
logging:
  format: {}  # text or json
  level: {}  # debug, info, warn or error
)",
                     c.leader_election.leader_elect, quoted(c.leader_election.resource_namespace),
                     quoted(c.leader_election.resource_name), format_duration(c.leader_election.lease_duration),
                     format_duration(c.leader_election.renew_deadline), format_duration(c.leader_election.retry_period),
                     quoted(c.http.bind_address), c.http.port, quoted(c.http.tls_cert_file),
                     quoted(c.http.tls_private_key_file), c.logging.format, c.logging.level);
  return out;
}

}  // namespace berth::apps
