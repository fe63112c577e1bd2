#include "apps/scheduler/daemon.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <future>
#include <random>

#include "apps/scheduler/authorizer.h"
#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"
#include "base/printable.h"
#include "base/version.h"
#include "io/http_server.h"
#include "io/system_clock.h"
#include "kube/credentials.h"
#include "kube/exec_plugin.h"
#include "kube/lease.h"

namespace berth::apps {
namespace {

constexpr Duration kDrain = Duration::seconds(5);
constexpr Duration kBeginAgainMin = Duration::seconds(1);
constexpr Duration kBeginAgainMax = Duration::seconds(30);
constexpr Duration kOwnerStuck = Duration::seconds(60);
constexpr Duration kPluginSlow = Duration::seconds(5);

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : "unknown-host";
}

std::string unique_identity() {
  std::random_device device;
  return fmt::format("{}_{:08x}{:08x}", host_name(), device(), device());
}

enum class Happening : uint8_t { kSignal, kLeading, kNotLeading };

// Blocks SIGTERM and SIGINT in this thread and all made after it, and waits for one in a thread of its own.
class SignalWatch {
 public:
  explicit SignalWatch(Inbox<Happening>& inbox) {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    thread_ = std::thread([this, &inbox] {
      int signal = 0;
      while (!done_ && sigwait(&set_, &signal) == 0) inbox.push(Happening::kSignal);
    });
  }
  ~SignalWatch() {
    done_ = true;
    pthread_kill(thread_.native_handle(), SIGTERM);
    thread_.join();
  }

 private:
  sigset_t set_{};
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// host:port, with the brackets of an IPv6 address.
std::string http_address(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port) : fmt::format("[{}]:{}", host, port);
}

// What to do about an error that the server's own words do not explain.
std::string way_out(const std::string& trouble) {
  const auto has = [&](std::string_view part) { return trouble.find(part) != std::string::npos; };
  if (has(": Unauthorized: "))
    return "; the server does not accept our credentials: look whether the kubeconfig's token or certificate is this "
           "server's and has not expired";
  if (has(": Forbidden: ")) return "; deploy/rbac.yaml has the rules that Berth needs";
  if (has(": NotFound: namespaces ")) return "; deploy/rbac.yaml makes the namespace and the rules that Berth needs";
  return "";
}

// Logs an error when it changes, and at most once in 30 s while it stays the same.
class TroubleLog {
 public:
  explicit TroubleLog(std::string_view what) : what_(what) {}

  void say(const std::string& trouble, Time now) {
    if (trouble.empty()) {
      if (!last_.empty()) log_info("the API server answers again");
      last_.clear();
      return;
    }
    if (trouble == last_ && now - said_ < Duration::seconds(30)) return;
    last_ = trouble;
    said_ = now;
    log_error(what_, {{"error", trouble + way_out(trouble)}});
  }

 private:
  std::string_view what_;
  std::string last_;
  Time said_;
};

class Daemon {
 public:
  Daemon(const Configuration& configuration, const kube::ClusterAccess& access)
      : config_(configuration), access_(access) {}

  Status run() {
    SignalWatch signals(inbox_);  // before any thread is made, so that all of them leave signals to it
    make_credentials();
    BERTH_TRY_VOID(serve());
    log_info("starting", {{"version", std::string(version())},
                          {"server", access_.server},
                          {"context", access_.context},
                          {"scheduler_names", fmt::format("{}", fmt::join(config_.scheduler_names, ","))},
                          {"http", http_address(config_.http.bind_address, server_->port())}});
    BERTH_TRY_VOID(elect());
    supervise();
    return wind_up();
  }

 private:
  // A credential plugin may take its time, perhaps for a login.
  void make_credentials() {
    auto making = std::async(std::launch::async, [&] { return kube::transport_options(access_); });
    const Time start = clock_.monotonic();
    bool told = false;
    while (making.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
      if (!inbox_.take(Duration::millis(20)).empty()) leave_at_once();
      if (told || !access_.exec || clock_.monotonic() - start < kPluginSlow) continue;
      log_warn("waiting for the credential plugin", {{"plugin", access_.exec->command}});
      told = true;
    }
    transport_ = making.get();
  }

  // Before anything has begun. A credential plugin may hang for long, and nothing waits for it any more.
  [[noreturn]] static void leave_at_once() {
    log_info("stopped");
    kube::kill_exec_plugin();
    std::_Exit(0);
  }

