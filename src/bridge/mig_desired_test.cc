#include "bridge/mig_desired.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::bridge {
namespace {

using ::testing::HasSubstr;

MigDesired example() {
  MigDesired out;
  out.id = "17";
  out.state = MigDesired::State::kFailed;
  out.since = Time{1'000'000'000'000'000'000};
  out.until = out.since + Duration::seconds(600);
  out.failures = 2;
  out.reason = "why \"not\"";
  out.config = "all-1g.5gb";
  out.resources = {{"nvidia.com/gpu", 1}, {"nvidia.com/mig-1g.5gb", 7}};
  out.devices = {{"GPU-1", true, {{"", "1g.5gb", 0}, {"", "3g.20gb", 4}}}, {"", false, {}}};
  return out;
}

TEST(MigDesired, IsReadAsItWasWritten) {
  const MigDesired wanted = example();
  const MigDesired read = read_mig_desired(mig_desired_json(wanted)).value();
  EXPECT_EQ(read.id, wanted.id);
  EXPECT_EQ(read.state, wanted.state);
  EXPECT_EQ(read.since, wanted.since);
  EXPECT_EQ(read.until, wanted.until);
  EXPECT_EQ(read.failures, 2);
  EXPECT_EQ(read.reason, wanted.reason);
  EXPECT_EQ(read.config, wanted.config);
  EXPECT_EQ(read.resources, wanted.resources);
  EXPECT_EQ(read.devices, wanted.devices);
}

TEST(MigDesired, IsRefusedWithTheFieldThatIsWrong) {
  const auto why = [](std::string_view text) { return read_mig_desired(text).error().message; };
  EXPECT_THAT(why(R"({"version": "v2"})"), HasSubstr("'v2' is not v1"));
  EXPECT_THAT(why(R"({"version": "v1", "state": "maybe"})"), HasSubstr("'maybe' is none of"));
  EXPECT_THAT(why(R"({"version": "v1", "until": "soon"})"), HasSubstr("until"));
  EXPECT_THAT(why("[]"), HasSubstr("object"));
  EXPECT_TRUE(read_mig_desired(R"({"version": "v1", "later": {}})")) << "fields of a newer version pass";
}

}  // namespace
}  // namespace berth::bridge
