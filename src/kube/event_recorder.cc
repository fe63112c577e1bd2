#include "kube/event_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "kube/lru_map.h"

namespace berth::kube {
namespace {

using nlohmann::json;

constexpr size_t kMaxNote = 1024, kMaxField = 128, kMaxName = 253;
constexpr Duration kFirstPause = Duration::millis(500), kLongestPause = Duration::seconds(15);

// At most `limit` bytes, never half of a UTF-8 character.
std::string cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return std::string(text);
  size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

// Not sent, or refused unread because the server has too much to do: no try of this event.
bool not_tried(const Error& error) {
  return error.code == ErrorCode::kThrottled || (error.http_status == 0 && io::surely_not_applied(error));
}

std::string namespace_of(const EventTarget& target) {
  return target.name_space.empty() ? "default" : target.name_space;
}

std::string object_key(const EventTarget& target) {
  return fmt::format("{}\n{}\n{}\n{}", target.kind, target.name_space, target.name, target.uid);
}

std::string event_key(const EventNote& note) {
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}", object_key(note.regarding),
                     note.related ? object_key(*note.related) : "", note.type, note.reason, note.action, note.note);
}

// "<object>.<hex>", within the length of a name.
std::string event_name(const std::string& object, uint64_t serial) {
  const std::string tail = fmt::format(".{:x}", serial);
  std::string head = object.substr(0, kMaxName - tail.size());
  while (!head.empty() && (head.back() == '.' || head.back() == '-')) head.pop_back();
  return head + tail;
}

json reference_json(const EventTarget& about) {
  json out = {{"apiVersion", about.api_version}, {"kind", about.kind}, {"name", about.name}};
  if (!about.name_space.empty()) out["namespace"] = about.name_space;
  if (!about.uid.empty()) out["uid"] = about.uid;
  if (!about.resource_version.empty()) out["resourceVersion"] = about.resource_version;
  return out;
}

