#include "kube/kubeconfig.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <unistd.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "kube/base64.h"

namespace berth::kube {
namespace {

namespace fs = std::filesystem;

// A named cluster, user or context, and the file that it comes from.
struct Entry {
  YAML::Node node;
  std::string file;

  std::string text(const char* key) const {
    const YAML::Node value = node[key];
    return value && value.IsScalar() ? value.Scalar() : std::string{};
  }
  // A path, relative to the file's folder.
  std::string path(const char* key) const {
    std::string value = text(key);
    if (value.empty() || value.starts_with('/')) return value;
    std::error_code ignored;
    return (fs::absolute(file, ignored).parent_path() / value).lexically_normal().string();
  }
  bool flag(const char* key) const { return text(key) == "true"; }

  // Errors: one of the texts is a list or a map, one of the flags neither true nor false.
  Status check(std::initializer_list<const char*> texts, std::initializer_list<const char*> flags) const {
    for (const char* key : texts)
      if (const YAML::Node value = node[key]; value && !value.IsScalar() && !value.IsNull())
        return fail(ErrorCode::kInvalidInput,
                    fmt::format("{}:{}: '{}' must be a text", file, value.Mark().line + 1, key));
    for (const char* key : flags)
      if (const YAML::Node value = node[key];
          value && !value.IsNull() && (!value.IsScalar() || (value.Scalar() != "true" && value.Scalar() != "false")))
        return fail(ErrorCode::kInvalidInput,
                    fmt::format("{}:{}: '{}' must be true or false", file, value.Mark().line + 1, key));
    return {};
  }
};

// All files merged: the first to name something wins.
struct Merged {
  std::map<std::string, Entry> clusters, users, contexts;
  std::string current_context;
  std::string files;  // for messages
};

Status add_entries(const YAML::Node& root, const char* list, const char* body, const std::string& file,
                   std::map<std::string, Entry>& into) {
  const YAML::Node entries = root[list];
  if (!entries || entries.IsNull()) return {};
  if (!entries.IsSequence())
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: '{}' is not a list; see kubectl config view", file, list));
  for (const YAML::Node& entry : entries) {
    const bool sound = entry.IsMap() && entry["name"] && entry["name"].IsScalar() &&
                       (!entry[body] || entry[body].IsMap() || entry[body].IsNull());
    if (!sound)
      return fail(ErrorCode::kInvalidInput, fmt::format("{}:{}: an entry of '{}' needs a name and a '{}'", file,
                                                        entry.Mark().line + 1, list, body));
    into.emplace(entry["name"].Scalar(), Entry{entry[body] ? entry[body] : YAML::Node(YAML::NodeType::Map), file});
  }
  return {};
}

Status add_file(const std::string& file, Merged& merged) {
  BERTH_TRY(text, read_file(file));
  YAML::Node root;
  try {
    root = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}:{}: {}; correct the YAML", file, error.mark.line + 1, error.msg));
  }
  if (root.IsNull()) return {};
  if (!root.IsMap())
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: not a kubeconfig; see kubectl config view", file));
  BERTH_TRY_VOID(add_entries(root, "clusters", "cluster", file, merged.clusters));
  BERTH_TRY_VOID(add_entries(root, "users", "user", file, merged.users));
  BERTH_TRY_VOID(add_entries(root, "contexts", "context", file, merged.contexts));
  const YAML::Node current = root["current-context"];
  if (merged.current_context.empty() && current && current.IsScalar()) merged.current_context = current.Scalar();
  return {};
}

// Text given as base64 data, which wins, or in a file.
Result<std::string> pem_of(const Entry& entry, const char* data_key, const char* file_key) {
  if (const std::string data = entry.text(data_key); !data.empty())
    return base64_decode(data).map_error(with_context(fmt::format("{}: {}", entry.file, data_key)));
  if (const std::string path = entry.path(file_key); !path.empty())
    return read_file(path).map_error(with_context(fmt::format("{}: {}", entry.file, file_key)));
  return std::string{};
}

Result<ExecPlugin> read_exec(const Entry& user) {
  const Entry exec{user.node["exec"], user.file};
  ExecPlugin out;
  out.api_version = exec.text("apiVersion");
  out.command = exec.text("command");
  out.install_hint = exec.text("installHint");
  out.provide_cluster_info = exec.flag("provideClusterInfo");
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: exec: {}", user.file, what));
  };
  if (out.command.empty()) return bad("there is no 'command'; name the credential plugin to run");
  if (out.api_version != "client.authentication.k8s.io/v1" && out.api_version != "client.authentication.k8s.io/v1beta1")
    return bad(fmt::format("apiVersion '{}' is not served; use client.authentication.k8s.io/v1", out.api_version));
  if (exec.text("interactiveMode") == "Always")
    return bad("interactiveMode Always needs a terminal; use a plugin that does not ask");
  if (out.command.find('/') != std::string::npos) out.command = exec.path("command");
  for (const YAML::Node& arg : exec.node["args"]) out.args.push_back(arg.IsScalar() ? arg.Scalar() : "");
  for (const YAML::Node& variable : exec.node["env"]) {
    const Entry each{variable, user.file};
    if (!variable.IsMap() || each.text("name").empty()) return bad("an entry of 'env' needs a name and a value");
    out.env.emplace_back(each.text("name"), each.text("value"));
  }
  return out;
}