  Status elect() {
    if (!config_.leader_election.leader_elect) {
      inbox_.push(Happening::kLeading);
      return {};
    }
    io::CurlTransportOptions options = transport_;
    options.max_in_flight = 2;
    BERTH_TRY(transport, io::CurlTransport::create(std::move(options)));
    lease_transport_ = std::move(transport);
    lease_client_ = std::make_unique<kube::Client>(*lease_transport_);
    const LeaderElectionConfiguration& le = config_.leader_election;
    kube::LeaseOptions lease{.name_space = le.resource_namespace,
                             .name = le.resource_name,
                             .identity = unique_identity(),
                             .lease_duration = le.lease_duration,
                             .renew_deadline = le.renew_deadline,
                             .retry_period = le.retry_period,
                             .seed = std::random_device{}()};
    log_info("waiting for the lease", {{"lease", lease.name_space + "/" + lease.name}, {"identity", lease.identity}});
    kube::LeaseCallbacks callbacks;
    callbacks.on_started = [this] { inbox_.push(Happening::kLeading); };
    callbacks.on_stopped = [this](const std::string& reason) {
      log_warn("no longer leading", {{"reason", reason}});
      inbox_.push(Happening::kNotLeading);
    };
    callbacks.on_error = [this](const Error& error) { lease_trouble_.say(error.message, clock_.monotonic()); };
    callbacks.on_answer = [this] { lease_trouble_.say("", clock_.monotonic()); };
    callbacks.on_new_leader = [](const std::string& holder) {
      log_info("the lease has a holder", {{"holder", holder}});
    };
    auto election = std::make_unique<kube::LeaderElection>(*lease_client_, lease, std::move(callbacks));
    election->start();
    const std::lock_guard lock(session_mutex_);
    election_ = std::move(election);
    return {};
  }

  void supervise() {
    while (true) {
      for (const Happening happening : inbox_.take(Duration::millis(500))) {
        if (happening == Happening::kSignal) return;
        if (happening == Happening::kLeading) begin_term();
        else end_term(Duration{0});
      }
      if (session_ == nullptr) {
        if (term_due_ && clock_.monotonic() >= begin_again_at_) begin_term();
        continue;
      }
      trouble_.say(session_->trouble(), clock_.monotonic());
      if (session_->doubtful()) {
        log_error("the store lost writes that had been seen; starting over from a new list");
        end_term(Duration{0});
        begin_term();
      }
    }
  }

  void begin_term() {
    metrics_.leader(true);
    SessionOptions options{.configuration = &config_,
                           .transport = transport_,
                           .may_bind = {},
                           .instance = config_.scheduler_names.front() + "-" + host_name(),
                           .metrics = &metrics_};
    options.may_bind = [election = election_.get(), timeout = config_.client.bind_timeout, this] {
      return election == nullptr || election->may_act(clock_.monotonic(), timeout);
    };
    auto session = Session::start(std::move(options));
    term_due_ = !session.has_value();
    if (!session) {
      trouble_.say(session.error().message, clock_.monotonic());
      begin_again_after_ = std::min(begin_again_after_ * 2, kBeginAgainMax);
      begin_again_at_ = clock_.monotonic() + begin_again_after_;
      return;
    }
    begin_again_after_ = kBeginAgainMin;
    const std::lock_guard lock(session_mutex_);
    session_ = std::move(*session);
  }

  void end_term(Duration drain) {
    term_due_ = false;
    std::unique_ptr<Session> ended;
    {
      const std::lock_guard lock(session_mutex_);
      ended = std::move(session_);
    }
    if (ended) ended->stop(drain);
    metrics_.leader(false);
  }

  Status wind_up() {
    const bool led = session_ != nullptr || term_due_;
    log_info(led && election_ ? "stopping: draining binds, then giving the lease back" : "stopping");
    end_term(kDrain);
    if (election_ && !election_->release(kDrain))
      log_warn("the lease could not be given back; it will run out by itself");
    server_->stop();
    if (lease_transport_) lease_transport_->stop();
    if (auth_transport_) auth_transport_->stop();
    log_info("stopped");
    return {};
  }

