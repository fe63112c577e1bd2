#include "kube/kubeconfig_entries.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::kube {
namespace {

using api::Field;
using api::JsonType;
using api::Reader;

void read_secret(const Reader& reader, std::string& out) {
  if (reader.type() == JsonType::kString) reader.read(out);
  else if (!reader.is_null()) reader.problem("expected a string; put it in quotes");
}

void read_secrets(const Reader& reader, std::vector<std::string>& out) {
  if (reader.type() == JsonType::kArray) api::read_list(reader, out, &read_secret);
  else reader.problem("expected a list; put '- ' before each item");
}

// An object by its table. What stands there instead may be a secret that lost its key. Unknown fields pass, as with
// kubectl, unless they are a slip of the pen for one that matters.
template <typename T, size_t N>
void read_body(const Reader& reader, const Field<T> (&fields)[N], T& out) {
  if (reader.type() != JsonType::kObject)
    return reader.problem("expected an object; its fields are written 'field: value'");
  api::read_object(reader, fields, out);
  const std::vector<std::string_view> known = api::names_of(fields);
  for (api::Members members(reader); members.next();)
    if (std::find(known.begin(), known.end(), members.key()) == known.end()) members.value().misspelt_field(known);
}

constexpr Field<ClusterEntry> kCluster[] = {
    {"server", [](const Reader& r, ClusterEntry& c) { r.read(c.server); }},
    {"tls-server-name", [](const Reader& r, ClusterEntry& c) { r.read(c.tls_server_name); }},
    {"insecure-skip-tls-verify", [](const Reader& r, ClusterEntry& c) { r.read(c.insecure_skip_verify); }},
    {"certificate-authority", [](const Reader& r, ClusterEntry& c) { r.read(c.ca_file); }},
    {"certificate-authority-data", [](const Reader& r, ClusterEntry& c) { r.read(c.ca_data); }},
    {"proxy-url", [](const Reader& r, ClusterEntry& c) { r.read(c.proxy_url); }},
    {"disable-compression"},
    {"extensions"},
};

using Variable = std::pair<std::string, std::string>;
constexpr Field<Variable> kVariable[] = {
    {"name", [](const Reader& r, Variable& v) { r.read(v.first); }},
    {"value", [](const Reader& r, Variable& v) { read_secret(r, v.second); }},
};
void read_variable(const Reader& reader, Variable& out) { read_body(reader, kVariable, out); }

constexpr Field<ExecEntry> kExec[] = {
    {"command", [](const Reader& r, ExecEntry& e) { r.read(e.plugin.command); }},
    {"args", [](const Reader& r, ExecEntry& e) { read_secrets(r, e.plugin.args); }},
    {"env", [](const Reader& r, ExecEntry& e) { api::read_list(r, e.plugin.env, &read_variable); }},
    {"apiVersion", [](const Reader& r, ExecEntry& e) { r.read(e.plugin.api_version); }},
    {"installHint", [](const Reader& r, ExecEntry& e) { r.read(e.plugin.install_hint); }},
    {"provideClusterInfo", [](const Reader& r, ExecEntry& e) { r.read(e.plugin.provide_cluster_info); }},
    {"interactiveMode", [](const Reader& r, ExecEntry& e) { r.read(e.interactive_mode); }},
};

constexpr Field<UserEntry> kUser[] = {
    {"client-certificate", [](const Reader& r, UserEntry& u) { r.read(u.cert_file); }},
    {"client-certificate-data", [](const Reader& r, UserEntry& u) { read_secret(r, u.cert_data); }},
    {"client-key", [](const Reader& r, UserEntry& u) { r.read(u.key_file); }},
    {"client-key-data", [](const Reader& r, UserEntry& u) { read_secret(r, u.key_data); }},
    {"token", [](const Reader& r, UserEntry& u) { read_secret(r, u.token); }},
    {"tokenFile", [](const Reader& r, UserEntry& u) { r.read(u.token_file); }},
    {"username", [](const Reader& r, UserEntry& u) { r.read(u.username); }},
    {"password", [](const Reader& r, UserEntry& u) { read_secret(r, u.password); }},
    {"exec", [](const Reader& r, UserEntry& u) { read_body(r, kExec, u.exec.emplace()); }},
    {"as"},
    {"as-uid"},
    {"as-groups"},
    {"as-user-extra"},
    {"auth-provider"},
    {"extensions"},
};

constexpr Field<ContextEntry> kContext[] = {
    {"cluster", [](const Reader& r, ContextEntry& c) { r.read(c.cluster); }},
    {"user", [](const Reader& r, ContextEntry& c) { r.read(c.user); }},
    {"namespace", [](const Reader& r, ContextEntry& c) { r.read(c.name_space); }},
    {"extensions"},
};

// A list of {name: …, <body>: {…}}.
template <typename T, size_t N>
void read_named(const Reader& list, std::string_view body, const Field<T> (&fields)[N], Entries<T>& out) {
  if (!list.expect(JsonType::kArray)) return;
  for (api::Items items(list); items.next();) {
    const Reader& entry = items.value();
    if (entry.type() != JsonType::kObject) {
      entry.problem(fmt::format("expected an object with a 'name' and a '{}'", body));
      continue;
    }
    std::string name;
    T value;
    for (api::Members members(entry); members.next();) {
      if (members.value().is_null()) continue;
      if (members.key() == "name") members.value().read(name);
      if (members.key() == body) read_body(members.value(), fields, value);
    }
    if (!entry.sound("name")) continue;
    if (!api::has_member(entry, "name")) entry.problem_at("name", "is missing; contexts need it to find this entry");
    else if (!out.by_name.try_emplace(name, typename Entries<T>::Entry{std::move(value), items.index()}).second)
      entry.problem_at("name", fmt::format("'{}' is given twice in this list; remove or rename one", name));
  }
}

// A field that, where it is given at all, has only one value in a kubeconfig.
void read_fixed(const Reader& reader, std::string_view only) {
  std::string text;
  if (reader.read(text) && !text.empty() && text != only)
    reader.problem(fmt::format("this is '{}', and that of a kubeconfig is {}; give another file", text, only));
}

constexpr Field<KubeconfigEntries> kKubeconfig[] = {
    {"apiVersion", [](const Reader& r, KubeconfigEntries&) { read_fixed(r, "v1"); }},
    {"kind", [](const Reader& r, KubeconfigEntries&) { read_fixed(r, "Config"); }},
    {"clusters", [](const Reader& r, KubeconfigEntries& e) { read_named(r, "cluster", kCluster, e.clusters); }},
    {"users", [](const Reader& r, KubeconfigEntries& e) { read_named(r, "user", kUser, e.users); }},
    {"contexts", [](const Reader& r, KubeconfigEntries& e) { read_named(r, "context", kContext, e.contexts); }},
    {"current-context", [](const Reader& r, KubeconfigEntries& e) { r.read(e.current_context); }},
    {"preferences"},
    {"extensions"},
};

}  // namespace

KubeconfigEntries read_entries(const Reader& root) {
  KubeconfigEntries out;
  read_body(root, kKubeconfig, out);
  out.clusters.sound = root.sound("clusters");
  out.users.sound = root.sound("users");
  out.contexts.sound = root.sound("contexts");
  out.current_context_sound = root.sound("apiVersion") && root.sound("kind") && root.sound("current-context");
  return out;
}

}  // namespace berth::kube
