#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine_reserve.h"
#include "engine/evaluate.h"
#include "engine/queued_workloads.h"
#include "engine/trial.h"
#include "model/gpu_limit.h"

namespace berth::engine {
namespace {

// For whom room is kept by a pod that has none yet.
std::string kept_for(const model::Pod& pod) {
  if (!pod.keeps_gpus_for.empty()) return pod.keeps_gpus_for;
  return pod.stand_in ? "Workload " + pod.workload : "pod " + pod.full_name();
}

// The class's candidates, made from nothing, and what they are made with. What is kept for the pod itself is free.
struct Look {
  State& state;
  const PolicySet& policies;
  const PodClass& cls;
  const PodSlot pod;
  const std::vector<PodSlot> own;  // by which GPUs are kept for it
  Candidates candidates;
  PreemptionView preemption;
  FailureSets sets;

  Look(const VictimSearch::Context& context, PodSlot slot, std::vector<PodSlot> keepers)
      : state(context.state),
        policies(context.policies),
        cls(state.pod_class(state.pod(slot).cls)),
        pod(slot),
        own(std::move(keepers)) {
    WorkBudget unlimited{INT64_MAX};
    std::deque<Trial> without;
    for (const PodSlot kept : own)
      without.emplace_back(state, state.pod(kept).node, cls)
          .take_out(kept, state.pod_class(state.pod(kept).cls).requests);
    if (const NodeSlot kept = state.pod(pod).node; kept.valid()) {
      Trial trial(state, kept, cls);
      trial.take_out(pod, cls.requests);
      candidates.refresh(state, policies, cls, sets, unlimited);
      return;
    }
    candidates.refresh(state, policies, cls, sets, unlimited);
    if (candidates.best().valid() || !candidates.objection().empty()) return;
    preemption.refresh({context, sets, Duration{}}, cls, candidates, unlimited);
  }

  // What turns the pod away from the node as it stands there now: run_filters()'s, or the groups'; both where its GPUs
  // could be cut anew, and the groups would keep it off all the same.
  std::vector<NodeReason> look_at(NodeSlot node) {
    const NodeView view = state.view(node);
    Reasons reasons;
    const bool fits_alone = run_filters(policies, cls, view, reasons);
    const GroupFacts facts = candidates.groups() != nullptr ? candidates.groups()->facts(node, cls) : GroupFacts{};
    if ((fits_alone || view.node().mig) && candidates.groups() != nullptr) {
      Reasons of_groups;
      run_group_filters(policies, cls, facts, of_groups);
      reasons.insert(reasons.end(), of_groups.begin(), of_groups.end());
    }
    std::vector<NodeReason> out;
    for (const Reason& reason : reasons) {
      NodeReason& told = out.emplace_back();
      told.text = reason.info->text;
      if (reason.info->names_resource) told.text += " " + state.resources().name(reason.resource);
      if (reason.info->detail != nullptr) told.detail = reason.info->detail(cls, view, reason);
      if (reason.info->group_detail != nullptr) told.detail = reason.info->group_detail(cls, state, facts, reason);
    }
    return out;
  }

