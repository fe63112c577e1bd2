#include "api/patch.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

TEST(Binding, NamesPodUidAndNode) {
  EXPECT_EQ(
      binding_json("team", "p", "u-1", "n-1"),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","namespace":"team","uid":"u-1"},"target":{"kind":"Node","name":"n-1"}})");
}

TEST(Binding, CarriesAnnotations) {
  EXPECT_EQ(
      binding_json("t", "p", "u", "n", {{"berth.dev/devices", "0,1"}}),
      R"({"kind":"Binding","apiVersion":"v1","metadata":{"name":"p","namespace":"t","uid":"u","annotations":{"berth.dev/devices":"0,1"}},"target":{"kind":"Node","name":"n"}})");
}

TEST(ConditionPatch, SetsOneConditionByType) {
  const Condition condition{"PodScheduled", "False", "Unschedulable", "0/1 nodes are \"available\""};
  EXPECT_EQ(
      pod_condition_patch_json("u", condition, Time{0}, 0, "n"),
      R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"type":"PodScheduled","status":"False","lastProbeTime":null,"lastTransitionTime":"1970-01-01T00:00:00Z","reason":"Unschedulable","message":"0/1 nodes are \"available\""}],"nominatedNodeName":"n"}})");
}

TEST(ConditionPatch, LeavesTheTransitionTimeToTheServerAndNamesTheGeneration) {
  EXPECT_EQ(
      pod_condition_patch_json("u", {"PodScheduled", "False", "Unschedulable", "m"}, std::nullopt, 3),
      R"({"metadata":{"uid":"u"},"status":{"$setElementOrder/conditions":[{"type":"PodScheduled"}],"conditions":[{"type":"PodScheduled","observedGeneration":3,"status":"False","lastProbeTime":null,"reason":"Unschedulable","message":"m"}]}})");
}

TEST(ConditionPatch, AnEmptyNodeTakesTheNominationBack) {
  EXPECT_NE(pod_condition_patch_json("u", {"T", "True", "", ""}, Time{0}, 0, "").find(R"("nominatedNodeName":null)"),
            std::string::npos);
  EXPECT_EQ(pod_condition_patch_json("u", {"T", "True", "", ""}, Time{0}).find("nominatedNodeName"), std::string::npos);
}

TEST(Deletion, IsOfOneUidAlone) {
  EXPECT_EQ(delete_options_json("u-1"), R"({"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u-1"}})");
}

TEST(ConditionPatch, SurvivesTextThatIsNotUtf8) {
  EXPECT_NE(pod_condition_patch_json("", {"T", "True", "", "\xff"}, Time{0}).find("\xEF\xBF\xBD"), std::string::npos);
}

}  // namespace
}  // namespace berth::api
