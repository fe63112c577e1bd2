#include "kube/kubeconfig_checks.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/base64.h"
#include "io/url.h"

namespace berth::kube {
namespace {

namespace fs = std::filesystem;
using api::Reader;

// A path of a kubeconfig, which is relative to the kubeconfig's folder.
std::string absolute_path(const std::string& file, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  std::error_code ignored;
  return (fs::absolute(file, ignored).parent_path() / path).lexically_normal().string();
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

// What is wrong with the server's URL and the way out; empty where nothing is.
std::string check_server(const std::string& server) {
  if (server.empty()) return "is missing; add the URL of the API server, https://host:port";
  const bool secret = server.find('@') != std::string::npos;
  if (server.find("://") == std::string::npos)
    return fmt::format("'{}' has no scheme; write https://{}", secret ? "…" : server, secret ? "host:port" : server);
  const Result<io::Url> url = io::parse_url(server);
  if (!url) return url.error().message;
  if (url->scheme != "https" && url->scheme != "http")
    return fmt::format("'{}' has another scheme than http or https; write https://host:port", url->origin());
  if (url->has_user)
    return "has a user in its URL, which would be seen in logs; give the user 'username' and 'password' instead";
  return "";
}

// The text given as base64, which wins, or that of a file.
std::string read_ca(const Reader& body, const ClusterEntry& cluster, const std::string& file) {
  const bool is_data = !cluster.ca_data.empty();
  const char* field = is_data ? "certificate-authority-data" : "certificate-authority";
  if (!is_data && cluster.ca_file.empty()) return "";
  const Result<std::string> pem =
      is_data ? base64_decode(cluster.ca_data) : read_file(absolute_path(file, cluster.ca_file));
  if (!pem) body.problem_at(field, pem.error().message);
  return pem.value_or("");
}

// One half of a client certificate: its data decoded, or the path of its file.
struct CertificatePart {
  std::string pem{}, file{};
  bool given() const { return !pem.empty() || !file.empty(); }
};

CertificatePart certificate_part(const Reader& body, const std::string& file, std::string_view field,
                                 const std::string& path, const std::string& data) {
  if (data.empty()) return {.file = absolute_path(file, path)};
  const Result<std::string> pem = base64_decode(data);
  if (!pem) body.problem_at(fmt::format("{}-data", field), pem.error().message);
  return {.pem = pem.value_or("")};
}

void use_certificate(const Reader& body, const UserEntry& user, const std::string& file, ClusterAccess& out) {
  const CertificatePart cert = certificate_part(body, file, "client-certificate", user.cert_file, user.cert_data);
  const CertificatePart key = certificate_part(body, file, "client-key", user.key_file, user.key_data);
  const bool sound = body.sound("client-certificate") && body.sound("client-certificate-data") &&
                     body.sound("client-key") && body.sound("client-key-data");
  if (sound && cert.given() != key.given())
    body.problem_at(cert.given() ? "client-key" : "client-certificate",
                    fmt::format("is missing, and {} is given; add it, or {}-data",
                                cert.given() ? "client-certificate" : "client-key",
                                cert.given() ? "client-key" : "client-certificate"));
  out.client_cert_pem = cert.pem;
  out.client_cert_file = cert.file;
  out.client_key_pem = key.pem;
  out.client_key_file = key.file;
}

void check_exec(const Reader& exec, const ExecEntry& entry) {
  const ExecPlugin& plugin = entry.plugin;
  if (plugin.command.empty() && exec.sound("command"))
    exec.problem_at("command", "is missing; name the credential plugin to run");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1" && exec.sound("apiVersion"))
    exec.problem_at("apiVersion", fmt::format("apiVersion '{}' is not served; use client.authentication.k8s.io/v1",
                                              plugin.api_version));
  if (entry.interactive_mode == "Always")
    exec.problem_at("interactiveMode", "Always needs a terminal; use a plugin that does not ask");
  else if (!entry.interactive_mode.empty() && entry.interactive_mode != "IfAvailable" &&
           entry.interactive_mode != "Never")
    exec.problem_at("interactiveMode",
                    fmt::format("there is no '{}'; write Never or IfAvailable", entry.interactive_mode));
  if (!exec.sound("env")) return;
  for (size_t i = 0; i < plugin.env.size(); ++i)
    if (plugin.env[i].first.empty()) exec.problem_at("env", i, "an entry of 'env' needs a name and a value");
}

}  // namespace

void use_cluster(const Reader& body, const ClusterEntry& cluster, const std::string& file, ClusterAccess& out) {
  const auto check = [&](std::string_view field, const std::string& wrong) {
    if (!wrong.empty() && body.sound(field)) body.problem_at(field, wrong);
  };
  check("server", check_server(cluster.server));
  if (!cluster.tls_server_name.empty() && !is_server_name(cluster.tls_server_name))
    check("tls-server-name", fmt::format("'{}' is no host name and no IP address; write what the server's certificate "
                                         "is for",
                                         cluster.tls_server_name));
  if (!cluster.proxy_url.empty())
    if (const auto url = io::parse_proxy_url(cluster.proxy_url); !url) check("proxy-url", url.error().message);
  if (cluster.insecure_skip_verify && (!cluster.ca_file.empty() || !cluster.ca_data.empty()))
    check("insecure-skip-tls-verify", "this and a certificate-authority exclude each other; remove one");
  out.server = cluster.server;
  out.tls_server_name = cluster.tls_server_name;
  out.insecure_skip_verify = cluster.insecure_skip_verify;
  out.proxy_url = cluster.proxy_url;
  out.ca_pem = read_ca(body, cluster, file);
}

void use_user(const Reader& body, const UserEntry& user, const std::string& file, ClusterAccess& out) {
  for (const char* unserved : {"as", "as-uid", "as-groups", "as-user-extra", "auth-provider"})
    if (api::has_member(body, unserved))
      body.problem_at(unserved, "is not served; use a user that needs none, or an exec plugin");
  out.token = user.token;
  out.token_file = absolute_path(file, user.token_file);
  out.username = user.username;
  out.password = user.password;
  use_certificate(body, user, file, out);
  if (!user.exec) return;
  for (api::Members members(body); members.next();)
    if (members.key() == "exec") check_exec(members.value(), *user.exec);
  out.exec = user.exec->plugin;
  if (out.exec->command.find('/') != std::string::npos) out.exec->command = absolute_path(file, out.exec->command);
}

}  // namespace berth::kube