  Status serve() {
    io::AuthHook auth;
    if (!is_loopback(config_.http.bind_address)) {
      BERTH_TRY(transport, io::CurlTransport::create(transport_));
      auth_transport_ = std::move(transport);
      auth_client_ = std::make_unique<kube::Client>(*auth_transport_);
      auth =
          token_review_hook(*auth_client_, *auth_transport_, {.path = "/metrics", .on_error = [this](const Error& e) {
                                                                auth_trouble_.say(e.message, clock_.monotonic());
                                                              }});
    }
    std::vector<io::Route> routes;
    routes.push_back({"/metrics",
                      [this](const io::ServerRequest&) {
                        return io::ServerResponse{200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(), {}};
                      },
                      auth});
    routes.push_back({"/healthz", [this](const io::ServerRequest&) { return health(false); }, {}});
    routes.push_back({"/livez", [this](const io::ServerRequest&) { return health(false); }, {}});
    routes.push_back({"/readyz", [this](const io::ServerRequest& request) { return ready(request.query); }, {}});
    io::HttpServerOptions options;
    options.address = config_.http.bind_address;
    options.port = static_cast<uint16_t>(config_.http.port);
    options.tls_cert_file = config_.http.tls_cert_file;
    options.tls_key_file = config_.http.tls_private_key_file;
    options.on_warning = [](const Error& error) { log_warn(error.message); };
    BERTH_TRY(server, io::HttpServer::start(std::move(options), std::move(routes)));
    server_ = std::move(server);
    return {};
  }

  // A standby is healthy, and ready while it can read the lease, so that it could lead: it is what a rolling update
  // waits for. A leader is ready once it has listed.
  io::ServerResponse health(bool ready) {
    const std::lock_guard lock(session_mutex_);
    const bool in_touch = election_ != nullptr && election_->in_touch(clock_.monotonic());
    if (session_ == nullptr && ready && !in_touch)
      return {503, "text/plain; charset=utf-8", "the lease cannot be read; the log says why\n", {}};
    if (session_ == nullptr) return {200, "text/plain; charset=utf-8", "ok (standby)\n", {}};
    if (clock_.monotonic() - session_->last_tick() > kOwnerStuck)
      return {500, "text/plain; charset=utf-8", "the owner thread has not come round for a minute\n", {}};
    if (ready && !session_->ready()) return {503, "text/plain; charset=utf-8", "listing the cluster\n", {}};
    return {200, "text/plain; charset=utf-8", "ok (leader)\n", {}};
  }

  // With ?verbose also what is set aside. Its names are for this machine alone: the page asks for no token.
  io::ServerResponse ready(std::string_view query) {
    constexpr size_t kLinesMax = 100;
    io::ServerResponse out = health(true);
    if (query != "verbose") return out;
    const std::lock_guard lock(session_mutex_);
    if (session_ == nullptr) return out;
    const std::vector<std::string> lines = session_->set_aside();
    out.body += fmt::format("{} objects are set aside because they cannot be understood\n", lines.size());
    if (!is_loopback(config_.http.bind_address)) return out;
    for (size_t i = 0; i < std::min(lines.size(), kLinesMax); ++i) out.body += printable(lines[i], 400) + "\n";
    if (lines.size() > kLinesMax) out.body += "…\n";
    return out;
  }

  const Configuration& config_;
  const kube::ClusterAccess& access_;
  const Clock& clock_ = io::SystemClock::instance();
  io::CurlTransportOptions transport_;
  Metrics metrics_;
  Inbox<Happening> inbox_;
  static constexpr std::string_view kNotFollowed = "the API server cannot be followed; trying again";
  TroubleLog trouble_{kNotFollowed}, lease_trouble_{kNotFollowed};
  TroubleLog auth_trouble_{"a request for /metrics was refused, since its token could not be checked"};
  std::unique_ptr<io::CurlTransport> lease_transport_, auth_transport_;
  std::unique_ptr<kube::Client> lease_client_, auth_client_;
  std::unique_ptr<kube::LeaderElection> election_;
  std::mutex session_mutex_;  // the health pages look at election_ and session_ from the server's thread
  std::unique_ptr<Session> session_;
  bool term_due_ = false;  // leading, but the session could not be started
  Duration begin_again_after_ = kBeginAgainMin;
  Time begin_again_at_;
  std::unique_ptr<io::HttpServer> server_;
};

}  // namespace

Status run_daemon(const Configuration& configuration, const kube::ClusterAccess& access) {
  return Daemon(configuration, access).run();
}

}  // namespace berth::apps
