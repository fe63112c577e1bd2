#include "apps/webhook/server.h"

#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "apps/scheduler/log.h"
#include "apps/webhook/metrics.h"
#include "apps/webhook/watch.h"
#include "base/printable.h"
#include "base/version.h"
#include "io/http_server.h"
#include "io/system_clock.h"
#include "webhook/cluster.h"
#include "webhook/mutate.h"
#include "webhook/review.h"
#include "webhook/validate.h"

namespace berth::apps {
namespace {

constexpr Duration kDrain = Duration::seconds(5);
constexpr size_t kConnectionsMax = 512;  // an API server opens one for each request that is under way
constexpr std::string_view kText = "text/plain; charset=utf-8";

using io::ServerRequest;
using io::ServerResponse;
using webhook::AdmissionAnswer;
using webhook::AdmissionRequest;
using webhook::Json;
using Judge = std::function<AdmissionAnswer(const AdmissionRequest&, const webhook::Rules&)>;

ServerResponse text(int status, std::string body) { return {status, std::string(kText), std::move(body) + "\n", {}}; }

// An answer, and what to call it in the metrics.
struct Answer {
  Json review;
  std::string_view result;
};

void log_denial(std::string_view path, const AdmissionRequest& request, const AdmissionAnswer& answer) {
  log_info("denied", {{"path", std::string(path)},
                      {"kind", request.kind},
                      {"object", request.namespace_name + "/" + request.name},
                      {"reason", printable(answer.message)}});
}

Result<Answer> admit(std::string_view path, Json body, const Judge& judge, const webhook::Rules& rules,
                     webhook::Cluster* cluster = nullptr) {
  BERTH_TRY(request, webhook::read_admission(std::move(body)));
  AdmissionAnswer answer = judge(request, rules);
  if (cluster != nullptr) answer = webhook::validate_in(*cluster, request, std::move(answer));
  if (!answer.allowed) log_denial(path, request, answer);
  Json review = webhook::write_admission(request, answer);
  const bool changed = review["response"].contains("patch");
  return Answer{std::move(review), !answer.allowed            ? "denied"
                                   : changed                  ? "changed"
                                   : !answer.warnings.empty() ? "warned"
                                                              : "ok"};
}

Result<Answer> convert(Json body) {
  BERTH_TRY(review, webhook::answer_conversion(std::move(body)));
  const Json& result = review["response"]["result"];
  const bool failed = result["status"] != "Success";
  if (failed) log_warn("a conversion failed", {{"error", result["message"].get<std::string>()}});
  return Answer{std::move(review), failed ? "failed" : "ok"};
}

// Blocks the signals that end the program in this thread and all made after it.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

class Webhook {
 public:
  explicit Webhook(const WebhookOptions& options) : options_(options) {}

  Status run() {
    const sigset_t signals = block_signals();
    if (options_.access) {
      BERTH_TRY(watch, ClusterWatch::start(*options_.access));
      watch_ = std::move(watch);
    }
    io::HttpServerOptions http;
    http.address = options_.address;
    http.port = static_cast<uint16_t>(options_.port);
    http.tls_cert_file = options_.cert_file;
    http.tls_key_file = options_.key_file;
    http.max_connections = kConnectionsMax;
    http.on_warning = [](const Error& error) { log_warn(error.message); };
    BERTH_TRY(server, io::HttpServer::start(std::move(http), routes()));
    server_ = server.get();
    log_info("starting", {{"version", std::string(version())},
                          {"address", fmt::format("{}:{}", options_.address, server->port())},
                          {"certificate", options_.cert_file}});
    int signal = 0;
    sigwait(&signals, &signal);
    log_info("stopping");
    stopping_ = true;
    const timespec delay{options_.shutdown_delay.nanos / 1'000'000'000, options_.shutdown_delay.nanos % 1'000'000'000};
    sigtimedwait(&signals, nullptr, &delay);  // a second signal: at once
    server->drain(kDrain);
    server->stop();
    log_info("stopped");
    return {};
  }

 private:
  std::vector<io::Route> routes() {
    const auto post = [this](const char* path, Result<Answer> (Webhook::*review)(Json)) {
      const auto handler = [this, path, review](const ServerRequest& request) { return answer(path, request, review); };
      return io::Route{fmt::format("/{}", path), handler, {}, {"POST"}};
    };
    const auto get = [](const char* path, io::Handler handler) { return io::Route{path, std::move(handler), {}}; };
    return {
        post("convert", &Webhook::on_convert),
        post("mutate", &Webhook::on_mutate),
        post("validate", &Webhook::on_validate),
        get("/metrics", [this](const ServerRequest&) { return metrics(); }),
        get("/healthz", [](const ServerRequest&) { return text(200, "ok"); }),
        get("/readyz", [this](const ServerRequest&) { return stopping_ ? text(503, "stopping") : text(200, "ok"); })};
  }

  Result<Answer> on_convert(Json body) { return convert(std::move(body)); }
  Result<Answer> on_mutate(Json body) {
    const auto judge = [this](const AdmissionRequest& request, const webhook::Rules& rules) {
      return watch_ != nullptr ? webhook::mutate_in(*watch_, request, rules) : webhook::mutate(request, rules);
    };
    return admit("mutate", std::move(body), judge, options_.rules);
  }
  Result<Answer> on_validate(Json body) {
    return admit("validate", std::move(body), &webhook::validate, options_.rules, watch_.get());
  }

  ServerResponse answer(const char* path, const ServerRequest& request, Result<Answer> (Webhook::*review)(Json)) {
    const Time start = clock_.monotonic();
    std::string_view result = "bad_request";
    ServerResponse response;
    try {
      auto body = webhook::parse_body(request.body);
      const Result<Answer> answered = body ? (this->*review)(std::move(*body)) : fail(body.error());
      if (answered) {
        result = answered->result;
        response = {200, "application/json", answered->review.dump(-1, ' ', false, Json::error_handler_t::replace), {}};
      } else {
        response = text(400, answered.error().message);
      }
    } catch (const std::exception& error) {  // of the JSON library, or out of memory
      result = "error";
      log_error("a request could not be answered", {{"path", path}, {"error", error.what()}});
      response = text(500, "this request could not be answered");
    }
    metrics_.answered(path, result, clock_.monotonic() - start);
    return response;
  }

  ServerResponse metrics() {
    if (const io::HttpServer* server = server_) metrics_.certificate_expiry(server->certificate_expiry_s());
    if (watch_)
      for (const auto& [kind, synced] : watch_->synced()) metrics_.synced(kind, synced);
    return {200, "text/plain; version=0.0.4; charset=utf-8", metrics_.text(), {}};
  }

  const WebhookOptions& options_;
  const Clock& clock_ = io::SystemClock::instance();
  WebhookMetrics metrics_;
  std::unique_ptr<ClusterWatch> watch_;  // null: it is not asked to
  std::atomic<io::HttpServer*> server_{nullptr};
  std::atomic<bool> stopping_{false};
};

}  // namespace

Status run_webhook(const WebhookOptions& options) { return Webhook(options).run(); }

}  // namespace berth::apps
