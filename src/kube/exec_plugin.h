// Runs exec credential plugins (client.authentication.k8s.io): a program that prints an ExecCredential.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"
#include "kube/kubeconfig.h"

namespace berth::kube {

struct ExecCredential {
  std::string token{};
  std::string client_cert_pem{}, client_key_pem{};
  std::optional<Time> expires{};  // wall
};

// Runs the plugin once and waits, `limit` at most; blocks the caller. What it writes on stderr goes to ours line by
// line, made printable; its stdin is empty. Errors: it is missing, fails, takes too long, or prints no credential of
// the asked apiVersion.
Result<ExecCredential> run_exec_plugin(const ExecPlugin& plugin, const ClusterAccess& access, Duration limit);

// Ends the plugin that runs, if one does: the process is about to end. Any thread.
void kill_exec_plugin();

// What the plugin printed (exposed for tests).
Result<ExecCredential> parse_exec_credential(const std::string& text, const std::string& api_version);

}  // namespace berth::kube
