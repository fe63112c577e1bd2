// Turns pods that ask for a GPU away from nodes whose GPUs are being cut anew: what such a node has in a minute is not
// what it says now; and pods that ask for MIG instances from nodes whose instances cannot be as the node tells them.
// Its own words, since kube-scheduler has no such states; see docs/mig.md.
#include "model/mig.h"

#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

constexpr ReasonInfo kRepartitioning{.text = "node(s) were being repartitioned"};

constexpr ReasonInfo kImpossible{
    .text = "node(s) told of MIG instances that cannot be",
    .detail = [](const PodClass&, const NodeView& node, const Reason&) { return node.node().mig_problem; }};

// Of a node where each nvidia.com/gpu is an instance, those, too.
bool asks_instances(const PodClass& pod, const NodeView& node) {
  const bool single = node.node().gpus.sharing == model::GpuSharing::kInstances;
  return std::ranges::any_of(pod.requests, [&](const ResourceAmount& request) {
    return model::is_mig_resource(node.resources().name(request.id)) || (single && request.id == node.share_resource());
  });
}

void mig(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (node.is_being_cut() && (pod.requests_gpu || pod.shares_gpu)) reasons.push_back({&kRepartitioning, {}, 0});
  else if (pod.requests_gpu && !node.node().mig_problem.empty() && asks_instances(pod, node))
    reasons.push_back({&kImpossible, {}, 0});
}

}  // namespace

extern const PolicyInfo kMig = object_filter_policy(
    "mig", "keeps pods that ask for GPUs off nodes whose MIG devices are being cut anew, or cannot be as they are told",
    55, &mig);

}  // namespace berth::policy
