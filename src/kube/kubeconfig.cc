#include "kube/kubeconfig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <set>
#include <sstream>

#include "api/reader.h"
#include "kube/kubeconfig_checks.h"
#include "kube/kubeconfig_entries.h"
#include "kube/proxy.h"

namespace berth::kube {
namespace {

namespace fs = std::filesystem;
using api::Problems;
using api::Reader;

// True also of what cannot be looked at: reading it will say why.
bool may_exist(const std::string& file) {
  std::error_code trouble;
  return fs::exists(file, trouble) || trouble;
}

// Calls `use` with this member of an object that has it.
void with_member(const Reader& object, std::string_view key, const std::function<void(const Reader&)>& use) {
  for (api::Members members(object); members.next();)
    if (members.key() == key && !members.value().is_null()) use(members.value());
}

// One file that is not empty. The sink points to the document, so a File stays where it is.
struct File {
  std::string path;
  api::Document document;
  api::ProblemSink sink;
  KubeconfigEntries entries;
};

// All files merged: the first to name something wins.
class Kubeconfig {
 public:
  Kubeconfig(const std::vector<std::string>& files, Problems& problems) : problems_(problems) {
    std::set<std::string> seen;
    for (const std::string& file : files) {
      if (!seen.insert(file).second) continue;
      names_ += (names_.empty() ? "" : ":") + file;
      if (may_exist(file)) add(file), ++found_;
    }
    if (found_ == 0)
      say(fmt::format("kubeconfig '{}' does not exist; give --kubeconfig or set KUBECONFIG", names_), "");
  }

  // What the context comes to, of use only if there are no problems; these are all told then.
  ClusterAccess resolve(const std::string& wanted) {
    ClusterAccess out;
    if (found_ > 0) choose(wanted, out);
    for (File& file : files_) {
      std::stable_sort(file.sink.problems.begin(), file.sink.problems.end(),
                       [](const api::Problem& a, const api::Problem& b) { return a.line < b.line; });
      problems_.insert(problems_.end(), file.sink.problems.begin(), file.sink.problems.end());
    }
    return out;
  }

 private:
  template <typename T>
  using List = Entries<T> KubeconfigEntries::*;
  template <typename T>
  struct Found {
    File* file = nullptr;  // null: no file has it
    const typename Entries<T>::Entry* entry = nullptr;
  };

  void say(std::string message, std::string file) { problems_.push_back({std::move(file), 0, "", std::move(message)}); }

  void add(const std::string& path) {
    const Result<std::string> text = read_file(path);
    if (!text) {
      whole_ = false;
      return say(text.error().message, "");
    }
    const size_t before = problems_.size();
    std::vector<api::Document> documents = api::read_plain_documents(*text, path, problems_);
    whole_ &= std::all_of(problems_.begin() + static_cast<ptrdiff_t>(before), problems_.end(),
                          [](const api::Problem& problem) { return problem.read_on; });
    if (documents.empty()) return;
    if (documents.size() > 1)
      problems_.push_back({documents[1].file, static_cast<int>(documents[1].lines.front()), "",
                           "a second document begins here, and a kubeconfig is one; remove the other"});
    File& file = files_.emplace_back(File{path, std::move(documents.front()), {}, {}});
    file.sink.document = &file.document;
    for (size_t i = before; i < problems_.size(); ++i)
      if (!problems_[i].path.empty()) file.sink.told.add(problems_[i].path);
    read(file, [&](const Reader& root) { file.entries = read_entries(root); });
  }

  void read(File& file, const std::function<void(const Reader&)>& use) {
    if (const Status status = api::read_json(file.document.json, file.sink, use); !status)
      say(status.error().message, file.path);
  }

  template <typename T>
  Found<T> find(List<T> list, const std::string& name) {
    for (File& file : files_) {
      auto& by_name = (file.entries.*list).by_name;
      if (const auto at = by_name.find(name); at != by_name.end()) return {&file, &at->second};
    }
    return {};
  }

  // True if what is in no such list is in no file.
  template <typename T>
  bool all_known(List<T> list) const {
    return whole_ &&
           std::all_of(files_.begin(), files_.end(), [&](const File& file) { return (file.entries.*list).sound; });
  }

  // Calls `use` with what the entry has under `body`, or reports, if it is not to be missing, that it has nothing.
  template <typename T>
  void visit(const Found<T>& found, std::string_view list, std::string_view body, std::string_view missing,
             const std::function<void(const Reader&)>& use) {
    read(*found.file, [&](const Reader& root) {
      with_member(root, list, [&](const Reader& entries) {
        for (api::Items items(entries); items.next();) {
          if (items.index() != found.entry->item) continue;
          if (!missing.empty() && !api::has_member(items.value(), body))
            items.value().problem_at(body, std::string(missing));
          with_member(items.value(), body, [&](const Reader& value) {
            if (value.type() == api::JsonType::kObject) use(value);
          });
        }
      });
    });
  }

  // The name of the current context, and the file that has it.
  std::pair<std::string, File*> current_context() {
    for (File& file : files_)
      if (!file.entries.current_context.empty()) return {file.entries.current_context, &file};
    return {};
  }

