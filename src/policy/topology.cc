// Looks for room for all pods of an owner that want to be together, before the first of them starts: the domain of the
// first is that of all. And keeps a pod waiting whose annotation berth.dev/topology cannot be understood.
//
// What such an annotation asks for is among the pod's inter-pod terms (bridge/topology.h), which inter-pod-affinity
// judges. Domains with room for all of the owner's pods are alike to this policy; of others that with the most is best.
// It weighs more than pack and spread, whose best node may be in a domain that is all but full.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

std::string objection(const PodClass& pod, const State&) { return pod.spec->peers.problem; }

// The objection says it of all nodes.
void no_node_in_particular(const PodClass&, const NodeView&, Reasons&) {}

int64_t room(const PodClass&, const GroupFacts& facts) { return facts.room; }

constexpr PolicyInfo info() {
  PolicyInfo out = object_filter_policy("topology", "prefers domains with room for all pods that want to be together",
                                        6, &no_node_in_particular, &objection);
  out.group_score = &room;
  out.default_weight = 2;
  return out;
}

}  // namespace

extern const PolicyInfo kTopology = info();

}  // namespace berth::policy
