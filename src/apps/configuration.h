// Configuration: berth.yaml (apiVersion berth.dev/v1alpha1, kind BerthConfiguration), read strictly.
//
// Every field has a default that is right for most; `berth config` prints them all. Unknown fields, wrong types and
// values out of range are errors with file, line and the way out, all of them in one run.
#pragma once

#include <string>
#include <vector>

#include "api/document.h"
#include "base/time.h"
#include "bridge/topology.h"
#include "engine/engine.h"
#include "policy/registry.h"
#include "webhook/rules.h"

namespace berth::apps {

struct LeaderElectionConfiguration {
  bool leader_elect = true;
  std::string resource_namespace = "berth-system";
  std::string resource_name = "berth";
  Duration lease_duration = Duration::seconds(15);
  Duration renew_deadline = Duration::seconds(10);
  Duration retry_period = Duration::seconds(2);
};

struct ClientConfiguration {
  std::string kubeconfig;               // empty: KUBECONFIG, ~/.kube/config, then in-cluster
  std::string context;                  // empty: the kubeconfig's current context
  int32_t bind_connections = 32;        // binds on the wire at once
  int32_t max_outstanding_binds = 512;  // binds decided and not answered; the engine waits beyond that
  Duration bind_timeout = Duration::seconds(5);
  int32_t note_connections = 32;  // events and status patches on the wire at once
};

struct HttpConfiguration {
  std::string bind_address = "127.0.0.1";
  int32_t port = 10269;       // 0: any free port
  std::string tls_cert_file;  // both needed beyond loopback
  std::string tls_private_key_file;
};

struct LoggingConfiguration {
  std::string format = "text";  // or "json"
  std::string level = "info";   // debug, info, warn, error
};

struct Configuration {
  std::vector<std::string> scheduler_names{"berth"};
  bridge::TopologyLevels topology_levels = bridge::default_topology_levels();
  policy::PolicyOptions policies;
  int64_t cycle_max_work = 200'000;           // candidates examined before the engine looks at new events
  Duration turn_max = Duration::millis(250);  // the owner thread's longest stretch; see scheduler/turn_plan.h
  engine::EngineOptions engine;
  webhook::UnrequestedGpus unrequested_gpus = webhook::UnrequestedGpus::kWarn;  // see apps/scheduler/reaching.h
  Duration volume_bind_timeout = Duration::seconds(600);  // for all claims of a pod that has a place
  ClientConfiguration client;
  LeaderElectionConfiguration leader_election;
  HttpConfiguration http;
  LoggingConfiguration logging;
};

// Reads the one document of `text`; what is wrong is appended to `problems` (then the result must not be used).
Configuration read_configuration(std::string_view text, const std::string& file, api::Problems& problems);

// The whole configuration as YAML with a comment for each field; read_configuration() of it gives it back.
std::string to_yaml(const Configuration& configuration);

// True for addresses that only this machine can reach: 127.0.0.0/8, ::1, localhost.
bool is_loopback(std::string_view address);

}  // namespace berth::apps
