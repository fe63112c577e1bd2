// The webhook as a server: /convert, /mutate and /validate over HTTPS, with health and metrics beside them.
//
// It knows nothing but the request and its options, and with `access` what apps/webhook/watch.h has seen of the
// cluster. Replicas share nothing, so any number may run. Bodies are bounded in size (3 MiB) and depth, connections in
// number and in how slow they may be (io/http_server.h).
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/kubeconfig.h"
#include "webhook/rules.h"

namespace berth::apps {

struct WebhookOptions {
  std::string address = "0.0.0.0";
  int port = 9443;
  std::string cert_file, key_file;  // PEM; read again when they change
  webhook::Rules rules;
  std::optional<kube::ClusterAccess> access;  // given: the cluster is watched
  // After SIGTERM it says that it is not ready and serves on for so long, until nobody is sent to it any more.
  Duration shutdown_delay = Duration::seconds(5);
};

// Serves until SIGTERM or SIGINT; then lets what has begun be answered. Errors: no such address, port in use, files
// that are no certificate and its key.
Status run_webhook(const WebhookOptions& options);

}  // namespace berth::apps
