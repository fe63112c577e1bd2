// Time as the engine knows it: integers since the Unix epoch, handed in, never asked for.
//
// Only src/io, src/kube and src/apps read a clock, through the Clock interface, so that tests and the simulator can
// play time. WallTime is for what Kubernetes shows (timestamps); MonoTime for deadlines and back-off, since it never
// jumps.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace berth {

struct Duration {
  int64_t nanos = 0;
  static constexpr Duration seconds(int64_t s) { return {s * 1'000'000'000}; }
  static constexpr Duration millis(int64_t ms) { return {ms * 1'000'000}; }
  constexpr double as_seconds() const { return static_cast<double>(nanos) / 1e9; }
  friend constexpr auto operator<=>(const Duration&, const Duration&) = default;
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.nanos + b.nanos}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.nanos - b.nanos}; }
  friend constexpr Duration operator*(Duration a, int64_t n) { return {a.nanos * n}; }
};

// A moment; what it counts from is the Clock's affair (the engine only compares and subtracts).
struct Time {
  int64_t nanos = 0;
  friend constexpr auto operator<=>(const Time&, const Time&) = default;
  friend constexpr Time operator+(Time t, Duration d) { return {t.nanos + d.nanos}; }
  friend constexpr Duration operator-(Time a, Time b) { return {a.nanos - b.nanos}; }
};

// RFC 3339 in UTC, as Kubernetes writes metav1.Time ("2026-01-02T03:04:05Z") and MicroTime (with six decimals).
std::string format_rfc3339(Time wall);
std::string format_rfc3339_micro(Time wall);
// Accepts both of these and any number of decimals; offsets other than Z are converted.
Result<Time> parse_rfc3339(std::string_view text);

// Go's duration syntax as Kubernetes users write it: "90m", "1h30m", "500ms", "10s"; a bare number is refused.
Result<Duration> parse_duration(std::string_view text);
// Shortest such text in whole units that a user reads at a glance: "1h30m", "45s", "250ms".
std::string format_duration(Duration duration);

// Where the two clocks come from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time wall() const = 0;       // since the Unix epoch
  virtual Time monotonic() const = 0;  // since some fixed start; never goes back
};

}  // namespace berth
