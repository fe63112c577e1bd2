#include "kube/exec_plugin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/base64.h"
#include "base/printable.h"

extern char** environ;

namespace berth::kube {
namespace {

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kMaxOutput = 1 << 20;

// What the plugin finds in KUBERNETES_EXEC_INFO.
std::string exec_info(const ExecPlugin& plugin, const ClusterAccess& access) {
  json spec = {{"interactive", false}};
  if (plugin.provide_cluster_info) {
    json cluster = {{"server", access.server}};
    if (!access.ca_pem.empty()) cluster["certificate-authority-data"] = base64_encode(access.ca_pem);
    if (access.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!access.tls_server_name.empty()) cluster["tls-server-name"] = access.tls_server_name;
    if (!access.proxy_url.empty()) cluster["proxy-url"] = access.proxy_url;
    spec["cluster"] = std::move(cluster);
  }
  return json{{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", std::move(spec)}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

// Our environment with the plugin's on top.
std::vector<std::string> environment(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::pair<std::string, std::string>> extra = plugin.env;
  extra.emplace_back("KUBERNETES_EXEC_INFO", info);
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    bool replaced = false;
    for (const auto& [name, value] : extra) replaced |= text.starts_with(name + "=");
    if (!replaced) out.emplace_back(text);
  }
  for (const auto& [name, value] : extra) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::atomic<pid_t> g_running{0};  // the latest plugin started, until it is reaped

// A pipe from the plugin to us.
class Pipe {
 public:
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_writing();
    if (ends_[0] >= 0) close(ends_[0]);
  }

  bool open() { return pipe2(ends_.data(), O_CLOEXEC) == 0; }
  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// What a plugin says on stderr, for people: it goes to ours by whole lines, none of which can send a terminal escape.
class Words {
 public:
  explicit Words(int fd) : fd_(fd) { fcntl(fd_, F_SETFL, O_NONBLOCK); }

  int fd() const { return fd_; }  // -1 once it has ended
  // Takes a part of what is there, without waiting; false when nothing is.
  bool take() {
    std::array<char, 4096> part;
    const ssize_t count = fd_ < 0 ? 0 : read(fd_, part.data(), part.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) fd_ = -1;
    for (ssize_t i = 0; i < count; ++i) {
      if (part[static_cast<size_t>(i)] == '\n') show();
      else line_ += part[static_cast<size_t>(i)];
      if (line_.size() >= kMaxLine) show();
    }
    return count > 0;
  }
  // What is left once the plugin is gone; something that it started may hold the pipe still.
  void finish() {
    for (int parts = 0; parts < kPipeParts && take(); ++parts) {}
    if (!line_.empty()) show();
  }

 private:
  static constexpr size_t kMaxLine = 4096;
  static constexpr int kPipeParts = 32;  // of 4 KiB, more than a pipe holds

  void show() {
    const std::string shown = printable(line_, 4 * kMaxLine) + "\n";
    line_.clear();
    if (write(STDERR_FILENO, shown.data(), shown.size()) < 0) return;  // nobody to tell
  }

  int fd_;
  std::string line_;
};

Result<std::string> read_until_end(int fd, Words& words, SteadyClock::time_point deadline) {
  std::string out;
  std::array<char, 16384> part;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0)
      return fail(ErrorCode::kUnavailable, "took too long and was stopped; run it by hand to see what it waits for");
    std::array<pollfd, 2> waited{pollfd{fd, POLLIN, 0}, pollfd{words.fd(), POLLIN, 0}};
    if (poll(waited.data(), waited.size(), static_cast<int>(left)) <= 0) continue;
    if (waited[1].revents != 0) words.take();
    if (waited[0].revents == 0) continue;
    const ssize_t count = read(fd, part.data(), part.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return out;
    out.append(part.data(), static_cast<size_t>(count));
    if (out.size() > kMaxOutput) return fail(ErrorCode::kUnavailable, "printed over 1 MiB, which is no credential");
  }
}

// Waits for the child, which is killed at the deadline; its wait status.
int reap(pid_t child, Words& words, SteadyClock::time_point deadline) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (SteadyClock::now() >= deadline) kill(-child, SIGKILL);
    if (!words.take()) usleep(2000);
  }
  words.finish();
  return status;
}

Result<std::string> run(const ExecPlugin& plugin, std::vector<std::string> env, Duration limit) {
  std::vector<std::string> args{plugin.command};
  args.insert(args.end(), plugin.args.begin(), plugin.args.end());
  Pipe out, err;
  if (!out.open() || !err.open()) return fail(ErrorCode::kInternal, "no pipe is left; raise the limit of open files");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.writing(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writing(), STDERR_FILENO);
  // A group of its own, so that what it starts ends with it; no signal blocked, whatever this program blocks.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  pid_t child = 0;
  const int spawned =
      posix_spawnp(&child, plugin.command.c_str(), &actions, &attributes, pointers(args).data(), pointers(env).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0)
    return fail(ErrorCode::kUnavailable,
                fmt::format("cannot be run: {}; {}", strerror(spawned),
                            plugin.install_hint.empty() ? "install it or correct 'command'" : plugin.install_hint));
  out.close_writing();
  err.close_writing();
  Words words(err.reading());
  g_running = child;
  const auto deadline = SteadyClock::now() + std::chrono::nanoseconds(limit.nanos);
  Result<std::string> output = read_until_end(out.reading(), words, deadline);
  if (!output) kill(-child, SIGKILL);
  const int status = reap(child, words, deadline);
  g_running = 0;
  if (!output) return output;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return fail(ErrorCode::kUnauthorized,
                fmt::format("failed with {} {}; run it by hand to see why, perhaps a login has expired",
                            WIFEXITED(status) ? "exit status" : "signal",
                            WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status)));
  return output;
}

}  // namespace

