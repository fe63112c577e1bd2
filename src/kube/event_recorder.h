// EventRecorder: events.k8s.io/v1 events about objects, aggregated and bounded, so that they never become a flood.
//
// Repetitions of an event (same object, action, type, reason and note) within six minutes become one series whose count
// is patched, as client-go's broadcaster does: the first repetition starts a series with count 2, later ones are
// counted here and written with a heartbeat or at the end. Each object has a token bucket (25 at once, then one in five
// minutes, as kubectl's spam filter). The queue is bounded: what does not fit is dropped and counted, and scheduling
// never waits.
//
// record() may be called from any thread. Requests go out in a lane of their own with few in flight. Times come from
// the transport's clock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/time.h"
#include "kube/client.h"

namespace berth::kube {

// What an event is about.
struct EventTarget {
  std::string api_version = "v1";
  std::string kind = "Pod";
  std::string name_space{};  // empty for cluster-wide kinds: their events live in "default"
  std::string name{};
  std::string uid{};
  std::string resource_version{};
};

struct EventNote {
  EventTarget regarding{};
  std::optional<EventTarget> related{};  // what else it is about: for whom, because of what
  std::string type = "Normal";           // or "Warning"
  std::string reason{};                  // "Scheduled"; at most 128 bytes
  std::string action{};                  // "Binding"; at most 128 bytes, must not be empty
  std::string note{};                    // cut to 1,024 bytes at a character's border
};

struct EventRecorderOptions {
  std::string controller = "berth-scheduler";  // reportingController
  std::string instance{};                      // reportingInstance: "berth-scheduler-<host>"
  size_t max_queued = 10'000;
  int max_in_flight = 8;
  int burst_per_object = 25;
  Duration refill_per_object = Duration::seconds(300);
  Duration series_window = Duration::seconds(360);     // a series without a repetition for so long is finished
  Duration series_heartbeat = Duration::seconds(300);  // pending counts of a series are written this often
  size_t max_objects = 20'000;                         // remembered for aggregation and rate limits
  int max_attempts = 5;  // of one write that reaches the server; while it is down, events wait
};

struct EventStats {
  uint64_t recorded = 0;    // calls of record()
  uint64_t created = 0;     // events that the server took
  uint64_t aggregated = 0;  // repetitions counted into a series
  uint64_t dropped = 0;     // queue full, rate limit of the object, or given up after max_attempts
  uint64_t queued = 0;      // writes not yet answered
};

class EventRecorder {
 public:
  EventRecorder(Client& client, EventRecorderOptions options);
  ~EventRecorder();  // drops what is queued
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  void record(const EventNote& note);
  // Changes how many requests may be in flight, so that a caller can hold events back while something urgent is under
  // way.
  void set_max_in_flight(int max);
  // Writes what is queued and the pending counts of all series; false if `limit` passed first. Not on the transport's
  // thread.
  bool flush(Duration limit);
  EventStats stats() const;

 private:
  class Lane;
  std::shared_ptr<Lane> lane_;
};

}  // namespace berth::kube
