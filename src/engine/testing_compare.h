// What a Stream's engine is compared with: brute force on its state, and a fresh engine that hears the same facts.
#pragma once

#include <string>
#include <vector>

#include "engine/brute_force_test.h"
#include "engine/testing_stream.h"

namespace berth::engine::testing {

// Everything but what pods are told.
inline std::vector<BruteForce::Action> actions_of(const std::vector<Decision>& decisions) {
  std::vector<BruteForce::Action> out;
  for (const Decision& d : decisions) {
    if (d.kind == DecisionKind::kBind) out.push_back(d.pod_uid + "->" + d.node_name);
    if (d.kind == DecisionKind::kEvict) out.push_back(d.pod_uid + " leaves " + d.node_name);
    if (d.kind == DecisionKind::kNominate) out.push_back(d.pod_uid + " nominated for " + d.node_name);
  }
  return out;
}

inline BruteForce brute_force(const Stream& stream, Time now, const PolicySet& policies) {
  return {stream.state(), now, policies, stream.budgets(), stream.protecting_namespaces()};
}

// Another engine that is told the final facts in one list each.
inline void tell_facts(const Stream& stream, Driver& fresh) {
  for (const auto& [name, facts] : stream.namespaces()) fresh.apply(facts);
  NodesReplaced nodes;
  for (const auto& [name, node] : stream.nodes()) nodes.nodes.push_back(node);
  PodsReplaced pods;
  for (const auto& [uid, pod] : stream.pods()) {
    pods.pods.push_back(pod);
    const State& state = stream.state();
    if (const PodSlot slot = state.find_pod(uid); slot.valid() && state.pod(slot).phase == PodPhase::kNominated)
      pods.pods.back().nominated_node = state.node(state.pod(slot).node).node.name;
  }
  fresh.apply(BudgetsReplaced{stream.budgets()});
  fresh.apply(pods);
  fresh.apply(nodes);
}

}  // namespace berth::engine::testing
