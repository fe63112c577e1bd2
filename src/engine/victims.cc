#include "engine/victims.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/evaluate.h"

namespace berth::engine {
namespace {

// A pod without a start time has just been bound.
int64_t start_of(const model::Pod& pod) { return pod.started == Time{} ? INT64_MAX : pod.started.nanos; }

// kube-scheduler's MoreImportantPod; equals by name.
bool more_important(const model::Pod& a, const model::Pod& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (start_of(a) != start_of(b)) return start_of(a) < start_of(b);
  return std::tie(a.namespace_name, a.name, a.uid) < std::tie(b.namespace_name, b.name, b.uid);
}

}  // namespace

bool VictimSearch::may_go(const PodState& pod) const {
  if (pod.pod.priority >= cls_.priority) return false;
  return pod.phase == PodPhase::kNominated || is_leaving(pod) ||
         (!rules_.is_protected(pod.pod) && pod.evictable_from <= now_);
}

bool VictimSearch::has_lower(NodeSlot node) const {
  const auto& pods = state_.node(node).pods;
  return std::any_of(pods.begin(), pods.end(), [this](PodSlot pod) { return may_go(state_.pod(pod)); });
}

bool VictimSearch::fits(NodeSlot node, Reasons& reasons) {
  ++effort_;
  reasons.clear();
  if (!state_.node(node).present) return false;
  if (!run_filters(policies_, cls_, state_.view(node), reasons)) return false;
  if (groups_ == nullptr) return true;
  groups_->read_live_facts(node, state_, cls_, facts_);
  run_group_filters(policies_, cls_, facts_, reasons);
  return reasons.empty();
}

void VictimSearch::remove(PodSlot pod) {
  removed_.push_back({pod, state_.pod(pod).phase, state_.volume_choices(pod)});
  state_.unassign(pod, PodPhase::kNotQueued);
}

void VictimSearch::put_back(PodSlot pod, NodeSlot node) {
  const auto at = std::find_if(removed_.begin(), removed_.end(), [&](const Removed& r) { return r.pod == pod; });
  check(at != removed_.end(), "a pod that comes back had left");
  state_.assign(pod, node, at->phase);
  state_.restore_choices(at->choices);
  removed_.erase(at);
}

void VictimSearch::put_back_all(NodeSlot node) {
  while (!removed_.empty()) put_back(removed_.back().pod, node);
}

bool VictimSearch::find(NodeSlot node, VictimPlan& plan, Reasons& why_not) {
  std::vector<PodSlot> lower;
  for (const PodSlot pod : state_.node(node).pods)
    if (may_go(state_.pod(pod))) lower.push_back(pod);
  std::sort(lower.begin(), lower.end(),
            [this](PodSlot a, PodSlot b) { return more_important(state_.pod(a).pod, state_.pod(b).pod); });
  const State::Trial trial(state_);
  for (const PodSlot pod : lower) remove(pod);
  const bool fit = fits(node, why_not);
  if (fit) reprieve(node, lower, plan);
  put_back_all(node);
  if (fit) price(plan);
  return fit;
}

// Lets those come back that are not in the way.
void VictimSearch::reprieve(NodeSlot node, const std::vector<PodSlot>& lower, VictimPlan& plan) {
  const std::vector<bool> violates = rules_.violations(lower, state_);
  std::vector<bool> leaves(lower.size(), false);
  for (const bool spoken_for : {true, false}) {
    for (size_t i = 0; i < lower.size(); ++i) {
      if (violates[i] != spoken_for) continue;
      put_back(lower[i], node);
      if (fits(node, reasons_)) continue;
      remove(lower[i]);
      leaves[i] = true;
      plan.cost.violations += spoken_for ? 1 : 0;
    }
  }
  for (size_t i = 0; i < lower.size(); ++i) {
    if (!leaves[i]) continue;
    const auto gone =
        std::find_if(removed_.begin(), removed_.end(), [&](const Removed& r) { return r.pod == lower[i]; });
    (gone->phase == PodPhase::kNominated ? plan.displaced : plan.victims).push_back(lower[i]);
  }
}

void VictimSearch::price(VictimPlan& plan) const {
  PlanCost& cost = plan.cost;
  cost.victims = static_cast<uint32_t>(plan.victims.size());
  if (plan.victims.empty()) return;
  cost.highest = state_.pod(plan.victims.front()).pod.priority;
  cost.started = INT64_MIN;
  for (const PodSlot victim : plan.victims) {
    const model::Pod& pod = state_.pod(victim).pod;
    cost.priorities += int64_t{pod.priority} + (int64_t{1} << 31);
    if (pod.priority == cost.highest) cost.started = std::max(cost.started, -start_of(pod));
  }
}

VictimSearch::Outlook VictimSearch::without(PodSlot leaver, NodeSlot node) {
  if (!state_.node(node).present) return Outlook::kLost;
  const State::Trial trial(state_);
  std::vector<PodSlot> leaving;
  for (const PodSlot pod : state_.node(node).pods)
    if (pod != leaver && may_go(state_.pod(pod)) && is_leaving(state_.pod(pod))) leaving.push_back(pod);
  remove(leaver);
  Outlook outlook = Outlook::kReady;
  if (!fits(node, reasons_)) {
    for (const PodSlot pod : leaving) remove(pod);
    outlook = !leaving.empty() && fits(node, reasons_) ? Outlook::kPromised : Outlook::kLost;
  }
  put_back_all(node);
  return outlook;
}

}  // namespace berth::engine