// A name or an IP address that a certificate may be for. What is neither would be taken for the host of a URL, and
// might be dialled instead of the server.
bool is_server_name(const std::string& name) {
  in6_addr address;
  if (inet_pton(AF_INET, name.c_str(), &address) == 1 || inet_pton(AF_INET6, name.c_str(), &address) == 1) return true;
  const bool letters = std::any_of(name.begin(), name.end(), [](char c) { return std::isalpha(c) != 0; });
  return letters && std::all_of(name.begin(), name.end(), [](char c) {
           return c == '-' || c == '.' || c == '_' || (static_cast<unsigned char>(c) < 0x80 && std::isalnum(c) != 0);
         });
}

Status check_server(const Entry& cluster, const ClusterAccess& out) {
  const auto bad = [&](std::string_view what) {
    return fail(ErrorCode::kInvalidInput, fmt::format("{}: {}", cluster.file, what));
  };
  if (out.server.empty())
    return bad(fmt::format("the cluster of context '{}' has no 'server'; add its URL", out.context));
  if (!out.server.starts_with("https://") && !out.server.starts_with("http://")) {
    const bool other = out.server.find("://") != std::string::npos;
    return bad(fmt::format("server '{}' of context '{}' has {}", out.server, out.context,
                           other ? "another scheme than http or https; write https://host:port"
                                 : "no scheme; write https://" + out.server));
  }
  const size_t host = out.server.find("://") + 3;
  if (out.server.substr(host, out.server.find('/', host) - host).find('@') != std::string::npos)
    return bad(
        fmt::format("the server of context '{}' has a user in its URL, which would be seen in logs; give the "
                    "user 'username' and 'password' instead",
                    out.context));
  if (!out.tls_server_name.empty() && !is_server_name(out.tls_server_name))
    return bad(
        fmt::format("tls-server-name '{}' is no host name and no IP address; write what the server's certificate "
                    "is for",
                    out.tls_server_name));
  return {};
}

Status read_cluster(const Entry& cluster, ClusterAccess& out) {
  BERTH_TRY_VOID(
      cluster.check({"server", "tls-server-name", "proxy-url", "certificate-authority", "certificate-authority-data"},
                    {"insecure-skip-tls-verify"}));
  out.server = cluster.text("server");
  out.tls_server_name = cluster.text("tls-server-name");
  BERTH_TRY_VOID(check_server(cluster, out));
  out.insecure_skip_verify = cluster.flag("insecure-skip-tls-verify");
  out.proxy_url = cluster.text("proxy-url");
  BERTH_TRY(ca, pem_of(cluster, "certificate-authority-data", "certificate-authority"));
  out.ca_pem = ca;
  if (out.insecure_skip_verify && !out.ca_pem.empty())
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: insecure-skip-tls-verify and a certificate-authority exclude each other; remove one",
                            cluster.file));
  return {};
}

Status read_user(const Entry& user, ClusterAccess& out) {
  BERTH_TRY_VOID(user.check({"token", "tokenFile", "username", "password", "client-certificate",
                             "client-certificate-data", "client-key", "client-key-data"},
                            {}));
  for (const char* unserved : {"as", "as-uid", "as-groups", "as-user-extra", "auth-provider"})
    if (user.node[unserved])
      return fail(ErrorCode::kUnsupported,
                  fmt::format("{}: '{}' of a user is not served; use a user that needs none, or an exec plugin",
                              user.file, unserved));
  out.token = user.text("token");
  out.token_file = user.path("tokenFile");
  out.username = user.text("username");
  out.password = user.text("password");
  for (const bool key : {false, true}) {
    const char* data_key = key ? "client-key-data" : "client-certificate-data";
    if (user.text(data_key).empty()) {
      (key ? out.client_key_file : out.client_cert_file) = user.path(key ? "client-key" : "client-certificate");
      continue;
    }
    BERTH_TRY(pem, pem_of(user, data_key, ""));
    (key ? out.client_key_pem : out.client_cert_pem) = pem;
  }
  const bool has_cert = !out.client_cert_pem.empty() || !out.client_cert_file.empty();
  const bool has_key = !out.client_key_pem.empty() || !out.client_key_file.empty();
  if (has_cert != has_key)
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("{}: the user of context '{}' has only one of client-certificate and client-key; add the other",
                    user.file, out.context));
  if (user.node["exec"] && user.node["exec"].IsMap()) {
    BERTH_TRY(exec, read_exec(user));
    out.exec = exec;
  }
  return {};
}

