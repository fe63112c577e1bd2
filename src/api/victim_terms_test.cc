#include "api/victim_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::api {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

ObjectMeta with(std::initializer_list<std::pair<std::string_view, const char*>> annotations) {
  ObjectMeta out;
  for (const auto& [key, value] : annotations) out.annotations.set(std::string(key), value);
  return out;
}

TEST(VictimTerms, WhatIsDeclaredIsRead) {
  const auto saves = checkpoints_of(
      with({{kCheckpointIntervalAnnotation, "30m"}, {kLastCheckpointAnnotation, "2026-01-02T03:04:05Z"}}));
  EXPECT_EQ(saves.interval, Duration::seconds(1800));
  EXPECT_EQ(saves.last, *parse_rfc3339("2026-01-02T03:04:05Z"));
  const auto terms = victim_terms_of(with({{kMinimumRuntimeAnnotation, "10m"},
                                           {kVictimOrderAnnotation, "least-lost-work"},
                                           {kLostWorkMaxAnnotation, "2h"}}));
  EXPECT_EQ(terms.min_runtime, Duration::seconds(600));
  EXPECT_EQ(terms.loss_max, Duration::seconds(7200));
  EXPECT_TRUE(terms.least_loss_first);
}

TEST(VictimTerms, WhatIsNoSuchThingCountsAsAbsentAndIsTold) {
  EXPECT_EQ(checkpoints_of(with({{kCheckpointIntervalAnnotation, "-1m"}, {kLastCheckpointAnnotation, "today"}})),
            model::Checkpoints{});
  EXPECT_EQ(victim_terms_of(with({{kMinimumRuntimeAnnotation, "long"}, {kVictimOrderAnnotation, "mine-last"}})),
            model::VictimTerms{});
  EXPECT_THAT(victim_annotation_problem(kLastCheckpointAnnotation, "today"), HasSubstr("2026-01-02T15:04:05Z"));
  EXPECT_THAT(victim_annotation_problem(kVictimOrderAnnotation, "mine-last"), HasSubstr("least-lost-work or kueue"));
  EXPECT_THAT(victim_annotation_problem(kCheckpointIntervalAnnotation, "0s"), HasSubstr("not above 0"));
  EXPECT_EQ(victim_annotation_problem(kMinimumRuntimeAnnotation, "0"), "") << "what holds by default";
  EXPECT_THAT(victim_annotation_problem("berth.dev/placement", "sideways"), IsEmpty());
}

}  // namespace
}  // namespace berth::api
