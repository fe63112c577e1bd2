#include "engine/preemption_view.h"

#include <algorithm>
#include <map>

#include "base/check.h"

namespace berth::engine {

bool PreemptionView::Cheaper::operator()(NodeSlot a, NodeSlot b) const {
  if (a == b) return false;
  const PlanCost &x = view->entries_.at(a).plan.cost, &y = view->entries_.at(b).plan.cost;
  if (x < y || y < x) return x < y;
  return state->node(a).order < state->node(b).order;
}

void PreemptionView::start_over(const State& state) {
  if (!entries_.empty()) ++version_;
  ranking_.clear();
  entries_.clear();
  cursor_ = state.change_end();
  scan_ = 0;
  scanning_ = true;
  stale_until_ = Time{INT64_MAX};
}

void PreemptionView::forget(NodeSlot node) {
  const auto at = entries_.find(node);
  if (at == entries_.end()) return;
  if (at->second.failure == kFits) ranking_.erase(node);
  entries_.erase(at);
  ++version_;
}

// Tries one node anew; false: out of work units, nothing was done.
bool PreemptionView::try_node(const Context& context, const PodClass& cls, const Candidates& candidates, NodeSlot node,
                              WorkBudget& work) {
  if (!work.spend()) return false;
  forget(node);
  const FailureSetId failure = candidates.failure(node);
  if (!failure.valid() || failure == kFits || !context.sets.preemption_helps(failure)) return true;
  VictimSearch search(context.state, context.policies, context.rules, context.now, cls, candidates.groups());
  if (!search.has_lower(node)) return true;
  Entry entry{context.state.node(node).generation, kFits, {}};
  Reasons why_not;
  if (!search.find(node, entry.plan, why_not)) entry.failure = context.sets.intern(why_not, context.state.resources());
  work.spend(search.effort());
  const bool planned = entry.failure == kFits;
  entries_.emplace(node, std::move(entry));
  if (planned) ranking_.insert(node);
  ++version_;
  return true;
}

bool PreemptionView::refresh(const Context& context, const PodClass& cls, const Candidates& candidates,
                             WorkBudget& work) {
  const State& state = context.state;
  const bool in_vain = !cls.preempts || cls.gave_up || cls.priority <= state.lowest_priority();
  if (epoch_ != candidates.epoch() || in_vain || cursor_ < state.change_base()) start_over(state);
  epoch_ = candidates.epoch();
  stale_until_ = Time{INT64_MAX};
  if (in_vain) return true;
  while (scanning_ || cursor_ != state.change_end()) {
    if (!scanning_ && context.now < next_look_) {
      stale_until_ = next_look_;
      return confirm_best(context, cls, candidates, work);
    }
    if (!try_changed(context, cls, candidates, work)) return false;
    fruitless_ = best().valid() ? 0 : fruitless_ + 1;
    // What changed while a scan of several cycles went on is left to the next one: there must be an end.
    const bool enough = context.retry > Duration{};
    next_look_ = fruitless_ == 0 ? Time{INT64_MIN} : context.now + context.retry * (1 << std::min(fruitless_ - 1, 3U));
    if (enough) return confirm_best(context, cls, candidates, work);
  }
  return true;
}

// Tries all nodes, or those that changed. False: out of work units.
bool PreemptionView::try_changed(const Context& context, const PodClass& cls, const Candidates& candidates,
                                 WorkBudget& work) {
  const State& state = context.state;
  if (!scanning_ && candidates.groups() != nullptr) {
    cursor_ = state.change_end();
    scanning_ = true;
  }
  for (; scanning_ && scan_ < state.node_slots(); ++scan_)
    if (!try_node(context, cls, candidates, NodeSlot{scan_}, work)) return false;
  scanning_ = false;
  scan_ = 0;
  if (candidates.groups() != nullptr) return true;
  for (; cursor_ < state.change_end(); ++cursor_) {
    const NodeSlot node = state.change(cursor_);
    if (const auto at = entries_.find(node);
        at != entries_.end() && at->second.generation == state.node(node).generation)
      continue;
    if (!try_node(context, cls, candidates, node, work)) return false;
  }
  return true;
}

// Tries the cheapest nodes again until one holds.
bool PreemptionView::confirm_best(const Context& context, const PodClass& cls, const Candidates& candidates,
                                  WorkBudget& work) {
  for (NodeSlot node = best(); node.valid(); node = best()) {
    const bool same = entries_.at(node).generation == context.state.node(node).generation;
    if (same && candidates.groups() == nullptr) return true;
    if (!try_node(context, cls, candidates, node, work)) return false;
    if (best() == node) return true;
  }
  return true;
}

std::string PreemptionView::why_not(const PodClass& cls, const Candidates& candidates, const FailureSets& sets) const {
  if (!cls.preempts) return "preemption: not eligible due to preemptionPolicy=Never.";
  if (cls.gave_up) return "preemption: not eligible, since its nominations came to nothing too often.";
  const FailureCounts counts = candidates.counts();
  std::map<std::string, uint64_t> by_text;
  uint64_t &no_victims = by_text["No preemption victims found for incoming pod"],
           &not_helpful = by_text["Preemption is not helpful for scheduling"];
  for (uint32_t id = 1; id < counts.by_set.size(); ++id)
    (sets.preemption_helps(FailureSetId{id}) ? no_victims : not_helpful) += counts.by_set[id];
  for (const auto& [node, entry] : entries_) {
    const FailureSetId failure = candidates.failure(node);
    if (entry.failure == kFits || !failure.valid() || failure == kFits || !sets.preemption_helps(failure)) continue;
    check(no_victims > 0, "a node that could be cleared is counted");
    --no_victims;
    for (const std::string& text : sets.texts(entry.failure)) ++by_text[text];
  }
  return "preemption: " + unavailable_message(counts.nodes, by_text);
}

}  // namespace berth::engine
