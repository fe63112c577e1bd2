#include "apps/scheduler/evictor.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "api/patch.h"
#include "apps/scheduler/throttle.h"

namespace berth::apps {
namespace {

constexpr int kForbiddenMax = 4;  // in a row; about three seconds

// One victim's eviction, which is in the queue, under way or backing off.
struct Entry {
  Eviction eviction;
  bool marked = false;  // the condition is stored: the deletion is next
  bool under_way = false;
  bool outcome_open = false;  // some deletion may have been stored, or may yet be
  bool withdrawn = false;
  int forbidden = 0;
  Duration repeat_after = Throttle::kRepeatMin;
};

// A pod of this name, but another one. The server says 422 to the patch (which the client turns into kConflict), and
// 409 to the deletion; other conflicts pass.
bool is_another(const Error& error) {
  if (error.http_status == 422) return error.code == ErrorCode::kConflict;
  return error.http_status == 409 && error.message.find("UID") != std::string::npos;
}

bool is_final(const Error& error) {
  for (const int status : {400, 405, 413, 415, 422})
    if (error.http_status == status) return true;
  return false;
}

}  // namespace

struct Evictor::Shared {
  kube::Client& client;
  io::Transport& transport;
  const int in_flight_max;
  const Duration timeout;
  const std::function<bool()> may_send;
  const Sink sink;
  mutable std::mutex mutex;
  absl::flat_hash_map<std::string, Entry> entries;  // by UID of the victim
  std::deque<std::string> order;                    // the queue: UIDs, each in `entries`
  int in_flight = 0;
  Throttle throttle;

  // Takes the entry out and says how it ended; `mutex` is held.
  EvictionReport end(const std::string& uid, EvictionEnd how, const Error* error = nullptr) {
    const auto at = entries.find(uid);
    EvictionReport report{std::move(at->second.eviction), how, error == nullptr ? "" : error->message,
                          error != nullptr && error->http_status == 403};
    entries.erase(at);
    return report;
  }
  std::optional<EvictionReport> take_answer(const std::string& uid, const Result<std::string>& result,
                                            Duration& repeat_after);
};

std::string_view to_string(EvictionEnd end) {
  switch (end) {
    case EvictionEnd::kEvicted: return "evicted";
    case EvictionEnd::kGone: return "gone";
    case EvictionEnd::kRefused: return "refused";
    case EvictionEnd::kWithdrawn: return "withdrawn";
  }
  return "";
}

Evictor::Evictor(kube::Client& client, io::Transport& transport, int in_flight_max, Duration timeout,
                 std::function<bool()> may_send, Sink sink)
    : shared_(new Shared{
          client, transport, in_flight_max, timeout, std::move(may_send), std::move(sink), {}, {}, {}, 0, {}}) {}

void Evictor::evict(Eviction eviction) {
  {
    const std::lock_guard lock(shared_->mutex);
    std::string uid = eviction.victim.uid;
    const auto [at, added] = shared_->entries.try_emplace(uid);
    at->second.eviction = std::move(eviction);
    at->second.withdrawn = false;
    if (added) shared_->order.push_back(std::move(uid));
  }
  pump(shared_);
}

void Evictor::withdraw(std::string_view preemptor_uid) {
  std::vector<EvictionReport> ended;
  {
    const std::lock_guard lock(shared_->mutex);
    std::vector<std::string> idle;
    for (auto& [uid, entry] : shared_->entries) {
      if (entry.eviction.preemptor.uid != preemptor_uid || entry.outcome_open) continue;
      entry.withdrawn = true;
      if (!entry.under_way) idle.push_back(uid);
    }
    std::sort(idle.begin(), idle.end());
    for (const std::string& uid : idle) ended.push_back(shared_->end(uid, EvictionEnd::kWithdrawn));
  }
  for (EvictionReport& report : ended) shared_->sink(std::move(report));
}

size_t Evictor::outstanding() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->entries.size();
}

size_t Evictor::under_way() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->order.size() + static_cast<size_t>(shared_->in_flight);
}

