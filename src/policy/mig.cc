// Turns pods that ask for a GPU away from nodes whose GPUs are being cut anew: what such a node has in a minute is not
// what it says now. Its own words, since kube-scheduler has no such state; see docs/mig.md.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kRepartitioning{.text = "node(s) were being repartitioned"};

void mig(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (node.repartitioning() && (pod.requests_gpu || pod.shares_gpu)) reasons.push_back({&kRepartitioning, {}, 0});
}

}  // namespace

extern const PolicyInfo kMig = object_filter_policy(
    "mig", "keeps pods that ask for GPUs off nodes whose MIG devices are being cut anew", 55, &mig);

}  // namespace berth::policy
