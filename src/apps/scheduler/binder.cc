#include "apps/scheduler/binder.h"

#include <algorithm>
#include <utility>

#include "api/decode.h"
#include "bridge/gpus.h"

namespace berth::apps {
namespace {

constexpr int kRepetitionsMax = 5;
constexpr Duration kAskMin = Duration::millis(250);
constexpr Duration kAskMax = Duration::seconds(5);
// A place is kept for so long while the server is too busy to take the bind; then the pod backs off.
constexpr Duration kThrottledMax = Duration::seconds(60);

}  // namespace

struct Binder::Attempt {
  std::shared_ptr<Shared> shared;
  kube::PodBinding binding;
  Time started;
  int repetitions = 0;
  bool outcome_open = false;  // some attempt may have been stored, or may yet be
  bool held_back = false;     // not sent, since the lane had closed
  Duration ask_wait = kAskMin;
  engine::Decision decision;
  engine::DeviceNames devices;
  std::string error, refusal;
};

std::string_view to_string(BindEnd end) {
  switch (end) {
    case BindEnd::kBound: return "bound";
    case BindEnd::kUnknown: return "unknown";
    case BindEnd::kFailed: return "failed";
    case BindEnd::kGone: return "gone";
    case BindEnd::kElsewhere: return "elsewhere";
  }
  return "";
}

Binder::Binder(kube::Client& client, io::Transport& transport, BinderOptions options, std::function<bool()> may_send,
               Sink sink)
    : shared_(new Shared{client,
                         transport,
                         options.timeout,
                         std::move(may_send),
                         std::move(sink),
                         std::make_shared<Lane>(transport, options.connections),
                         {}}) {}

void Binder::bind(const engine::Decision& decision, engine::DeviceNames devices) {
  auto attempt = std::make_shared<Attempt>();
  attempt->shared = shared_;
  attempt->binding = {.name_space = decision.namespace_name,
                      .pod = decision.pod_name,
                      .uid = decision.pod_uid,
                      .node = decision.node_name};
  if (std::string text = bridge::gpu_devices_text(devices); !text.empty())
    attempt->binding.annotations.set(std::string(bridge::kGpuDevicesAnnotation), std::move(text));
  attempt->devices = std::move(devices);
  attempt->decision = decision;
  attempt->started = shared_->transport.clock().monotonic();
  ++shared_->outstanding;
  send(attempt);
}

void Binder::send(const std::shared_ptr<Attempt>& attempt) {
  attempt->shared->lane->enter([attempt] { post(attempt); });
}

void Binder::post(const std::shared_ptr<Attempt>& attempt) {
  const auto may_start = [attempt] {
    const Shared& shared = *attempt->shared;
    if (!shared.may_send()) return false;
    attempt->held_back = shared.lane->closed();
    return !attempt->held_back;
  };
  attempt->shared->client.bind(attempt->binding,
                               [attempt](const Result<std::string>& result) { answered(attempt, result); },
                               {.timeout = attempt->shared->timeout, .may_start = may_start});
}

// A server with too much to do has not acted: the bind keeps its place and goes out again when the lane opens.
bool Binder::waits(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result) {
  const Shared& shared = *attempt->shared;
  const auto send_again = [attempt] { post(attempt); };
  if (std::exchange(attempt->held_back, false)) return shared.lane->again(send_again), true;
  const bool throttled = !result && result.error().code == ErrorCode::kThrottled;
  if (!throttled || shared.transport.clock().monotonic() - attempt->started >= kThrottledMax) return false;
  return shared.lane->throttled(kube::retry_after(result.error()), send_again), true;
}

void Binder::answered(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result) {
  if (waits(attempt, result)) return;
  attempt->shared->lane->left(result.has_value());
  if (result) return end(attempt, BindEnd::kBound);
  const Error& error = result.error();
  attempt->error = error.message;
  attempt->refusal = error.http_status == 0 ? "" : kube::server_words(error.message);
  if (!io::surely_not_applied(error)) {
    if (!attempt->outcome_open)
      attempt->shared->sink(
          {attempt->binding.uid, BindEnd::kUnknown, {}, error.message, {}, attempt->decision, attempt->devices, {}});
    attempt->outcome_open = true;
    return ask(attempt);
  }
  if (error.http_status == 409 || error.http_status == 404 || attempt->outcome_open) return ask(attempt);
  end(attempt, BindEnd::kFailed);
}

void Binder::ask(const std::shared_ptr<Attempt>& attempt) {
  const std::string path = kube::kPods.object(attempt->binding.name_space, attempt->binding.pod);
  attempt->shared->client.get(path, [attempt](const Result<std::string>& result) { told(attempt, result); },
                              {.timeout = attempt->shared->timeout, .may_start = {}});
}

void Binder::told(const std::shared_ptr<Attempt>& attempt, const Result<std::string>& result) {
  if (!result && result.error().http_status == 404) return end(attempt, BindEnd::kGone);
  Result<api::Pod> pod = result ? api::decode_pod(*result) : Result<api::Pod>(fail(result.error()));
  if (!pod) {
    const Duration wait = std::max(attempt->ask_wait, result ? Duration{} : kube::retry_after(result.error()));
    attempt->ask_wait = std::min(attempt->ask_wait * 2, kAskMax);
    return attempt->shared->transport.run_after(wait, [attempt] { ask(attempt); });
  }
  if (pod->metadata.uid != attempt->binding.uid) return end(attempt, BindEnd::kGone);
  if (pod->spec.node_name == attempt->binding.node) return end(attempt, BindEnd::kBound);
  if (!pod->spec.node_name.empty()) return end(attempt, BindEnd::kElsewhere, std::move(*pod));
  if (!attempt->outcome_open || attempt->repetitions >= kRepetitionsMax) return end(attempt, BindEnd::kFailed);
  ++attempt->repetitions;
  send(attempt);
}

void Binder::end(const std::shared_ptr<Attempt>& attempt, BindEnd how, std::optional<api::Pod> seen) {
  Shared& shared = *attempt->shared;
  --shared.outstanding;
  BindReport report{.uid = attempt->binding.uid,
                    .end = how,
                    .seen = std::move(seen),
                    .error = {},
                    .took = shared.transport.clock().monotonic() - attempt->started,
                    .decision = std::move(attempt->decision),
                    .devices = std::move(attempt->devices)};
  if (how == BindEnd::kFailed) {
    report.error = std::move(attempt->error);
    report.refusal = std::move(attempt->refusal);
  }
  shared.sink(std::move(report));
}

}  // namespace berth::apps
