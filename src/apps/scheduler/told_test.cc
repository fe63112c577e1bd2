#include "apps/scheduler/told.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Told::Text text(const std::string& words) { return std::make_shared<const std::string>(words); }
Time after(Duration duration) { return Time{} + duration; }

class ToldTest : public testing::Test {
 protected:
  std::vector<std::string> due(Time now, size_t max = 10) {
    std::vector<std::string> out;
    for (const auto& [uid, words] : told_.due(now, max)) out.push_back(uid + " " + *words);
    return out;
  }
  Told told_;
  const Time later_ = after(Told::kRemindAfter);
};

TEST_F(ToldTest, TheSameTextIsNoNews) {
  Told::News news = told_.tell("a", text("one"), Time{});
  EXPECT_TRUE(news.is_new && news.first);
  EXPECT_FALSE(told_.tell("a", text("one"), Time{}).is_new);
  news = told_.tell("a", text("two"), Time{});
  EXPECT_TRUE(news.is_new && !news.first);
  told_.forget("a");
  EXPECT_TRUE(told_.tell("a", text("two"), Time{}).first);
}

TEST_F(ToldTest, WhoWaitsIsRemindedAgainAndAgainBeforeTheServerForgets) {
  EXPECT_LT(Told::kRemindAfter * 2, Duration::seconds(3600));
  told_.tell("a", text("one"), Time{});
  told_.tell("b", text("one"), after(Duration::seconds(1)));
  told_.tell("c", text("one"), after(Duration::seconds(2)));
  told_.forget("b");
  EXPECT_THAT(due(later_ + Duration::millis(-1)), IsEmpty());
  EXPECT_THAT(due(later_), ElementsAre("a one"));
  EXPECT_THAT(due(later_), IsEmpty());
  EXPECT_THAT(due(later_ + Told::kRemindAfter, 1), ElementsAre("c one"));
  EXPECT_THAT(due(later_ + Told::kRemindAfter, 1), ElementsAre("a one"));
}

TEST_F(ToldTest, AListPutsOffNoReminder) {
  told_.tell("a", text("one"), Time{});
  told_.tell("gone", text("one"), Time{});
  told_.tell("changed", text("one"), Time{});
  told_.replace_all({{"a", "one"}, {"changed", "two"}, {"found", "three"}}, later_ + Duration::millis(-1));
  EXPECT_FALSE(told_.tell("found", text("three"), later_).is_new);
  EXPECT_THAT(due(later_), ElementsAre("a one"));
  EXPECT_THAT(due(later_ + Duration{Told::kRemindAfter.nanos / 2}), ElementsAre("changed two", "found three"));
}

}  // namespace
}  // namespace berth::apps
