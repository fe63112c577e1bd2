// What terms would say of nodes if pods had the places that they are promised, and not those that they have.
#include "engine/promised_peers.h"

#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "base/testing.h"
#include "engine/testing.h"
#include "engine/testing_peers.h"
#include "policy/registry.h"

namespace berth::policy {
namespace {

using namespace berth::engine;
using namespace berth::engine::testing;

constexpr int kNodes = 5;

std::string node_name(int i) { return "n" + std::to_string(i); }

model::Pod pod_of(const std::string& name, Rng& rng) {
  constexpr int kVarieties[] = {0, 1, 2, 3, 4, 11, 12, 14};  // without required spread
  model::Pod out = make_pod(name, {{"cpu", 100}});
  out.namespace_name = "ns" + std::to_string(rng.below(3));
  out.labels = std::make_shared<const model::Labels>(model::Labels{{"app", rng.below(2) == 0 ? "web" : "db"}});
  const int which = kVarieties[rng.below(std::size(kVarieties))];
  return with_spec(out, [&](auto& spec) { spec.peers = peers_of(which); });
}

void add_nodes(Driver& driver) {
  for (int i = 0; i < 3; ++i)
    driver.apply(NamespaceUpserted{"ns" + std::to_string(i), {}, {{"team", i == 0 ? "red" : "blue"}}});
  for (int i = 0; i < kNodes; ++i) {
    model::Node node = make_node(node_name(i));
    node.labels.set("zone", i < 2 ? "a" : "b");
    driver.add(node);
  }
}

TEST(PromisedPeersProperty, WhoLeavesAndWhoIsPromisedCountAsIfTheyHadAndHad) {
  const uint64_t histories = histories_to_play(200, 2'000);
  uint64_t admitted = 0, kept_out = 0;
  for (uint64_t seed = 1; seed <= histories; ++seed) {
    Rng rng(seed);
    Driver now(default_policies()), then(default_policies());
    add_nodes(now);
    add_nodes(then);
    std::vector<std::string> leaving;
    std::vector<std::pair<std::string, int>> promised;
    for (int i = 0; i < 8; ++i) {
      const model::Pod pod = pod_of("p" + std::to_string(i), rng);
      const auto node = static_cast<int>(rng.below(kNodes));
      const uint64_t fate = rng.below(4);  // stays, leaves, moves, or is promised its first place
      now.add(fate == 3 ? pod : bound_to(pod, node_name(node)));
      if (fate == 1 || fate == 2) leaving.push_back(pod.uid);
      const int to = fate == 2 ? static_cast<int>(rng.below(kNodes)) : node;
      if (fate >= 2) promised.emplace_back(pod.uid, to);
      if (fate != 1) then.add(bound_to(pod, node_name(to)));
    }
    std::vector<std::string> asking;
    for (int i = 0; i < 4; ++i) {
      const model::Pod pod = pod_of("q" + std::to_string(i), rng);
      now.add(pod);
      then.add(pod);
      asking.push_back(pod.uid);
    }
    PromisedPeers changed(now.state()), plain(then.state());
    for (const std::string& uid : leaving) changed.leave(now.state().find_pod(uid));
    for (const auto& [uid, node] : promised)
      changed.add(now.state().find_pod(uid), now.state().find_node(node_name(node)));
    const PolicySet policies = default_policies();
    for (const std::string& uid : asking)
      for (int i = 0; i < kNodes; ++i) {
        const auto may_have = [&](Driver& driver, PromisedPeers& peers) {
          const ClassId cls = driver.state().pod(driver.state().find_pod(uid)).cls;
          return peers.admit(policies, cls, nullptr, driver.state().find_node(node_name(i)));
        };
        const bool expected = may_have(then, plain);
        EXPECT_EQ(may_have(now, changed), expected) << "seed " << seed << ", " << uid << " on " << node_name(i);
        ++(expected ? admitted : kept_out);
      }
  }
  EXPECT_GT(admitted, 2 * histories);
  EXPECT_GT(kept_out, 2 * histories);
}

}  // namespace
}  // namespace berth::policy
