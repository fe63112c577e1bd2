// Kubeconfig: where the API server is and who we are, from kubeconfig files or from inside a pod.
//
// Follows kubectl: --kubeconfig, else the files of KUBECONFIG merged (the first to set a value wins), else
// ~/.kube/config, else the service account of the pod. Paths in a file are relative to that file's folder. Files are
// read as manifests are (api/document.h): with their lines, and without keys given twice. Types are checked everywhere
// and values in the chosen context. Unknown fields pass; what would change whom we are and is not served
// (impersonation, auth-provider) is an error, never ignored.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/document.h"
#include "base/result.h"

namespace berth::kube {

// An exec credential plugin (client.authentication.k8s.io/v1 or v1beta1).
struct ExecPlugin {
  std::string api_version{};
  std::string command{};  // resolved against the kubeconfig's folder when it holds a '/'
  std::vector<std::string> args{};
  std::vector<std::pair<std::string, std::string>> env{};
  std::string install_hint{};
  bool provide_cluster_info = false;
};

// One context, resolved: everything needed to reach one cluster as one user. Certificates given as data are decoded
// here; those given as files stay files, since they may be renewed.
struct ClusterAccess {
  std::string context{};     // "in-cluster" for the pod's own
  std::string server{};      // "https://host:6443"
  std::string name_space{};  // of the context, or of the pod; "default" without one
  std::string ca_pem{};      // empty: the system's bundle
  bool insecure_skip_verify = false;
  std::string tls_server_name{};
  std::string proxy_url{};  // of the cluster, or from the environment; empty: none

  std::string client_cert_pem{}, client_key_pem{};    // data, or
  std::string client_cert_file{}, client_key_file{};  // files
  std::string token{}, token_file{};                  // the file wins, as in client-go
  std::string username{}, password{};
  std::optional<ExecPlugin> exec{};
};

// The process's surroundings, as values, so that tests can set them.
struct AccessOptions {
  std::string kubeconfig{};                                                     // --kubeconfig; must exist if given
  std::string context{};                                                        // --context; empty: current-context
  std::function<std::optional<std::string>(const std::string& name)> getenv{};  // empty: the process's environment
  std::string service_account_dir = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// The whole file, which may be empty. `field` names it in errors: "tokenFile '/a' cannot be read".
Result<std::string> read_file(const std::string& path, std::string_view field = "");

// Resolves by the rules above; where there is no proxy-url, a proxy that the environment asks for (kube/proxy.h) takes
// its place. What is wrong is appended to `problems`, all of it at once, and there is no value then.
std::optional<ClusterAccess> load_access(const AccessOptions& options, api::Problems& problems);
// These files only, merged in order; those that do not exist are skipped, as kubectl does with KUBECONFIG.
std::optional<ClusterAccess> load_kubeconfig(const std::vector<std::string>& files, const std::string& context,
                                             api::Problems& problems);
// KUBERNETES_SERVICE_HOST and _PORT with the mounted token, CA and namespace; a problem outside a pod.
std::optional<ClusterAccess> load_in_cluster(const AccessOptions& options, api::Problems& problems);

}  // namespace berth::kube