  NodeExplanation explain(NodeSlot node) {
    const model::Node& object = state.node(node).node;
    Trial trial(state, node, cls);
    if (state.pod(pod).node == node) trial.take_out(pod, cls.requests);
    for (const PodSlot kept : own)
      if (state.pod(kept).node == node) trial.take_out(kept, state.pod_class(state.pod(kept).cls).requests);
    NodeExplanation out{object.name, look_at(node), model::gpu_limit(object, cls.spec->gpu_share, cls.spec->requests),
                        model::device_mode(object, *cls.spec)};
    std::set<std::string> others;  // for whom room is kept
    for (const PodSlot slot : state.node(node).pods) {
      if (out.reasons.empty() || slot == pod || state.pod(slot).phase != PodPhase::kNominated) continue;
      if (std::ranges::find(own, slot) != own.end()) continue;
      trial.take_out(slot, state.pod_class(state.pod(slot).cls).requests);
      others.insert(kept_for(state.pod(slot).pod));
    }
    if (others.empty()) return out;
    const std::vector<NodeReason> without = look_at(node);
    for (NodeReason& reason : out.reasons)
      if (std::ranges::find(without, reason) == without.end())
        reason.detail +=
            fmt::format("{}room is kept there for {}", reason.detail.empty() ? "" : "; ", fmt::join(others, ", "));
    return out;
  }
};

}  // namespace

Explanation Engine::explain(const std::string& uid) {
  Explanation out;
  const PodSlot slot = state_.find_pod(uid);
  if (!slot.valid()) return out;
  const PodState& pod = state_.pod(slot);
  out.known = true;
  out.phase = pod.phase;
  if (pod.phase == PodPhase::kNominated && !pod.node_kept) {
    out.reason = to_string(pod.phase);
    out.message = "waits for other pods to leave " + state_.node(pod.node).node.name + ", for which it is nominated";
    return out;
  }
  if (holds_room(pod.phase) && !pod.node_kept) {
    out.node = state_.node(pod.node).node.name;
    out.reason = to_string(pod.phase);
    out.message = (pod.phase == PodPhase::kBound ? "bound to " : "has a place on ") + out.node;
    if (const auto end = expected_end(slot))
      out.message +=
          (*end > now_ ? "; by what it declares it ends by " : "; it should have ended by ") + time_text(*end);
    out.gpu_limit = state_.devices_of(slot).limit;
    return out;
  }
  if (pod.pod.terminating) return out.reason = "Terminating", out.message = "the pod is being deleted", out;
  if (pod.pod.gated)
    return out.reason = "SchedulingGated", out.message = "Scheduling is blocked due to non-empty scheduling gates", out;
  if (!pod.pod.ours)
    return out.reason = "OtherScheduler", out.message = "another scheduler is responsible for the pod", out;
  const bool was_let_in = pod.phase == PodPhase::kBackoff && workloads_->admits(pod.pod.workload);
  if (workloads_->holds_back(pod.pod) && !was_let_in)
    return out.reason = "WorkloadNotAdmitted", out.message = workloads_->why_held_back(pod.pod), out;
  std::vector<PodSlot> own;
  for (const auto& [node, kept] : kept_gpus_.all())
    if (kept.owner == uid) own.push_back(kept.stand_in);
  Look look(search_context(), slot, std::move(own));
  const std::string& objection = look.candidates.objection();
  if (pod.phase != PodPhase::kBackoff && !objection.empty())
    return out.reason = "Unschedulable", out.message = objection_message(objection, state_.node_count()), out;
  for (const auto& [name, node] : state_.nodes_by_name())
    if (state_.node(node).present && objection.empty()) out.nodes.push_back(look.explain(node));
  const bool fits = look.candidates.best().valid();
  if (pod.phase == PodPhase::kNominated) {
    out.reason = to_string(pod.phase);
    out.message = fit_message(look.candidates.counts(), look.sets) + " " + Reserve{*this}.kept_text(slot, pod.free_by);
  } else if (pod.phase == PodPhase::kBackoff)
    out.reason = "Backoff", out.message = "waits after a failed attempt to start";
  else if (fits) out.reason = "Pending", out.message = "a node fits; the pod is in the queue";
  else if (const NodeSlot node = look.preemption.best(); node.valid())
    out.reason = "Pending", out.message = "room can be made on " + state_.node(node).node.name + "; it is in the queue";
  else out.reason = "Unschedulable", out.message = verdict_text(look.cls, look.candidates, look.preemption, look.sets);
  if (const std::string kept = Reserve{*this}.gpus_text(uid); !kept.empty()) out.message += " " + kept;
  return out;
}

}  // namespace berth::engine