void Evictor::pump(const std::shared_ptr<Shared>& shared) {
  std::vector<std::string> ready;
  {
    const std::lock_guard lock(shared->mutex);
    if (shared->throttle.closed(shared->transport.clock().monotonic())) return;
    while (shared->in_flight < shared->in_flight_max && !shared->order.empty()) {
      const auto at = shared->entries.find(shared->order.front());
      if (at != shared->entries.end() && !at->second.under_way) {  // else withdrawn, and perhaps back since
        at->second.under_way = true;
        ++shared->in_flight;
        ready.push_back(at->first);
      }
      shared->order.pop_front();
    }
  }
  for (const std::string& uid : ready) send(shared, uid);
}

void Evictor::send(const std::shared_ptr<Shared>& shared, const std::string& uid) {
  kube::EventTarget victim;
  kube::PodConditionPatch patch;
  bool marked = false;
  {
    const std::lock_guard lock(shared->mutex);
    const Entry& entry = shared->entries.at(uid);  // stays while it is under way
    marked = entry.marked;
    victim = entry.eviction.victim;
    patch.condition = {"DisruptionTarget", "True", "PreemptionByScheduler",
                       entry.eviction.scheduler_name + ": preempting to accommodate a higher priority pod"};
    patch.observed_generation = entry.eviction.victim_generation;
  }
  const auto done = [shared, uid](const Result<std::string>& result) { answered(shared, uid, result); };
  const kube::CallOptions options{.timeout = shared->timeout, .may_start = shared->may_send};
  if (marked)
    return shared->client.remove(kube::kPods.object(victim.name_space, victim.name),
                                 api::delete_options_json(victim.uid), done, options);
  patch.last_transition = shared->transport.clock().wall();
  shared->client.patch_pod_condition(victim.name_space, victim.name, victim.uid, patch, done, options);
}

// What an answer makes of its entry, which is not under way any more: a report if it has ended; else it is to be sent
// again, after `repeat_after`.
std::optional<EvictionReport> Evictor::Shared::take_answer(const std::string& uid, const Result<std::string>& result,
                                                           Duration& repeat_after) {
  Entry& entry = entries.at(uid);
  entry.under_way = false;
  const bool deletion = std::exchange(entry.marked, entry.marked || result.has_value());
  if (result && deletion) return end(uid, EvictionEnd::kEvicted);
  if (!result) {
    const Error& error = result.error();
    const bool gone = error.http_status == 404 || is_another(error);
    if (gone) return end(uid, entry.outcome_open ? EvictionEnd::kEvicted : EvictionEnd::kGone);
    entry.outcome_open |= deletion && !io::surely_not_applied(error);
    entry.forbidden = error.http_status == 403 ? entry.forbidden + 1 : 0;
    if (is_final(error) || entry.forbidden >= kForbiddenMax) return end(uid, EvictionEnd::kRefused, &error);
  }
  if (entry.withdrawn && !entry.outcome_open) return end(uid, EvictionEnd::kWithdrawn);
  if (result) return std::nullopt;
  repeat_after = throttle.wait(result.error(), entry.repeat_after, transport.clock().monotonic());
  return std::nullopt;
}

void Evictor::answered(const std::shared_ptr<Shared>& shared, const std::string& uid,
                       const Result<std::string>& result) {
  std::optional<EvictionReport> report;
  {
    const std::lock_guard lock(shared->mutex);
    --shared->in_flight;
    Duration repeat_after{};
    report = shared->take_answer(uid, result, repeat_after);
    if (!report && result) {
      shared->order.push_front(uid);  // marked: the deletion goes before other evictions
    } else if (!report) {
      shared->transport.run_after(repeat_after, [shared, uid] {
        {
          const std::lock_guard queue_lock(shared->mutex);
          shared->order.push_back(uid);
        }
        pump(shared);
      });
    }
  }
  if (report) shared->sink(std::move(*report));
  pump(shared);
}

}  // namespace berth::apps
