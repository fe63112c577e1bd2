#include "apps/scheduler/closed_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::apps {
namespace {

using ::testing::ElementsAre;

const ClosedNodes::PodName kOne{"x", "one"}, kTwo{"x", "two"};

model::Node node(const std::string& name, bool cordoned = false) {
  model::Node out;
  out.name = name;
  out.unschedulable = cordoned;
  return out;
}

TEST(ClosedNodes, ANodeOpensWhenTheLastPodThatClosedItIsUnderstood) {
  ClosedNodes closed;
  const model::Node known = node("a");
  closed.close(kOne, "a", &known);
  closed.close(kTwo, "a", nullptr);
  EXPECT_THAT(closed.pods(), ElementsAre(kOne, kTwo));
  EXPECT_FALSE(closed.release(kOne));
  EXPECT_FALSE(closed.release(kOne));
  EXPECT_FALSE(closed.withhold(node("b")));
  const auto opened = closed.release(kTwo);
  ASSERT_TRUE(opened);
  EXPECT_EQ(*opened, known);
  EXPECT_TRUE(closed.empty());
}

TEST(ClosedNodes, ANodeOpensWithItsLatestFactsIfItIsStillThere) {
  ClosedNodes closed;
  const model::Node known = node("a");
  closed.close(kOne, "a", &known);
  EXPECT_TRUE(closed.withhold(node("a", true)));
  EXPECT_EQ(closed.release(kOne), node("a", true));
  closed.close(kOne, "a", &known);
  closed.forget("a");
  EXPECT_FALSE(closed.release(kOne));
  closed.close(kOne, "a", &known);
  closed.forget_all_nodes();
  EXPECT_FALSE(closed.release(kOne));
}

}  // namespace
}  // namespace berth::apps