  void choose(const std::string& wanted, ClusterAccess& out) {
    const auto [current, current_file] = current_context();
    out.context = wanted.empty() ? current : wanted;
    if (out.context.empty()) {
      const bool known = whole_ && std::all_of(files_.begin(), files_.end(),
                                               [](const File& file) { return file.entries.current_context_sound; });
      if (known) say("there is no current-context; set one with kubectl config use-context, or give --context", names_);
      return;
    }
    const auto context = find(&KubeconfigEntries::contexts, out.context);
    if (context.file != nullptr) return use_context(context, out);
    if (!all_known(&KubeconfigEntries::contexts)) return;
    if (wanted.empty() && !current_file->entries.current_context_sound) return;
    const std::string message =
        fmt::format("there is no context '{}'; kubectl config get-contexts lists them", out.context);
    if (!wanted.empty()) return say(message, names_);
    read(*current_file, [&](const Reader& root) { root.problem_at("current-context", message); });
  }

  void use_context(const Found<ContextEntry>& context, ClusterAccess& out) {
    const ContextEntry& chosen = context.entry->value;
    out.name_space = chosen.name_space.empty() ? "default" : chosen.name_space;
    const auto cluster = find(&KubeconfigEntries::clusters, chosen.cluster);
    const auto user = find(&KubeconfigEntries::users, chosen.user);
    visit(context, "contexts", "context", "is missing; add its 'cluster' and 'user'", [&](const Reader& body) {
      if (cluster.file == nullptr && all_known(&KubeconfigEntries::clusters) && body.sound("cluster"))
        body.problem_at("cluster",
                        chosen.cluster.empty()
                            ? "is missing; name one of 'clusters'"
                            : fmt::format("there is no cluster '{}'; add it or correct the context", chosen.cluster));
      if (user.file == nullptr && !chosen.user.empty() && all_known(&KubeconfigEntries::users))
        body.problem_at("user", fmt::format("there is no user '{}'; add it or correct the context", chosen.user));
    });
    if (cluster.file != nullptr)
      visit(cluster, "clusters", "cluster", "is missing; add its 'server'",
            [&](const Reader& body) { use_cluster(body, cluster.entry->value, cluster.file->path, out); });
    if (user.file != nullptr && !chosen.user.empty())
      visit(user, "users", "user", "",
            [&](const Reader& body) { use_user(body, user.entry->value, user.file->path, out); });
  }

  Problems& problems_;
  std::string names_;  // of all files, for messages
  size_t found_ = 0;
  bool whole_ = true;  // all that is in the files was read
  std::list<File> files_;
};

std::optional<std::string> process_env(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

std::string env(const AccessOptions& options, const std::string& name) {
  return (options.getenv ? options.getenv(name) : process_env(name)).value_or("");
}

// By kubectl's rules, or by those of a pod.
std::optional<ClusterAccess> load_without_environment_proxy(const AccessOptions& options, Problems& problems) {
  if (!options.kubeconfig.empty()) return load_kubeconfig({options.kubeconfig}, options.context, problems);
  if (const std::string variable = env(options, "KUBECONFIG"); !variable.empty()) {
    std::vector<std::string> files;
    std::istringstream parts(variable);
    for (std::string part; std::getline(parts, part, ':');)
      if (!part.empty()) files.push_back(part);
    return load_kubeconfig(files, options.context, problems);
  }
  const std::string home = env(options, "HOME");
  const std::string standard = home + "/.kube/config";
  std::error_code unknown;  // as of a home that is another user's
  if (!home.empty() && fs::exists(standard, unknown)) return load_kubeconfig({standard}, options.context, problems);
  return load_in_cluster(options, problems);
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

std::optional<ClusterAccess> load_kubeconfig(const std::vector<std::string>& files, const std::string& context,
                                             Problems& problems) {
  const size_t before = problems.size();
  ClusterAccess out = Kubeconfig(files, problems).resolve(context);
  return problems.size() == before ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<ClusterAccess> load_in_cluster(const AccessOptions& options, Problems& problems) {
  const std::string host = env(options, "KUBERNETES_SERVICE_HOST"), port = env(options, "KUBERNETES_SERVICE_PORT");
  const auto bad = [&](std::string message, std::string path = "") {
    problems.push_back({"", 0, std::move(path), std::move(message)});
    return std::nullopt;
  };
  if (host.empty() || port.empty())
    return bad("no kubeconfig, and this is no pod of a cluster; give --kubeconfig or set KUBECONFIG");
  ClusterAccess out;
  out.context = "in-cluster";
  out.server = fmt::format("https://{}:{}", host.find(':') == std::string::npos ? host : "[" + host + "]", port);
  if (const auto url = io::parse_url(out.server); !url)
    return bad(url.error().message, "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT");
  out.token_file = options.service_account_dir + "/token";
  if (!may_exist(out.token_file))
    return bad(fmt::format("'{}' does not exist; set automountServiceAccountToken: true on the pod", out.token_file));
  const auto ca = read_file(options.service_account_dir + "/ca.crt");
  if (!ca) return bad(ca.error().message);
  out.ca_pem = *ca;
  const auto name_space = read_file(options.service_account_dir + "/namespace");
  out.name_space = name_space && !name_space->empty() ? *name_space : "default";
  return out;
}

std::optional<ClusterAccess> load_access(const AccessOptions& options, Problems& problems) {
  std::optional<ClusterAccess> out = load_without_environment_proxy(options, problems);
  if (!out || !out->proxy_url.empty()) return out;
  const auto server = io::parse_url(out->server);
  const EnvironmentProxy proxy =
      environment_proxy(*server, [&](const std::string& name) { return std::optional(env(options, name)); });
  if (proxy.variable.empty()) return out;
  if (const auto url = io::parse_proxy_url(proxy.url); !url) {
    problems.push_back({"", 0, proxy.variable, url.error().message});
    return std::nullopt;
  }
  if (proxy.serves) out->proxy_url = proxy.url;
  return out;
}

}  // namespace berth::kube
