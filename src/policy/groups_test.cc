// A class that inter-pod terms concern keeps up with nodes that change their domains.
#include <gtest/gtest.h>

#include <string>

#include "engine/testing.h"
#include "engine/testing_peers.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

model::Node in_zone(const std::string& name, const std::string& zone, int64_t cpu = 64'000) {
  model::Node node = make_node(name, {{"cpu", cpu}});
  if (!zone.empty()) node.labels.set("zone", zone);
  return node;
}

model::Pod would_rather_spread(const std::string& name) {
  return with_spec(make_pod(name, {{"cpu", 1000}}), [](model::SchedulingSpec& spec) {
    spec.peers.spread = {spread_over("zone", app("other"), 1, false)};
    spec.peers.spread[0].by_default = true;
  });
}

// The node that is the best of its old group becomes the best of its new one in the same cycle.
TEST(Groups, TheBestNodeOfOneGroupMayBecomeThatOfAnother) {
  Driver driver(default_policies());
  driver.add(in_zone("a", "x"));
  driver.add(in_zone("b", ""));
  driver.add(in_zone("keeps-x", "x", 10));
  driver.add(in_zone("c", "", 2000));
  driver.add(would_rather_spread("first"));
  driver.cycle();
  ASSERT_EQ(driver.node_of("first"), "a");
  driver.add(in_zone("a", "y"));
  driver.add(in_zone("b", "x"));
  driver.add(would_rather_spread("second"));
  driver.cycle();
  EXPECT_EQ(driver.node_of("second"), "b");
}

}  // namespace
}  // namespace berth::policy
