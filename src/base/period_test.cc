#include "base/period.h"

#include <gtest/gtest.h>

namespace berth {
namespace {

Time at(const char* text) { return *parse_rfc3339(text); }

void expect_period(Period period, const char* moment, const char* begin, const char* end) {
  EXPECT_EQ(format_rfc3339(period_begin(period, at(moment))), begin) << moment;
  EXPECT_EQ(format_rfc3339(period_end(period, at(moment))), end) << moment;
}

TEST(Period, IsADayAWeekFromMondayOrAMonthInUtc) {
  expect_period(Period::kDay, "2026-11-23T16:04:05Z", "2026-11-23T00:00:00Z", "2026-11-24T00:00:00Z");
  expect_period(Period::kWeek, "2026-11-23T00:00:00Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z");
  expect_period(Period::kWeek, "2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
  expect_period(Period::kMonth, "2026-12-31T23:59:59Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
  expect_period(Period::kMonth, "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z");
  expect_period(Period::kDay, "1969-12-31T23:00:00Z", "1969-12-31T00:00:00Z", "1970-01-01T00:00:00Z");
}

}  // namespace
}  // namespace berth
