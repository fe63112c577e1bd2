// Keeps a pod waiting whose annotation berth.dev/topology cannot be understood, and says what is wrong with it. What
// such an annotation asks for when it can be is among the pod's inter-pod terms (bridge/topology.h), which
// inter-pod-affinity judges.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

std::string objection(const PodClass& pod, const State&) { return pod.spec->peers.problem; }

// The objection says it of all nodes.
void no_node_in_particular(const PodClass&, const NodeView&, Reasons&) {}

}  // namespace

extern const PolicyInfo kTopology = object_filter_policy(
    "topology", "keeps pods whose wish for a topology makes no sense waiting", 6, &no_node_in_particular, &objection);

}  // namespace berth::policy
