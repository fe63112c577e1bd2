#include "apps/scheduler/set_aside.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::apps {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SetAside, ListsWhatIsMalformedUntilItIsMended) {
  SetAside aside;
  aside.remove("Node", "", "n");
  aside.add("Pod", "ns/p", "no quantity");
  aside.add("Node", "n", "first");
  aside.add("Node", "n", "second");
  EXPECT_THAT(aside.lines(), ElementsAre("Node n: second", "Pod ns/p: no quantity"));
  aside.remove("Node", "", "p");
  aside.remove("Pod", "ns", "p");
  EXPECT_THAT(aside.lines(), ElementsAre("Node n: second"));
}

TEST(SetAside, ANewListForgetsItsKindAlone) {
  SetAside aside;
  aside.add("Node", "n", "why");
  aside.add("Pod", "ns/p", "why");
  aside.clear("Node");
  EXPECT_THAT(aside.lines(), ElementsAre("Pod ns/p: why"));
  aside.clear("Pod");
  EXPECT_THAT(aside.lines(), IsEmpty());
}

}  // namespace
}  // namespace berth::apps
