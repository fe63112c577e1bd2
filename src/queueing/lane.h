// Lane: what is written to one object: one write at a time, and the next after a pause where one came to nothing.
#pragma once

#include <algorithm>

#include "base/time.h"
#include "queueing/write.h"

namespace berth::queueing {

struct Lane {
  bool busy = false;
  Time from{INT64_MIN};  // the next may be tried
  Duration backoff = {};

  bool is_free(Time now) const { return !busy && from <= now; }
  void answered(const Answer& answer, Time now) {
    constexpr Duration kRetryMin = Duration::seconds(1), kRetryMax = Duration::seconds(30);
    if (answer.stored) {
      *this = {};
      return;
    }
    busy = false;
    // What the watch is about to bring (another version, an object that is there or gone) comes soon.
    const bool news = answer.http_status == 404 || answer.http_status == 409;
    backoff = news ? kRetryMin : std::clamp(backoff + backoff, kRetryMin, kRetryMax);
    from = now + std::max(backoff, answer.wait);
  }
};

}  // namespace berth::queueing