std::string event_json(const EventNote& note, const EventRecorderOptions& options, const std::string& name, Time wall) {
  const EventTarget& about = note.regarding;
  json event = {{"apiVersion", "events.k8s.io/v1"},
                {"kind", "Event"},
                {"metadata", {{"name", name}, {"namespace", namespace_of(about)}}},
                {"eventTime", format_rfc3339_micro(wall)},
                {"reportingController", options.controller},
                {"reportingInstance", cut(options.instance, kMaxField)},
                {"action", cut(note.action, kMaxField)},
                {"reason", cut(note.reason, kMaxField)},
                {"regarding", reference_json(about)},
                {"note", cut(note.note, kMaxNote)},
                {"type", note.type}};
  if (note.related) event["related"] = reference_json(*note.related);
  return event.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

// The queue and what is remembered. `mutex_` guards all of it; requests are handed to the client outside of it, since a
// transport that is stopped answers at once.
class EventRecorder::Lane : public std::enable_shared_from_this<Lane> {
 public:
  Lane(Client& client, EventRecorderOptions options)
      : client_(client), options_(std::move(options)), series_(options_.max_objects), buckets_(options_.max_objects) {
    if (options_.instance.empty()) options_.instance = options_.controller;
  }

  void start() { schedule_heartbeat(); }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    stats_.dropped += queue_.size();
    queue_.clear();
    idle_.notify_all();
  }

  void record(const EventNote& note) {
    {
      const std::lock_guard lock(mutex_);
      ++stats_.recorded;
      if (stopped_ || !accept(note)) return;
    }
    pump();
  }

  bool flush(Duration limit) {
    {
      const std::lock_guard lock(mutex_);
      for (auto& [key, series] : series_.entries())
        if (!series.busy && series.count > series.written) enqueue_patch(key, series);
    }
    pump();
    std::unique_lock lock(mutex_);
    return idle_.wait_for(lock, std::chrono::nanoseconds(limit.nanos), [&] {
      return stopped_ || outstanding() == 0;
    }) && !stopped_;
  }

  EventStats stats() const {
    const std::lock_guard lock(mutex_);
    EventStats out = stats_;
    out.queued = outstanding();
    return out;
  }

  void set_max_in_flight(int max) {
    {
      const std::lock_guard lock(mutex_);
      options_.max_in_flight = std::max(max, 1);
    }
    pump();
  }

 private:
  // One event on the server and how often it has happened since.
  struct Series {
    std::string name_space, name;
    int64_t count = 1;    // seen
    int64_t written = 0;  // told to the server
    bool busy = true;     // a write of it is queued or in flight
    Time last_wall{}, last_mono{};
  };
  struct Bucket {
    double tokens = 0;
    Time at{};
  };
  struct Write {
    std::string key;
    std::string name_space, name;
    std::string body{};  // of a create; a patch is made when it is sent
    int attempts = 0;
    int64_t count = 1;
  };

  Time mono() const { return client_.transport().clock().monotonic(); }
  Time wall() const { return client_.transport().clock().wall(); }
  size_t outstanding() const { return queue_.size() + static_cast<size_t>(in_flight_); }

  // Counts a repetition, or queues a new event; false if there is nothing to send now.
  bool accept(const EventNote& note) {
    const std::string key = event_key(note);
    const Time now = mono();
    if (Series* series = series_.find(key); series != nullptr && now - series->last_mono <= options_.series_window) {
      ++stats_.aggregated;
      ++series->count;
      series->last_mono = now;
      series->last_wall = wall();
      if (series->busy || series->written != 1) return false;
      enqueue_patch(key, *series);
      return true;
    }
    series_.erase(key);
    if (!take_token(object_key(note.regarding), now) || outstanding() >= options_.max_queued) {
      ++stats_.dropped;
      return false;
    }
    const Time at = wall();
    serial_ = std::max(serial_ + 1, static_cast<uint64_t>(at.nanos));
    Series series{.name_space = namespace_of(note.regarding),
                  .name = event_name(note.regarding.name, serial_),
                  .last_wall = at,
                  .last_mono = now};
    queue_.push_back({.key = key,
                      .name_space = series.name_space,
                      .name = series.name,
                      .body = event_json(note, options_, series.name, at)});
    series_.insert(key, std::move(series));
    return true;
  }

  bool take_token(const std::string& object, Time now) {
    Bucket* bucket = buckets_.find(object);
    if (bucket == nullptr) bucket = &buckets_.insert(object, {static_cast<double>(options_.burst_per_object), now});
    const double refill = (now - bucket->at).as_seconds() / options_.refill_per_object.as_seconds();
    bucket->tokens = std::min(static_cast<double>(options_.burst_per_object), bucket->tokens + refill);
    bucket->at = now;
    if (bucket->tokens < 1) return false;
    bucket->tokens -= 1;
    return true;
  }

  void enqueue_patch(const std::string& key, Series& series) {
    series.busy = true;
    queue_.push_back({.key = key, .name_space = series.name_space, .name = series.name});
  }

  void pump() {
    std::vector<Write> ready;
    {
      const std::lock_guard lock(mutex_);
      while (!stopped_ && mono() >= paused_until_ && in_flight_ < options_.max_in_flight && !queue_.empty()) {
        ready.push_back(std::move(queue_.front()));
        queue_.pop_front();
        ++in_flight_;
      }
      for (Write& write : ready) {
        const Series* series = series_.peek(write.key);
        write.count = write.body.empty() && series != nullptr ? series->count : 1;
      }
    }
    for (Write& write : ready) send(std::move(write));
  }

  void send(Write write) {
    const auto shared = std::make_shared<Write>(std::move(write));
    auto done = [self = shared_from_this(), shared](const Result<std::string>& answer) {
      self->on_answer(*shared, answer);
    };
    if (!shared->body.empty()) {
      client_.create(kEvents.collection(shared->name_space), shared->body, std::move(done));
      return;
    }
    const json body = {
        {"series", {{"count", shared->count}, {"lastObservedTime", format_rfc3339_micro(last_seen(shared->key))}}}};
    client_.patch(kEvents.object(shared->name_space, shared->name), PatchType::kMerge, body.dump(), std::move(done));
  }

  Time last_seen(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const Series* series = series_.peek(key);
    return series != nullptr ? series->last_wall : wall();
  }

  void on_answer(Write& write, const Result<std::string>& answer) {
    {
      const std::lock_guard lock(mutex_);
      --in_flight_;
      // The name is ours alone, so "exists already" is an earlier try of the same write.
      const bool done = answer || (!write.body.empty() && answer.error().code == ErrorCode::kConflict);
      if (done) {
        on_written(write);
      } else if (write.attempts += !not_tried(answer.error()); may_retry(write, answer.error())) {
        retry_later(std::move(write), answer.error());
      } else {
        ++stats_.dropped;
        forget(write);
      }
      if (outstanding() == 0) idle_.notify_all();
    }
    pump();
  }

  void on_written(const Write& write) {
    pause_ = {};
    if (!write.body.empty()) ++stats_.created;
    Series* series = series_.peek(write.key);
    if (series == nullptr || series->name != write.name) return;
    series->written = write.count;
    series->busy = false;
    if (write.count == 1 && series->count > 1) enqueue_patch(write.key, *series);
  }

  // A write that the server has looked at is tried max_attempts times; one that it has not is kept: the queue is
  // bounded.
  bool may_retry(const Write& write, const Error& error) const {
    const bool passing = error.code == ErrorCode::kThrottled || error.code == ErrorCode::kUnavailable ||
                         error.code == ErrorCode::kTimeout;
    return passing && write.attempts < options_.max_attempts && !stopped_;
  }

  // A server that is down or asks to slow down holds up the whole lane, so that what is queued does not use up its
  // tries.
  void retry_later(Write write, const Error& error) {
    queue_.push_front(std::move(write));
    if (mono() < paused_until_) return;
    pause_ = pause_.nanos == 0 ? kFirstPause : std::min(pause_ * 2, kLongestPause);
    const Duration wait = std::max(pause_, retry_after(error));
    paused_until_ = mono() + wait;
    client_.transport().run_after(wait, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->pump();
    });
  }

  void forget(const Write& write) {
    const Series* series = series_.peek(write.key);
    if (series != nullptr && series->name == write.name) series_.erase(write.key);
  }

  void schedule_heartbeat() {
    client_.transport().run_after(options_.series_heartbeat, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->heartbeat();
      self->pump();
      self->schedule_heartbeat();
    });
  }

  // Writes the counts that the server does not know, and forgets series that are over.
  void heartbeat() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> over;
    for (auto& [key, series] : series_.entries()) {
      if (series.busy) continue;
      if (series.count > series.written) {
        enqueue_patch(key, series);
      } else if (mono() - series.last_mono > options_.series_window) {
        over.push_back(key);
      }
    }
    for (const std::string& key : over) series_.erase(key);
  }

  Client& client_;
  EventRecorderOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  bool stopped_ = false;
  std::deque<Write> queue_;
  int in_flight_ = 0;
  Time paused_until_{};  // monotonic
  Duration pause_{};     // the latest; doubles until a write succeeds
  LruMap<Series> series_;
  LruMap<Bucket> buckets_;
  uint64_t serial_ = 0;
  EventStats stats_;
};

EventRecorder::EventRecorder(Client& client, EventRecorderOptions options)
    : lane_(std::make_shared<Lane>(client, std::move(options))) {
  lane_->start();
}
EventRecorder::~EventRecorder() { lane_->stop(); }
void EventRecorder::set_max_in_flight(int max) { lane_->set_max_in_flight(max); }
void EventRecorder::record(const EventNote& note) { lane_->record(note); }
bool EventRecorder::flush(Duration limit) { return lane_->flush(limit); }
EventStats EventRecorder::stats() const { return lane_->stats(); }

}  // namespace berth::kube
