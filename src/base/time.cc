#include "base/time.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/int128.h"

namespace berth {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Days since 1970-01-01 of a proleptic Gregorian date (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
int64_t days_from_civil(int64_t year, unsigned month, unsigned day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const auto year_of_era = static_cast<unsigned>(year - era * 400);
  const unsigned day_of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
  const unsigned day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + static_cast<int64_t>(day_of_era) - 719468;
}

struct Civil {
  int64_t year;
  unsigned month, day;
};

Civil civil_from_days(int64_t days) {
  days += 719468;
  const int64_t era = (days >= 0 ? days : days - 146096) / 146097;
  const auto doe = static_cast<unsigned>(days - era * 146097);
  const unsigned yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
  const unsigned doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
  const unsigned mp = (5 * doy + 2) / 153;
  const unsigned month = mp < 10 ? mp + 3 : mp - 9;
  return {static_cast<int64_t>(yoe) + era * 400 + (month <= 2), month, doy - (153 * mp + 2) / 5 + 1};
}

std::string format_seconds(Time wall) {
  int64_t seconds = wall.nanos / kNanosPerSecond;
  if (wall.nanos % kNanosPerSecond < 0) --seconds;
  int64_t days = seconds / 86400;
  int64_t rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    --days;
  }
  const Civil date = civil_from_days(days);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", date.year, date.month, date.day, rest / 3600,
                     rest / 60 % 60, rest % 60);
}

bool read_digits(std::string_view text, size_t at, size_t count, int64_t& out) {
  if (at + count > text.size() || text[at] == '-') return false;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, out);
  return error == std::errc{} && end == text.data() + at + count;
}

}  // namespace

std::string format_rfc3339(Time wall) { return format_seconds(wall) + "Z"; }

std::string format_rfc3339_micro(Time wall) {
  int64_t nanos = wall.nanos % kNanosPerSecond;
  if (nanos < 0) nanos += kNanosPerSecond;
  return fmt::format("{}.{:06}Z", format_seconds(wall), nanos / 1000);
}

Result<Time> parse_rfc3339(std::string_view text) {
  const auto bad = [&] {
    return fail(ErrorCode::kInvalidInput,
                fmt::format("'{}' is not an RFC 3339 time such as 2026-01-02T03:04:05Z", text));
  };
  int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!(read_digits(text, 0, 4, year) && read_digits(text, 5, 2, month) && read_digits(text, 8, 2, day) &&
        read_digits(text, 11, 2, hour) && read_digits(text, 14, 2, minute) && read_digits(text, 17, 2, second)))
    return bad();
  const bool separators =
      text[4] == '-' && text[7] == '-' && (text[10] == 'T' || text[10] == 't') && text[13] == ':' && text[16] == ':';
  if (!separators || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60)
    return bad();
  size_t at = 19;
  int64_t nanos = 0;
  if (at < text.size() && text[at] == '.') {
    int64_t scale = kNanosPerSecond / 10;
    const size_t first = ++at;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, scale /= 10) nanos += (text[at] - '0') * scale;
    if (at == first) return bad();
  }
  int64_t offset_s = 0;
  if (at < text.size() && (text[at] == '+' || text[at] == '-')) {
    int64_t offset_h = 0, offset_m = 0;
    if (!read_digits(text, at + 1, 2, offset_h) || !read_digits(text, at + 4, 2, offset_m) || text.size() != at + 6)
      return bad();
    offset_s = (offset_h * 3600 + offset_m * 60) * (text[at] == '+' ? 1 : -1);
  } else if (at + 1 != text.size() || (text[at] != 'Z' && text[at] != 'z')) {
    return bad();
  }
  const int64_t days = days_from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day));
  if (days > 100'000 || days < -100'000) return bad();
  return Time{(days * 86400 + hour * 3600 + minute * 60 + second - offset_s) * kNanosPerSecond + nanos};
}

Result<Duration> parse_duration(std::string_view text) {
  constexpr int64_t kLongestHours = 600'000;
  const auto bad = [&] {
    const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
    return fail(ErrorCode::kInvalidInput, digits
                                              ? fmt::format("'{}' is a duration without a unit; write {}s", text, text)
                                              : fmt::format("'{}' is not a duration such as 90m, 1h30m or 45s", text));
  };
  const auto too_long = [&] {
    return fail(ErrorCode::kInvalidInput, fmt::format("'{}' is too long; a duration is 600000h at most", text));
  };
  if (text == "0") return Duration{0};
  struct Unit {
    std::string_view name;
    int64_t nanos;
  };
  // clang-format off
  static constexpr std::array<Unit, 6> kUnits{{{"ns", 1}, {"us", 1000}, {"ms", 1'000'000}, {"s", kNanosPerSecond},
                                               {"m", 60 * kNanosPerSecond}, {"h", 3600 * kNanosPerSecond}}};
  // clang-format on
  Int128 total = 0;
  size_t at = 0;
  if (text.empty()) return bad();
  while (at < text.size()) {
    int64_t whole = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), whole);
    if (error == std::errc::result_out_of_range && text[at] != '-') return too_long();
    if (error != std::errc{} || whole < 0 || text[at] == '-') return bad();
    at = static_cast<size_t>(end - text.data());
    int64_t fraction = 0, scale = 1;
    if (at < text.size() && text[at] == '.') {
      for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
        if (scale < kNanosPerSecond) fraction = fraction * 10 + (text[at] - '0'), scale *= 10;
    }
    size_t letters = at;
    while (letters < text.size() && text[letters] >= 'a' && text[letters] <= 'z') ++letters;
    const std::string_view name = text.substr(at, letters - at);
    const Unit* unit = nullptr;
    for (const Unit& candidate : kUnits)
      if (candidate.name == name) unit = &candidate;
    if (unit == nullptr) return bad();
    total += static_cast<Int128>(whole) * unit->nanos + static_cast<Int128>(fraction) * unit->nanos / scale;
    if (total > kLongestHours * 3600 * kNanosPerSecond) return too_long();
    at = letters;
  }
  return Duration{static_cast<int64_t>(total)};
}

std::string format_duration(Duration duration) {
  const int64_t millis = duration.nanos / 1'000'000;
  if (millis < 1000) return fmt::format("{}ms", millis);
  const int64_t seconds = millis / 1000;
  std::string out;
  if (seconds >= 3600) out += fmt::format("{}h", seconds / 3600);
  if (seconds / 60 % 60 != 0) out += fmt::format("{}m", seconds / 60 % 60);
  if (seconds % 60 != 0 || out.empty()) out += fmt::format("{}s", seconds % 60);
  return out;
}

}  // namespace berth
