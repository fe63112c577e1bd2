#include "apps/scheduler/status_writer.h"

#include <absl/container/flat_hash_map.h>

#include <deque>
#include <mutex>

namespace berth::apps {
namespace {

constexpr int kAttemptsMax = 5;

bool worth_repeating(const Error& error) {
  return error.code == ErrorCode::kThrottled || error.code == ErrorCode::kUnavailable ||
         error.code == ErrorCode::kTimeout;
}

}  // namespace

struct StatusWriter::Shared {
  kube::Client& client;
  io::Transport& transport;
  const int in_flight_max;
  const std::function<void(bool)> done;
  std::mutex mutex;
  absl::flat_hash_map<std::string, UnschedulableStatus> waiting;  // by UID
  std::deque<std::string> order;                                  // UIDs; those not in `waiting` are skipped
  int in_flight = 0;
};

StatusWriter::StatusWriter(kube::Client& client, io::Transport& transport, int in_flight_max,
                           std::function<void(bool)> done)
    : shared_(new Shared{client, transport, in_flight_max, std::move(done), {}, {}, {}}) {}

void StatusWriter::write(UnschedulableStatus status) {
  {
    const std::lock_guard lock(shared_->mutex);
    std::string uid = status.uid;
    const auto at = shared_->waiting.find(uid);
    if (at != shared_->waiting.end()) {
      at->second.message = std::move(status.message);
      return;
    }
    shared_->waiting.emplace(uid, std::move(status));
    shared_->order.push_back(std::move(uid));
  }
  pump(shared_);
}

void StatusWriter::forget(const std::string& uid) {
  const std::lock_guard lock(shared_->mutex);
  shared_->waiting.erase(uid);
}

size_t StatusWriter::queued() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->waiting.size();
}

void StatusWriter::pump(const std::shared_ptr<Shared>& shared) {
  std::vector<UnschedulableStatus> ready;
  {
    const std::lock_guard lock(shared->mutex);
    while (shared->in_flight < shared->in_flight_max && !shared->order.empty()) {
      auto node = shared->waiting.extract(shared->order.front());
      shared->order.pop_front();
      if (node.empty()) continue;
      ready.push_back(std::move(node.mapped()));
      ++shared->in_flight;
    }
  }
  for (UnschedulableStatus& status : ready) send(shared, std::move(status), 1);
}

void StatusWriter::send(const std::shared_ptr<Shared>& shared, UnschedulableStatus status, int attempt) {
  kube::PodConditionPatch patch{.condition = {"PodScheduled", "False", "Unschedulable", *status.message},
                                .last_transition = {},
                                .observed_generation = status.generation};
  if (status.first) patch.last_transition = shared->transport.clock().wall();
  const auto copy = std::make_shared<UnschedulableStatus>(std::move(status));
  shared->client.patch_pod_condition(copy->namespace_name, copy->pod_name, copy->uid, patch,
                                     [shared, copy, attempt](const Result<std::string>& result) {
                                       if (!result && worth_repeating(result.error()) && attempt < kAttemptsMax) {
                                         const Duration wait = Duration::millis(200) * (int64_t{1} << attempt);
                                         return shared->transport.run_after(
                                             wait, [shared, copy, attempt] { send(shared, *copy, attempt + 1); });
                                       }
                                       {
                                         const std::lock_guard lock(shared->mutex);
                                         --shared->in_flight;
                                       }
                                       shared->done(result.has_value());
                                       pump(shared);
                                     });
}

}  // namespace berth::apps
