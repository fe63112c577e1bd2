#include "api/runtime_estimate.h"

#include <gtest/gtest.h>

#include "api/kueue_names.h"

namespace berth::api {
namespace {

ObjectMeta told(const std::string& estimate, const std::string& limit = "") {
  ObjectMeta out;
  if (!estimate.empty()) out.annotations.set(std::string(kRuntimeEstimateAnnotation), estimate);
  if (!limit.empty()) out.labels.set(std::string(kMaxExecutionLabel), limit);
  return out;
}

TEST(RuntimeEstimate, AnnotationComesBeforeLabelBeforeDeadline) {
  EXPECT_EQ(declared_runtime(told("90m", "60"), 30), Duration::seconds(5400));
  EXPECT_EQ(declared_runtime(told("", "60"), 30), Duration::seconds(60));
  EXPECT_EQ(declared_runtime(told(""), 30), Duration::seconds(30));
  EXPECT_EQ(declared_runtime(told(""), std::nullopt), std::nullopt);
}

TEST(RuntimeEstimate, WhatIsNoDurationCountsAsAbsent) {
  for (const char* bad : {"90", "soon", "0s", "-5m", "99999999h", "1h x"}) {
    EXPECT_NE(runtime_estimate_problem(bad), "") << bad;
    EXPECT_EQ(declared_runtime(told(bad), std::nullopt), std::nullopt) << bad;
    EXPECT_EQ(declared_runtime(told(bad), 30), Duration::seconds(30)) << bad;
  }
  EXPECT_EQ(runtime_estimate_problem("1h30m"), "");
  for (const char* bad : {"0", "-1", "1.5", "60s", "99999999999"})
    EXPECT_EQ(declared_runtime(told("", bad), std::nullopt), std::nullopt) << bad;
}

TEST(RuntimeEstimate, ADeadlineBeyondAllBoundsIsTenYears) {
  EXPECT_EQ(declared_runtime({}, INT64_MAX), kRuntimeMax);
  EXPECT_EQ(declared_runtime({}, 0), std::nullopt);
}

}  // namespace
}  // namespace berth::api
