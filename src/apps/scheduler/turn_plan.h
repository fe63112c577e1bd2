// TurnPlan: bounds what the owner thread does at a stretch, between two looks at what has come.
//
// A turn takes in updates, runs one cycle and hands out its decisions. Its bounds are units, so that it ends whatever
// comes, and the units follow the clock, so that it ends within `longest` on this machine: once half of that is used no
// further message is taken, and the cycle may examine as many candidates as a quarter sufficed for lately. The rest is
// for the decisions, which are bounded too. What a turn cannot divide is one message: a list is applied whole.
//
// Owner thread only. Invariants: 1. a turn takes at most updates_max updates, or a single message; 2. a cycle gets
// work_min to work_max units of work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace berth::apps {

struct TurnBounds {
  Duration longest = Duration::millis(250);
  size_t updates_max = 2000;
  int64_t work_min = 1000;
  int64_t work_max = 200'000;
};

class TurnPlan {
 public:
  explicit TurnPlan(TurnBounds bounds) : bounds_(bounds) {}

  void begin(Time now);
  // Counts the next message, of so many updates, to this turn; false: it has to wait for the next one.
  bool take(size_t updates, Time now);
  // Candidates that a cycle may examine.
  int64_t work() const;
  // What a cycle has used: time in the engine, units of work.
  void cycle_took(Duration took, int64_t work_used);

  const TurnBounds& bounds() const { return bounds_; }
  // In this turn so far.
  size_t updates() const { return updates_; }
  size_t messages() const { return messages_; }

 private:
  const TurnBounds bounds_;
  Time began_;
  size_t updates_ = 0, messages_ = 0;
  int64_t unit_nanos_ = 1000;  // what one unit of work costs; a careful guess until some have been measured
};

}  // namespace berth::apps
