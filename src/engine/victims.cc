#include "engine/victims.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/evaluate.h"
#include "engine/node_without.h"
#include "engine/pending_queue.h"

namespace berth::engine {
namespace {

// Pods taken out or put back that count as the work of examining one node.
constexpr int64_t kTriesPerUnit = 8;

}  // namespace

bool VictimSearch::may_go(const Resident& resident) const {
  if (resident.nominated || resident.yields) return true;
  const PodState& pod = state_.pod(resident.pod);
  return is_leaving(pod) || (!rules_.is_protected(pod.pod) && pod.evictable_from <= now_);
}

int64_t VictimSearch::take_effort() { return std::exchange(tries_, 0) / kTriesPerUnit; }

// True: the verdict of the class's group may differ with the pod gone.
bool VictimSearch::take_out(Trial& trial, const Residents::Table& here, const Resident& pod) {
  ++tries_;
  trial.take_out(pod.pod, here.requests(pod));
  return groups_ != nullptr && pod.heard && groups_->count_gone(state_.pod(pod.pod), state_, +1, gone_);
}

bool VictimSearch::put_back(Trial& trial, const Residents::Table& here, const Resident& pod) {
  ++tries_;
  trial.put_back(pod.pod, here.requests(pod));
  return groups_ != nullptr && pod.heard && groups_->count_gone(state_.pod(pod.pod), state_, -1, gone_);
}

bool VictimSearch::fits_alone(NodeSlot node) {
  reasons_.clear();
  return run_filters(policies_, cls_, state_.view(node), reasons_);
}

bool VictimSearch::fits_groups(NodeSlot node) {
  looked_around_ = true;
  groups_->read_live_facts(node, state_, cls_, gone_, facts_);
  run_group_filters(policies_, cls_, facts_, reasons_);
  return reasons_.empty();
}

VictimSearch::Outcome VictimSearch::price(NodeSlot node, PlanCost& cost) {
  looked_around_ = false;
  lower_.clear();
  if (!state_.node(node).present) return Outcome::kNobody;
  const Residents::Table& here = residents_.of(node, state_, rules_);
  for (size_t i = here.first_below(cls_.priority); i < here.pods().size(); ++i)
    if (may_go(here.pods()[i])) lower_.push_back(static_cast<uint32_t>(i));
  if (lower_.empty()) return Outcome::kNobody;
  Trial trial(state_, node, cls_);
  gone_ = {};
  bool groups_depend = false;
  for (const uint32_t i : lower_) groups_depend |= take_out(trial, here, here.pods()[i]);
  group_failure_ = kFits;
  if (!fits_alone(node)) return Outcome::kHopeless;
  if (groups_depend) {
    if (!fits_groups(node)) return Outcome::kHopeless;
  } else if (groups_ != nullptr) {
    group_failure_ = groups_->failure(node);
    if (group_failure_ != kFits) return Outcome::kHopeless;
  }
  reprieve(node, trial, here, cost);
  price_victims(here, cost);
  return Outcome::kPlan;
}

// Lets those come back that are not in the way.
void VictimSearch::reprieve(NodeSlot node, Trial& trial, const Residents::Table& here, PlanCost& cost) {
  const std::vector<bool>& violates = residents_.violations(node, lower_, state_, rules_);
  leaves_.assign(lower_.size(), false);
  for (const bool spoken_for : {true, false}) {
    for (size_t i = 0; i < lower_.size(); ++i) {
      if (violates[i] != spoken_for) continue;
      const Resident& pod = here.pods()[lower_[i]];
      const bool groups_depend = put_back(trial, here, pod);
      reasons_.clear();
      if (run_filters_of_pods(policies_, cls_, state_.view(node), reasons_) && (!groups_depend || fits_groups(node)))
        continue;
      take_out(trial, here, pod);
      leaves_[i] = true;
      cost.violations += spoken_for ? 1 : 0;
    }
  }
}

void VictimSearch::price_victims(const Residents::Table& here, PlanCost& cost) const {
  for (size_t i = 0; i < lower_.size(); ++i) {
    const Resident& pod = here.pods()[lower_[i]];
    if (!leaves_[i] || pod.nominated) continue;
    if (cost.victims++ == 0) cost.highest = pod.priority;
    cost.priorities += int64_t{pod.priority} + (int64_t{1} << 31);
    if (pod.priority == cost.highest) cost.started = std::max(cost.started, -pod.start);
  }
}

VictimSearch::Outcome VictimSearch::find(NodeSlot node, VictimPlan& plan) {
  PlanCost cost;
  const Outcome outcome = price(node, cost);
  if (outcome != Outcome::kPlan) return outcome;
  const Residents::Table& here = residents_.of(node, state_, rules_);
  for (size_t i = 0; i < lower_.size(); ++i) {
    const Resident& pod = here.pods()[lower_[i]];
    if (leaves_[i]) (pod.nominated ? plan.displaced : plan.victims).push_back(pod.pod);
  }
  return outcome;
}

FailureSetId VictimSearch::why_not(FailureSets& sets) const {
  return group_failure_ != kFits ? group_failure_ : sets.intern(reasons_, state_.resources());
}

VictimSearch::Outlook VictimSearch::outlook(PodSlot nominee, NodeSlot node, std::vector<PodSlot>& displaced) {
  displaced.clear();
  if (!state_.node(node).present) return Outlook::kLost;
  const QueueOrder before{&state_};
  const Residents::Table& here = residents_.of(node, state_, rules_);
  const Resident* own = nullptr;
  std::vector<const Resident*> lower, later, leaving;    // nominated pods of lower priority; of the same; pods that go
  std::vector<const Resident*> aside;                    // what is kept for workloads that come after it
  const bool node_kept = state_.pod(nominee).node_kept;  // then what workloads have there is theirs
  for (const Resident& pod : here.pods()) {
    if (pod.pod == nominee) own = &pod;
    else if (node_kept && state_.pod(pod.pod).takes_over) continue;
    else if (node_kept && is_kept_for_later(nominee, pod.pod, state_)) aside.push_back(&pod);
    else if (pod.nominated && before(nominee, pod.pod)) (pod.priority < cls_.priority ? lower : later).push_back(&pod);
    else if (pod.priority < cls_.priority && is_leaving(state_.pod(pod.pod))) leaving.push_back(&pod);
  }
  check(own != nullptr, "a nominated pod has room on its node");
  Trial trial(state_, node, cls_);
  gone_ = {};
  const auto take_all_out = [&](const std::vector<const Resident*>& pods) {
    for (const Resident* pod : pods) take_out(trial, here, *pod);
  };
  const auto keep_what_fits = [&](const std::vector<const Resident*>& pods) {
    for (const Resident* pod : pods) {
      put_back(trial, here, *pod);
      if (fits(node)) continue;
      take_out(trial, here, *pod);
      displaced.push_back(pod->pod);
    }
  };
  take_out(trial, here, *own);
  take_all_out(aside);
  if (fits(node)) return Outlook::kReady;
  take_all_out(lower);
  if (!lower.empty() && fits(node)) return keep_what_fits(lower), Outlook::kReady;
  if (!leaving.empty() && !later.empty() && !fits_alone(node)) {
    take_all_out(leaving);
    if (fits_alone(node)) return Outlook::kPromised;  // with all of its like, once these are gone
    for (const Resident* pod : leaving) put_back(trial, here, *pod);
  }
  take_all_out(later);
  if (!later.empty() && fits(node)) return keep_what_fits(later), keep_what_fits(lower), Outlook::kReady;
  take_all_out(leaving);
  return !leaving.empty() && fits_alone(node) ? Outlook::kPromised : Outlook::kLost;
}

bool VictimSearch::is_kept_for_later(PodSlot pod, PodSlot other, const State& state) {
  const PodState& kept = state.pod(other);
  return is_kept_room(kept) && state.pod_class(kept.cls).claims.empty() && QueueOrder{&state}(pod, other);
}

bool VictimSearch::fits_when_left(PodSlot waiting, NodeSlot node) {
  if (!state_.node(node).present) return false;
  const QueueOrder before{&state_};
  const Residents::Table& here = residents_.of(node, state_, rules_);
  Trial trial(state_, node, cls_);
  gone_ = {};
  bool groups_depend = false;
  for (const Resident& pod : here.pods()) {
    const PodState& other = state_.pod(pod.pod);
    const bool is_kept = other.pod.stand_in && other.phase == PodPhase::kNominated;  // for a workload that waits
    const bool stays = other.pod.daemon || (is_kept && !is_kept_for_later(waiting, pod.pod, state_)) ||
                       (pod.nominated && before(pod.pod, waiting));
    if (pod.pod == waiting || !stays) groups_depend |= take_out(trial, here, pod);
  }
  return fits_now(node, groups_depend);
}

bool VictimSearch::fits_now(NodeSlot node, bool groups_depend) {
  if (!fits_alone(node)) return false;
  return groups_ == nullptr || (groups_depend ? fits_groups(node) : groups_->failure(node) == kFits);
}

std::optional<Time> VictimSearch::free_by(PodSlot waiting, NodeSlot node, const EndOf& end_of) {
  if (!state_.node(node).present) return std::nullopt;
  const QueueOrder before{&state_};
  const Residents::Table& here = residents_.of(node, state_, rules_);
  Trial trial(state_, node, cls_);
  gone_ = {};
  bool groups_depend = false;
  std::vector<std::pair<Time, const Resident*>> ends;
  for (const Resident& pod : here.pods()) {
    if (pod.pod == waiting || (pod.nominated && before(waiting, pod.pod)) ||
        is_kept_for_later(waiting, pod.pod, state_))
      groups_depend |= take_out(trial, here, pod);
    else if (pod.nominated || state_.pod(pod.pod).pod.daemon) continue;
    else if (const auto end = end_of(pod.pod)) ends.emplace_back(*end, &pod);
  }
  std::ranges::stable_sort(ends, {}, &std::pair<Time, const Resident*>::first);
  if (fits_now(node, groups_depend)) return Time{INT64_MIN};
  for (size_t i = 0; i < ends.size(); ++i) {
    groups_depend |= take_out(trial, here, *ends[i].second);
    const bool all_of_this_time = i + 1 == ends.size() || ends[i + 1].first != ends[i].first;
    if (all_of_this_time && fits_now(node, groups_depend)) return ends[i].first;
  }
  return std::nullopt;
}

std::vector<PodSlot> VictimSearch::must_leave(PodSlot waiting, NodeSlot node, const std::vector<PodSlot>& may_leave) {
  if (!state_.node(node).present || may_leave.empty()) return {};
  const QueueOrder before{&state_};
  const Residents::Table& here = residents_.of(node, state_, rules_);
  Trial trial(state_, node, cls_);
  gone_ = {};
  bool groups_depend = false;
  std::vector<const Resident*> asked(may_leave.size());
  for (const Resident& pod : here.pods()) {
    const auto at = std::find(may_leave.begin(), may_leave.end(), pod.pod);
    if (at != may_leave.end()) asked[static_cast<size_t>(at - may_leave.begin())] = &pod;
    const bool goes = pod.pod == waiting || (pod.nominated && before(waiting, pod.pod)) ||
                      is_kept_for_later(waiting, pod.pod, state_) || is_leaving(state_.pod(pod.pod)) ||
                      at != may_leave.end();
    if (goes) groups_depend |= take_out(trial, here, pod);
  }
  std::vector<PodSlot> out;
  if (!fits_now(node, groups_depend)) return out;
  for (const Resident* pod : asked) {
    put_back(trial, here, *pod);
    if (fits_now(node, groups_depend)) continue;
    take_out(trial, here, *pod);
    out.push_back(pod->pod);
  }
  return out;
}

bool VictimSearch::fits_without(NodeSlot node, const std::vector<PodSlot>& others) {
  if (!state_.node(node).present) return false;
  const Residents::Table& here = residents_.of(node, state_, rules_);
  Trial trial(state_, node, cls_);
  gone_ = {};
  bool groups_depend = false;
  for (const Resident& pod : here.pods())
    if (std::find(others.begin(), others.end(), pod.pod) != others.end()) groups_depend |= take_out(trial, here, pod);
  return fits_now(node, groups_depend);
}

}  // namespace berth::engine
