#include "apps/scheduler/status_writer.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "apps/scheduler/throttle.h"

namespace berth::apps {
namespace {

constexpr Duration kTimeout = Duration::seconds(10);

// All but what says that the pod is gone (404), is another by now (422), or that the server will never take this body.
// 401 and 403 pass: a token is being renewed, or a server that has just started does not know the roles yet.
bool worth_repeating(const Error& error) {
  const int status = error.http_status;
  return status != 400 && status != 404 && status != 413 && status != 422;
}

// True if `wanted` says what `sent` did not.
bool is_news(const UnschedulableStatus& wanted, const UnschedulableStatus& sent) {
  return *wanted.message != *sent.message || (wanted.nominated_node && wanted.nominated_node != sent.nominated_node);
}

// One pod's write, which is in the queue, under way or backing off.
struct Entry {
  std::optional<UnschedulableStatus> wanted;  // the latest; empty once forgotten
  bool under_way = false;
  std::function<void()> then;  // what forget() put off until the write under way has ended
  Duration repeat_after = Throttle::kRepeatMin;
};

}  // namespace

struct StatusWriter::Shared {
  kube::Client& client;
  io::Transport& transport;
  const int in_flight_max;
  const std::function<void(bool)> done;
  std::mutex mutex;
  absl::flat_hash_map<std::string, Entry> entries;  // by UID
  std::deque<std::string> order;                    // the queue: UIDs, each in `entries`
  int in_flight = 0;
  Throttle throttle;
};

StatusWriter::StatusWriter(kube::Client& client, io::Transport& transport, int in_flight_max,
                           std::function<void(bool)> done)
    : shared_(new Shared{client, transport, in_flight_max, std::move(done), {}, {}, {}, {}, {}}) {}

void StatusWriter::write(UnschedulableStatus status) {
  {
    const std::lock_guard lock(shared_->mutex);
    const auto [at, added] = shared_->entries.try_emplace(status.uid);
    if (added) shared_->order.push_back(status.uid);
    if (const auto& earlier = at->second.wanted) {
      status.first |= earlier->first;
      if (!status.nominated_node) status.nominated_node = earlier->nominated_node;
    }
    at->second.wanted = std::move(status);
  }
  pump(shared_);
}

bool StatusWriter::forget(const std::string& uid, std::function<void()> then) {
  bool unseen = false;
  {
    const std::lock_guard lock(shared_->mutex);
    const auto at = shared_->entries.find(uid);
    if (at != shared_->entries.end()) {
      unseen = at->second.wanted && !at->second.under_way;
      at->second.wanted.reset();
      if (at->second.under_way) {
        at->second.then = std::move(then);
        return false;
      }
    }
  }
  then();
  return unseen;
}

size_t StatusWriter::queued() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->entries.size();
}

void StatusWriter::pump(const std::shared_ptr<Shared>& shared) {
  std::vector<UnschedulableStatus> ready;
  {
    const std::lock_guard lock(shared->mutex);
    if (shared->throttle.closed(shared->transport.clock().monotonic())) return;
    while (shared->in_flight < shared->in_flight_max && !shared->order.empty()) {
      const auto at = shared->entries.find(shared->order.front());
      shared->order.pop_front();
      if (at->second.wanted) {
        ready.push_back(*at->second.wanted);
        at->second.under_way = true;
        ++shared->in_flight;
      } else {
        shared->entries.erase(at);
      }
    }
  }
  for (UnschedulableStatus& status : ready) send(shared, std::move(status));
}

void StatusWriter::send(const std::shared_ptr<Shared>& shared, UnschedulableStatus status) {
  kube::PodConditionPatch patch{.condition = {"PodScheduled", "False", status.reason, *status.message},
                                .last_transition = {},
                                .observed_generation = status.generation,
                                .nominated_node = status.nominated_node};
  if (status.first) patch.last_transition = shared->transport.clock().wall();
  const auto sent = std::make_shared<const UnschedulableStatus>(std::move(status));
  shared->client.patch_pod_condition(
      sent->namespace_name, sent->pod_name, sent->uid, patch,
      [shared, sent](const Result<std::string>& result) { answered(shared, *sent, result); },
      {.timeout = kTimeout, .may_start = {}});
}

void StatusWriter::answered(const std::shared_ptr<Shared>& shared, const UnschedulableStatus& sent,
                            const Result<std::string>& result) {
  const bool repeat = !result && worth_repeating(result.error());
  std::function<void()> then;
  {
    const std::lock_guard lock(shared->mutex);
    --shared->in_flight;
    const auto at = shared->entries.find(sent.uid);
    Entry& entry = at->second;
    entry.under_way = false;
    then = std::move(entry.then);
    if (repeat && entry.wanted) {
      const Time now = shared->transport.clock().monotonic();
      const Duration wait = shared->throttle.wait(result.error(), entry.repeat_after, now);
      shared->transport.run_after(wait, [shared, uid = sent.uid] {
        {
          const std::lock_guard queue_lock(shared->mutex);
          shared->order.push_back(uid);
        }
        pump(shared);
      });
    } else if (entry.wanted && is_news(*entry.wanted, sent)) {
      entry.wanted->first = sent.first && !result;
      shared->order.push_back(sent.uid);
    } else {
      shared->entries.erase(at);
    }
  }
  if (!repeat) shared->done(result.has_value());
  if (then) then();
  pump(shared);
}

}  // namespace berth::apps
