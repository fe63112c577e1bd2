// What one kubeconfig file says, as it stands there: the types of all entries are checked, their values are not.
//
// Unknown fields pass, as in kubectl, if they resemble none that matter; wrong types and names given twice do not,
// wherever they are. Problems go to the Reader's sink, which keeps them for the checks of what is then chosen
// (kube/kubeconfig_checks.h). None of them shows what may be a secret.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/reader.h"
#include "kube/kubeconfig.h"

namespace berth::kube {

struct ClusterEntry {
  std::string server{}, tls_server_name{}, proxy_url{};
  std::string ca_file{}, ca_data{};
  bool insecure_skip_verify = false;
};

struct ExecEntry {
  ExecPlugin plugin{};
  std::string interactive_mode{};
};

struct UserEntry {
  std::string token{}, token_file{}, username{}, password{};
  std::string cert_file{}, cert_data{}, key_file{}, key_data{};
  std::optional<ExecEntry> exec{};
};

struct ContextEntry {
  std::string cluster{}, user{}, name_space{};
};

// The entries of one list by name.
template <typename T>
struct Entries {
  struct Entry {
    T value{};
    size_t item = 0;  // in the file's list
  };
  std::map<std::string, Entry> by_name{};
  bool sound = true;  // false: some could not be read, so that one which is missed may be meant by them
};

struct KubeconfigEntries {
  std::string current_context{};
  bool current_context_sound = true;
  Entries<ClusterEntry> clusters{};
  Entries<UserEntry> users{};
  Entries<ContextEntry> contexts{};
};

KubeconfigEntries read_entries(const api::Reader& root);

}  // namespace berth::kube
