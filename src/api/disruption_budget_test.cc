#include "api/disruption_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/decode.h"

namespace berth::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

PodDisruptionBudget budget(const std::string& rest) {
  auto out = decode_json<PodDisruptionBudget>(R"({"metadata": {"name": "b", "namespace": "ns"}, )" + rest + "}");
  EXPECT_TRUE(out) << out.error().message;
  return out.value_or(PodDisruptionBudget{});
}

std::string problem_with(const std::string& spec) {
  Document document;
  document.api_version = "policy/v1";
  document.kind = "PodDisruptionBudget";
  document.json =
      R"({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": )" + spec + "}";
  Problems problems;
  decode(document, problems);
  return problems.empty() ? "" : problems.front().message;
}

TEST(DecodeBudget, KeepsWhatTheControllerAllows) {
  const PodDisruptionBudget b = budget(R"("spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "chat"}}},
    "status": {"disruptionsAllowed": 1, "currentHealthy": 3, "desiredHealthy": 2, "expectedPods": 3,
      "disruptedPods": {"chat-2": "2026-01-01T00:00:00Z", "chat-1": "2026-01-01T00:00:00Z"}})");
  EXPECT_EQ(b.min_available, "2");
  EXPECT_EQ(b.max_unavailable, "");
  EXPECT_EQ(b.disruptions_allowed, 1);
  EXPECT_THAT(b.disrupted_pods, ElementsAre("chat-1", "chat-2"));
  EXPECT_TRUE(b.selector.matches({{"app", "chat"}}));
  EXPECT_FALSE(b.selector.matches({{"app", "train"}}));
}

TEST(DecodeBudget, ASelectorThatIsEmptySelectsAllAndOneThatIsMissingNone) {
  EXPECT_TRUE(budget(R"("spec": {"maxUnavailable": "50%", "selector": {}})").selector.matches({}));
  EXPECT_FALSE(budget(R"("spec": {"maxUnavailable": 0, "selector": null})").selector.matches({}));
  EXPECT_FALSE(budget(R"("spec": {"maxUnavailable": 0})").selector.matches({{"app", "chat"}}));
}

TEST(DecodeBudget, CountsAndPercentagesAreCheckedInFiles) {
  EXPECT_EQ(problem_with(R"({"minAvailable": "100%", "selector": {}, "unhealthyPodEvictionPolicy": "AlwaysAllow"})"),
            "");
  EXPECT_EQ(problem_with(R"({"minAvailable": 0})"), "");
  EXPECT_THAT(problem_with(R"({"minAvailable": "101%"})"), HasSubstr("must not be greater than 100%"));
  EXPECT_THAT(problem_with(R"({"maxUnavailable": "2"})"), HasSubstr("a valid percent string"));
  EXPECT_THAT(problem_with(R"({"maxUnavailable": -1})"), HasSubstr("must be greater than or equal to 0"));
  EXPECT_THAT(problem_with(R"({"minAvailable": 1, "maxUnavailable": 1})"), HasSubstr("cannot be both set"));
  EXPECT_THAT(problem_with(R"({"unhealthyPodEvictionPolicy": "Never"})"), HasSubstr("Unsupported value"));
  EXPECT_THAT(problem_with(R"({"minAvailabel": 1})"), HasSubstr("minAvailable"));
}

}  // namespace
}  // namespace berth::api
