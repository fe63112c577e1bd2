#include "apps/scheduler/log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace berth::apps {
namespace {

std::string logged(const char* format, std::string_view message, const std::string& value) {
  set_up_log(format, "info");
  testing::internal::CaptureStderr();
  log_warn(message, {{"key", value}});
  return testing::internal::GetCapturedStderr();
}

TEST(Log, NeitherMessageNorValueForgesALineOrSendsATerminalEscape) {
  const std::string text = logged("text", "no\x1b[31m file\nx", "a\x1b[31m\nb");
  EXPECT_TRUE(text.ends_with(" WARN no\\x1b[31m file\\nx key=\"a\\u001b[31m\\nb\"\n")) << text;
  const std::string json = logged("json", "no\x1b[31m file\nx", "a\x1b[31m\nb");
  EXPECT_EQ(json.find('\x1b'), std::string::npos);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  EXPECT_EQ(nlohmann::json::parse(json).at("msg"), "no\x1b[31m file\nx");
}

}  // namespace
}  // namespace berth::apps
