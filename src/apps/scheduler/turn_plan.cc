#include "apps/scheduler/turn_plan.h"

#include <algorithm>

namespace berth::apps {

void TurnPlan::begin(Time now) {
  began_ = now;
  updates_ = messages_ = 0;
}

bool TurnPlan::take(size_t updates, Time now) {
  const bool first = messages_ == 0;
  if (!first && (updates_ + updates > bounds_.updates_max || (now - began_) * 2 >= bounds_.longest)) return false;
  updates_ += updates;
  ++messages_;
  return true;
}

int64_t TurnPlan::work() const {
  return std::clamp(bounds_.longest.nanos / 4 / unit_nanos_, bounds_.work_min, bounds_.work_max);
}

// Slower is believed sooner than faster. Few units say nothing: what they took went into something else.
void TurnPlan::cycle_took(Duration took, int64_t work_used) {
  if (work_used < bounds_.work_min) return;
  const int64_t measured = std::max<int64_t>(took.nanos / work_used, 1);
  unit_nanos_ = measured > unit_nanos_ ? (unit_nanos_ + measured + 1) / 2 : (3 * unit_nanos_ + measured) / 4;
}

}  // namespace berth::apps