Result<ExecCredential> run_exec_plugin(const ExecPlugin& plugin, const ClusterAccess& access, Duration limit) {
  const std::string who = fmt::format("credential plugin '{}'", plugin.command);
  auto output = run(plugin, environment(plugin, exec_info(plugin, access)), limit);
  if (!output) return fail(output.error().with_context(who));
  return parse_exec_credential(*output, plugin.api_version).map_error(with_context(who));
}

void kill_exec_plugin() {
  if (const pid_t child = g_running; child > 0) kill(-child, SIGKILL);
}

Result<ExecCredential> parse_exec_credential(const std::string& text, const std::string& api_version) {
  const json object = json::parse(text, nullptr, false);
  const auto bad = [](std::string_view what) {
    return fail(ErrorCode::kUnauthorized, fmt::format("{}; run it by hand and look at what it prints", what));
  };
  if (!object.is_object()) return bad("printed no JSON object");
  const auto text_at = [](const json& from, const char* key) {
    const auto found = from.find(key);
    return found != from.end() && found->is_string() ? found->get<std::string>() : std::string{};
  };
  if (text_at(object, "kind") != "ExecCredential") return bad("printed something other than an ExecCredential");
  if (text_at(object, "apiVersion") != api_version)
    return bad(fmt::format("printed apiVersion '{}' where the kubeconfig asks for '{}'", text_at(object, "apiVersion"),
                           api_version));
  const auto status = object.find("status");
  if (status == object.end() || !status->is_object()) return bad("printed an ExecCredential without a status");
  ExecCredential out;
  out.token = text_at(*status, "token");
  out.client_cert_pem = text_at(*status, "clientCertificateData");
  out.client_key_pem = text_at(*status, "clientKeyData");
  if (out.client_cert_pem.empty() != out.client_key_pem.empty())
    return bad("printed a client certificate without its key, or the reverse");
  if (out.token.empty() && out.client_cert_pem.empty()) return bad("printed neither a token nor a client certificate");
  if (const std::string expires = text_at(*status, "expirationTimestamp"); !expires.empty()) {
    BERTH_TRY(time, parse_rfc3339(expires));
    out.expires = time;
  }
  return out;
}

}  // namespace berth::kube
