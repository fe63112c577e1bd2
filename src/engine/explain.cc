#include "engine/engine.h"
#include "engine/evaluate.h"

namespace berth::engine {
namespace {

NodeExplanation explain_node(const PolicySet& policies, const PodClass& cls, const NodeView& view,
                             const ResourceTable& resources, Reasons& reasons) {
  NodeExplanation out{view.node().name, {}};
  run_filters(policies, cls, view, reasons);
  for (const Reason& reason : reasons) {
    std::string text(reason.info->text);
    if (reason.info->names_resource) text += " " + resources.name(reason.resource);
    out.reasons.push_back({std::move(text), reason.info->detail ? reason.info->detail(cls, view, reason) : ""});
  }
  return out;
}

}  // namespace

Explanation Engine::explain(const std::string& uid) const {
  Explanation out;
  const PodSlot slot = state_.find_pod(uid);
  if (!slot.valid()) return out;
  const PodState& pod = state_.pod(slot);
  out.known = true;
  out.phase = pod.phase;
  if (holds_room(pod.phase)) {
    out.node = state_.node(pod.node).node.name;
    out.reason = to_string(pod.phase);
    out.message = (pod.phase == PodPhase::kBound ? "bound to " : "has a place on ") + out.node;
    return out;
  }
  if (pod.pod.terminating) return out.reason = "Terminating", out.message = "the pod is being deleted", out;
  if (pod.pod.gated)
    return out.reason = "SchedulingGated", out.message = "Scheduling is blocked due to non-empty scheduling gates", out;
  if (!pod.pod.ours)
    return out.reason = "OtherScheduler", out.message = "another scheduler is responsible for the pod", out;
  Reasons reasons;
  FailureSets sets;
  FailureCounts counts;
  const PodClass& cls = state_.pod_class(pod.cls);
  bool fits = false;
  for (const auto& [name, node] : state_.nodes_by_name()) {
    if (!state_.node(node).present) continue;
    reasons.clear();
    out.nodes.push_back(explain_node(policies_, cls, state_.view(node), state_.resources(), reasons));
    counts.add(sets.intern(reasons, state_.resources()), +1);
    fits |= reasons.empty();
  }
  if (pod.phase == PodPhase::kBackoff) out.reason = "Backoff", out.message = "waits after a failed attempt to start";
  else if (fits) out.reason = "Pending", out.message = "a node fits; the pod is in the queue";
  else out.reason = "Unschedulable", out.message = fit_message(counts, sets);
  return out;
}

}  // namespace berth::engine