Result<ClusterAccess> resolve(const Merged& merged, const std::string& wanted) {
  ClusterAccess out;
  out.context = wanted.empty() ? merged.current_context : wanted;
  if (out.context.empty())
    return fail(
        ErrorCode::kInvalidInput,
        fmt::format("{}: there is no current-context; set one with kubectl config use-context, or give --context",
                    merged.files));
  const auto context = merged.contexts.find(out.context);
  if (context == merged.contexts.end())
    return fail(
        ErrorCode::kNotFound,
        fmt::format("{}: there is no context '{}'; kubectl config get-contexts lists them", merged.files, out.context));
  const std::string cluster = context->second.text("cluster"), user = context->second.text("user");
  out.name_space = context->second.text("namespace");
  if (out.name_space.empty()) out.name_space = "default";
  if (!merged.clusters.contains(cluster))
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: context '{}' names cluster '{}', which does not exist; add it or correct the context",
                            context->second.file, out.context, cluster));
  BERTH_TRY_VOID(read_cluster(merged.clusters.at(cluster), out));
  if (user.empty()) return out;
  if (!merged.users.contains(user))
    return fail(ErrorCode::kInvalidInput,
                fmt::format("{}: context '{}' names user '{}', who does not exist; add it or correct the context",
                            context->second.file, out.context, user));
  BERTH_TRY_VOID(read_user(merged.users.at(user), out));
  return out;
}

std::optional<std::string> process_env(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string env(const AccessOptions& options, const std::string& name) {
  return (options.getenv ? options.getenv(name) : process_env(name)).value_or("");
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::string_view field) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();  // which fails where there is nothing
  if (!file.is_open() || file.bad() || !text)
    return fail(ErrorCode::kNotFound, fmt::format("{}{}'{}' cannot be read; correct the path or its permissions", field,
                                                  field.empty() ? "" : " ", path));
  return text.str();
}

Result<ClusterAccess> load_kubeconfig(const std::vector<std::string>& files, const std::string& context) {
  Merged merged;
  size_t found = 0;
  try {
    for (const std::string& file : files) {
      merged.files += (merged.files.empty() ? "" : ":") + file;
      if (!fs::exists(file)) continue;
      ++found;
      BERTH_TRY_VOID(add_file(file, merged));
    }
    if (found == 0)
      return fail(ErrorCode::kNotFound,
                  fmt::format("kubeconfig '{}' does not exist; give --kubeconfig or set KUBECONFIG", merged.files));
    return resolve(merged, context);
  } catch (const std::exception& error) {  // a field of a shape that yaml-cpp cannot index
    return fail(ErrorCode::kInvalidInput,
                fmt::format("kubeconfig '{}': {}; compare with kubectl config view", merged.files, error.what()));
  }
}

Result<ClusterAccess> load_in_cluster(const AccessOptions& options) {
  const std::string host = env(options, "KUBERNETES_SERVICE_HOST"), port = env(options, "KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return fail(ErrorCode::kNotFound,
                "no kubeconfig, and this is no pod of a cluster; give --kubeconfig or set KUBECONFIG");
  ClusterAccess out;
  out.context = "in-cluster";
  out.server = fmt::format("https://{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
  out.token_file = options.service_account_dir + "/token";
  if (!fs::exists(out.token_file))
    return fail(ErrorCode::kNotFound,
                fmt::format("'{}' does not exist; set automountServiceAccountToken: true on the pod", out.token_file));
  BERTH_TRY(ca, read_file(options.service_account_dir + "/ca.crt"));
  out.ca_pem = ca;
  const auto name_space = read_file(options.service_account_dir + "/namespace");
  out.name_space = name_space && !name_space->empty() ? *name_space : "default";
  return out;
}

Result<ClusterAccess> load_access(const AccessOptions& options) {
  if (!options.kubeconfig.empty()) return load_kubeconfig({options.kubeconfig}, options.context);
  if (const std::string variable = env(options, "KUBECONFIG"); !variable.empty()) {
    std::vector<std::string> files;
    std::istringstream parts(variable);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) files.push_back(part);
    return load_kubeconfig(files, options.context);
  }
  const std::string home = env(options, "HOME");
  const std::string standard = home + "/.kube/config";
  std::error_code unknown;  // as of a home that is another user's
  if (!home.empty() && fs::exists(standard, unknown)) return load_kubeconfig({standard}, options.context);
  return load_in_cluster(options);
}

}  // namespace berth::kube
