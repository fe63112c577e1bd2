// Nominations and topology spread: a nominated pod counts where it will run.
#include <gtest/gtest.h>

#include "engine/testing.h"
#include "engine/testing_peers.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

model::Pod web(const std::string& name) {
  model::Pod pod = make_pod(name, {{"cpu", 1000}});
  pod.labels = std::make_shared<const model::Labels>(model::Labels{{"app", "web"}});
  return pod;
}

TEST(Nominations, APlaceThatOnlyTheNominationMakesIsNoReasonToGiveItUp) {
  Driver driver(default_policies());
  driver.add(make_node("full", {{"cpu", 1000}}));
  driver.add(make_node("wide"));
  driver.add(bound_to(make_pod("low", {{"cpu", 1000}}), "full"));
  driver.add(bound_to(web("one"), "wide"));
  driver.add(with_priority(
      with_spec(web("two"),
                [&](model::SchedulingSpec& spec) { spec.peers.spread = {spread_over(kHostname, app("web"))}; }),
      10));
  driver.cycle();
  ASSERT_EQ(driver.explain("uid-two").phase, PodPhase::kNominated);
  // With two promised to "full", one more on "wide" would make no skew; without it, it would.
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(driver.cycle(Duration::seconds(1)).decisions.empty());
  EXPECT_EQ(driver.explain("uid-two").phase, PodPhase::kNominated);
  driver.apply(PodDeleted{"uid-low"});
  const CycleResult bound = driver.cycle(Duration::seconds(1));
  ASSERT_EQ(bound.decisions.size(), 1U);
  EXPECT_EQ(bound.decisions[0].node_name, "full");
}

}  // namespace
}  // namespace berth::policy
