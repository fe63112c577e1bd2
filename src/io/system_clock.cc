#include "io/system_clock.h"

#include <ctime>

namespace berth::io {
namespace {

Time read(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return Time{static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

}  // namespace

Time SystemClock::wall() const { return read(CLOCK_REALTIME); }
Time SystemClock::monotonic() const { return read(CLOCK_BOOTTIME); }

const SystemClock& SystemClock::instance() {
  static const SystemClock clock;
  return clock;
}

}  // namespace berth::io
