#include "model/peers.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using Op = NodeSelectorOperator;

LabelSelector selector(std::vector<NodeSelectorRequirement> requirements) { return {false, std::move(requirements)}; }

TEST(LabelSelector, WithoutRequirementsSelectsEverythingAndNullNothing) {
  EXPECT_TRUE(LabelSelector().matches({}));
  EXPECT_TRUE(LabelSelector().matches({{"app", "web"}}));
  const LabelSelector nothing{true, {}};
  EXPECT_FALSE(nothing.matches({}));
  EXPECT_FALSE(nothing.matches({{"app", "web"}}));
}

TEST(LabelSelector, NeedsEveryRequirement) {
  const LabelSelector both = selector({{"app", Op::kIn, {"web", "api"}}, {"tier", Op::kNotIn, {"test"}}});
  EXPECT_TRUE(both.matches({{"app", "api"}, {"tier", "prod"}}));
  EXPECT_TRUE(both.matches({{"app", "web"}})) << "NotIn holds for a label that is not there";
  EXPECT_FALSE(both.matches({{"app", "web"}, {"tier", "test"}}));
  EXPECT_FALSE(both.matches({{"app", "db"}}));
  EXPECT_FALSE(both.matches({}));
}

TEST(LabelSelector, ExistsAndDoesNotExistLookAtTheKeyAlone) {
  EXPECT_TRUE(selector({{"app", Op::kExists, {}}}).matches({{"app", ""}}));
  EXPECT_FALSE(selector({{"app", Op::kExists, {}}}).matches({{"tier", "x"}}));
  EXPECT_TRUE(selector({{"app", Op::kDoesNotExist, {}}}).matches({{"tier", "x"}}));
  EXPECT_FALSE(selector({{"app", Op::kDoesNotExist, {}}}).matches({{"app", ""}}));
}

TEST(PeerSelector, NamespacesAreNamedOrSelectedByLabel) {
  PeerSelector peers;
  EXPECT_FALSE(peers.matches("a", {}, {}, false)) << "no namespace at all";
  peers.namespaces = {"a", "c"};
  EXPECT_TRUE(peers.matches("a", {}, {}, false));
  EXPECT_TRUE(peers.matches("c", {}, {}, false));
  EXPECT_FALSE(peers.matches("b", {{"team", "x"}}, {}, false));
  peers.namespace_selector = selector({{"team", Op::kIn, {"x"}}});
  EXPECT_TRUE(peers.matches("a", {}, {}, false)) << "by name";
  EXPECT_TRUE(peers.matches("b", {{"team", "x"}}, {}, false)) << "by label";
  EXPECT_FALSE(peers.matches("b", {{"team", "y"}}, {}, false));
}

TEST(PeerSelector, AnEmptyNamespaceSelectorMeansEveryNamespace) {
  PeerSelector peers;
  peers.namespace_selector = LabelSelector();
  EXPECT_TRUE(peers.matches("anything", {}, {}, false));
}

TEST(PeerSelector, PodsAreSelectedByLabelAndTerminatingOnesOnlyWhereTheyCount) {
  PeerSelector peers{{"a"}, {}, selector({{"app", Op::kIn, {"web"}}}), false};
  EXPECT_TRUE(peers.matches("a", {}, {{"app", "web"}}, false));
  EXPECT_TRUE(peers.matches("a", {}, {{"app", "web"}}, true));
  EXPECT_FALSE(peers.matches("a", {}, {{"app", "db"}}, false));
  peers.skips_terminating = true;
  EXPECT_TRUE(peers.matches("a", {}, {{"app", "web"}}, false));
  EXPECT_FALSE(peers.matches("a", {}, {{"app", "web"}}, true));
}

}  // namespace
}  // namespace berth::model
