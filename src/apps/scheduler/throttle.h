// Throttle: when a write that failed is tried again, for lanes that keep their own queue of writes.
//
// Each write backs off by itself; a 429 holds up all writes of the lane. Not thread-safe: the lane's lock guards it.
// Lane (apps/scheduler/lane.h) is for requests that are let out one by one.
#pragma once

#include "base/result.h"
#include "base/time.h"

namespace berth::apps {

class Throttle {
 public:
  // The first back-off of a write; each further one is twice as long, up to a quarter of a minute.
  static constexpr Duration kRepeatMin = Duration::millis(400);

  // The wait before the same write is tried again; `repeat_after` is its back-off, which grows.
  Duration wait(const Error& error, Duration& repeat_after, Time now);
  // Nothing is to be sent: the server has too much to do.
  bool closed(Time now) const { return now < closed_until_; }

 private:
  Time closed_until_{};
};

}  // namespace berth::apps
