#include "apps/progress_line.h"

#include <gtest/gtest.h>

#include <sstream>

namespace berth::apps {
namespace {

Time at_ms(int64_t ms) { return Time{} + Duration::millis(ms); }

std::string shown(bool terminal, const std::vector<int64_t>& times_ms) {
  std::ostringstream out;
  {
    ProgressLine line(out, terminal, Time{});
    for (const int64_t ms : times_ms) line.update(at_ms(ms), [&] { return std::to_string(ms); });
  }
  return out.str();
}

TEST(ProgressLine, ShortCommandsSayNothing) {
  EXPECT_EQ(shown(true, {0, 100, 499}), "");
  EXPECT_EQ(shown(false, {0, 500, 9999}), "");
}

TEST(ProgressLine, ATerminalSeesOneLineThatIsWipedAtTheEnd) {
  EXPECT_EQ(shown(true, {500, 600, 700}), "\r\033[K500\r\033[K700\r\033[K");
}

TEST(ProgressLine, ALogGetsALineEveryTenSeconds) {
  EXPECT_EQ(shown(false, {5000, 10000, 15000, 20001}), "10000\n20001\n");
}

}  // namespace
}  // namespace berth::apps
