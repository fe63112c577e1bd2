#include "base/time.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(Rfc3339, ReadsWhatKubernetesWrites) {
  EXPECT_EQ(parse_rfc3339("1970-01-01T00:00:00Z")->nanos, 0);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05Z")->nanos, 1767323045 * kSecond);
  EXPECT_EQ(parse_rfc3339("2026-01-02T03:04:05.123456Z")->nanos, 1767323045 * kSecond + 123456000);
  EXPECT_EQ(parse_rfc3339("2026-01-02T04:04:05+01:00")->nanos, 1767323045 * kSecond);
  EXPECT_EQ(parse_rfc3339("1969-12-31T23:59:59Z")->nanos, -kSecond);
  EXPECT_EQ(parse_rfc3339("2000-02-29T00:00:00Z")->nanos, 951782400 * kSecond);
}

TEST(Rfc3339, RefusesWhatIsNotATime) {
  for (const auto* text :
       {"", "yesterday", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02T25:04:05Z", "2026-01-02T03:04:05",
        "2026-01-02 03:04:05Z", "2026-01-02T03:04:05+1:00", "2026-01-02T03:04:05Zx", "-026-01-02T03:04:05Z",
        "9999-01-02T03:04:05Z", "2026-01-02T-1:04:05Z", "2026-01-02T03:04:05.Z"})
    EXPECT_FALSE(parse_rfc3339(text)) << text;
}

RC_GTEST_PROP(Rfc3339Property, WrittenTimesReadBackTheSame, ()) {
  const auto seconds = *rc::gen::inRange<int64_t>(-2'000'000'000, 4'000'000'000);
  const auto micros = *rc::gen::inRange<int64_t>(0, 1'000'000);
  RC_ASSERT(parse_rfc3339(format_rfc3339(Time{seconds * kSecond}))->nanos == seconds * kSecond);
  const Time time{seconds * kSecond + micros * 1000};
  RC_ASSERT(parse_rfc3339(format_rfc3339_micro(time))->nanos == time.nanos);
}

TEST(Durations, AreReadAsInGo) {
  EXPECT_EQ(parse_duration("90m")->nanos, 5400 * kSecond);
  EXPECT_EQ(parse_duration("1h30m")->nanos, 5400 * kSecond);
  EXPECT_EQ(parse_duration("1.5h")->nanos, 5400 * kSecond);
  EXPECT_EQ(parse_duration("250ms")->nanos, kSecond / 4);
  EXPECT_EQ(parse_duration("0")->nanos, 0);
  for (const auto* text : {"", "90", "m", "-5m", "1d", "1h 30m", "1.h.m", "99999999999h"})
    EXPECT_FALSE(parse_duration(text)) << text;
  for (const auto* text : {"99999999h", "99999999999999999999h", "600000h1ns"})
    EXPECT_NE(parse_duration(text).error().message.find("is too long"), std::string::npos) << text;
  EXPECT_TRUE(parse_duration("600000h"));
  EXPECT_NE(parse_duration("15").error().message.find("write 15s"), std::string::npos);
}

TEST(Durations, AreWrittenShort) {
  EXPECT_EQ(format_duration(Duration::seconds(5400)), "1h30m");
  EXPECT_EQ(format_duration(Duration::seconds(45)), "45s");
  EXPECT_EQ(format_duration(Duration::seconds(3600)), "1h");
  EXPECT_EQ(format_duration(Duration::millis(250)), "250ms");
}

RC_GTEST_PROP(DurationsProperty, AnyTextIsReadOrRefused, (const std::string& text)) {
  (void)parse_duration(text).has_value();
}

}  // namespace
}  // namespace berth
