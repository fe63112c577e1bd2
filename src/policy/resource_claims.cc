// Keeps a pod with ResourceClaims (dynamic resource allocation) waiting, and says so: Berth does not allocate them yet,
// and a pod that is bound without its claims allocated would never start.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

std::string objection(const PodClass& pod, const State&) {
  return pod.spec->resource_claims ? "the pod has ResourceClaims (GPU mode DRA), which Berth does not allocate yet."
                                   : "";
}

// The objection says it of all nodes.
void no_node_in_particular(const PodClass&, const NodeView&, Reasons&) {}

}  // namespace

extern const PolicyInfo kResourceClaims = object_filter_policy(
    "resource-claims", "keeps pods with ResourceClaims waiting, since Berth does not allocate them yet", 5,
    &no_node_in_particular, &objection);

}  // namespace berth::policy
