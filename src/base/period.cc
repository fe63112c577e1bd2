#include "base/period.h"

#include <chrono>
#include <utility>

namespace berth {
namespace {

using std::chrono::days;
using std::chrono::sys_days;

constexpr int64_t kDayNanos = Duration::seconds(24 * 3600).nanos;

Time at(sys_days day) { return {day.time_since_epoch().count() * kDayNanos}; }

// The days on which the period of this moment and the next one begin.
std::pair<sys_days, sys_days> bounds(Period period, Time wall) {
  int64_t number = wall.nanos / kDayNanos;
  if (wall.nanos % kDayNanos < 0) --number;
  const sys_days today{days{number}};
  if (period == Period::kDay) return {today, today + days{1}};
  if (period == Period::kWeek) {
    const sys_days monday = today - (std::chrono::weekday{today} - std::chrono::Monday);
    return {monday, monday + days{7}};
  }
  const std::chrono::year_month_day date{today};
  const std::chrono::year_month month{date.year(), date.month()};
  return {sys_days{month / 1}, sys_days{(month + std::chrono::months{1}) / 1}};
}

}  // namespace

Time period_begin(Period period, Time wall) { return at(bounds(period, wall).first); }
Time period_end(Period period, Time wall) { return at(bounds(period, wall).second); }

std::string_view to_string(Period period) {
  switch (period) {
    case Period::kDay: return "day";
    case Period::kWeek: return "week";
    case Period::kMonth: break;
  }
  return "month";
}

}  // namespace berth
