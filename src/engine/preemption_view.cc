#include "engine/preemption_view.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.h"

namespace berth::engine {
namespace {

// Entries found to hold that count as the work of examining one node.
constexpr uint32_t kGlancesPerUnit = 64;

}  // namespace

uint32_t PreemptionView::better(uint32_t a, uint32_t b, const State& state) const {
  const Entry &x = entries_[a], &y = entries_[b];
  if (!x.planned() || !y.planned()) return y.planned() ? b : a;
  if (x.cost < y.cost || y.cost < x.cost) return x.cost < y.cost ? a : b;
  return state.node(NodeSlot{a}).order < state.node(NodeSlot{b}).order ? a : b;
}

NodeSlot PreemptionView::best() const {
  const bool some = !entries_.empty() && entries_[tournament_.winner()].planned();
  return some ? NodeSlot{tournament_.winner()} : NodeSlot{};
}

void PreemptionView::start_over(const State& state) {
  if (!entries_.empty()) ++version_;
  entries_ = {};
  tournament_.clear();
  batch_ = false;
  cursor_ = state.change_end();
  scan_ = 0;
  scanning_ = true;
  stale_until_ = Time{INT64_MAX};
}

void PreemptionView::grow(const State& state) {
  if (!entries_.empty() && entries_.size() >= state.node_slots()) return;
  tournament_.resize(state.node_slots());
  entries_.resize(tournament_.size());
  batch_ = true;
}

void PreemptionView::settle(const State& state) {
  if (std::exchange(batch_, false)) tournament_.rebuild([&](uint32_t a, uint32_t b) { return better(a, b, state); });
}

void PreemptionView::forget(NodeSlot node, const State& state) {
  if (node.value >= entries_.size()) return;
  Entry& entry = entries_[node.value];
  if (entry.failure.valid()) ++version_;
  const bool planned = entry.planned();
  entry = Entry{};
  if (planned && !batch_) tournament_.update(node.value, [&](uint32_t a, uint32_t b) { return better(a, b, state); });
}

// Whether what is known of the node is still so, for a class that inter-pod terms concern.
bool PreemptionView::holds(NodeSlot node, const State& state, const Candidates& candidates) const {
  const Entry& entry = entries_[node.value];
  return entry.generation == state.node(node).generation && !entry.looked_around &&
         (!state.node(node).present || entry.group == candidates.groups()->failure(node));
}

// Tries one node anew; false: out of work units, nothing was done.
bool PreemptionView::try_node(VictimSearch& search, const Context& context, const Candidates& candidates, NodeSlot node,
                              WorkBudget& work) {
  if (!work.spend()) return false;
  const State& state = context.search.state;
  Entry entry{.generation = state.node(node).generation, .failure = {}, .group = kFits, .cost = {}};
  const FailureSetId failure = candidates.failure(node);
  if (failure.valid()) {
    if (candidates.groups() != nullptr) entry.group = candidates.groups()->failure(node);
    if (failure != kFits && context.sets.preemption_helps(failure)) {
      const VictimSearch::Outcome outcome = search.price(node, entry.cost);
      entry.looked_around = search.looked_around();
      if (outcome == VictimSearch::Outcome::kPlan) entry.failure = kFits;
      if (outcome == VictimSearch::Outcome::kHopeless) entry.failure = search.why_not(context.sets);
      work.spend(search.take_effort());
    }
  }
  Entry& known = entries_[node.value];
  if (known.failure != entry.failure) ++version_;
  const bool ranked = known.planned() || entry.planned();
  known = entry;
  if (ranked && !batch_) tournament_.update(node.value, [&](uint32_t a, uint32_t b) { return better(a, b, state); });
  return true;
}

bool PreemptionView::refresh(const Context& context, const PodClass& cls, const Candidates& candidates,
                             WorkBudget& work) {
  const State& state = context.search.state;
  const bool in_vain = !cls.preempts || cls.gave_up || cls.priority <= state.lowest_priority();
  if (epoch_ != candidates.epoch() || in_vain || cursor_ < state.change_base()) start_over(state);
  epoch_ = candidates.epoch();
  stale_until_ = Time{INT64_MAX};
  if (in_vain) return true;
  grow(state);
  while (scanning_ || cursor_ != state.change_end()) {
    if (!scanning_ && context.search.now < next_look_) {
      stale_until_ = next_look_;
      return confirm_best(context, cls, candidates, work);
    }
    if (!try_changed(context, cls, candidates, work)) return false;
    settle(state);
    fruitless_ = best().valid() ? 0 : fruitless_ + 1;
    // What changed while a scan of several cycles went on is left to the next one: there must be an end.
    const bool enough = context.retry > Duration{};
    next_look_ =
        fruitless_ == 0 ? Time{INT64_MIN} : context.search.now + context.retry * (1 << std::min(fruitless_ - 1, 3U));
    if (enough) return confirm_best(context, cls, candidates, work);
  }
  settle(state);
  return true;
}

// Tries all nodes, or those that changed. False: out of work units.
bool PreemptionView::try_changed(const Context& context, const PodClass& cls, const Candidates& candidates,
                                 WorkBudget& work) {
  const State& state = context.search.state;
  if (!scanning_ && candidates.groups() != nullptr) {
    cursor_ = state.change_end();
    scanning_ = true;
  }
  if (scanning_ && !try_all(context, cls, candidates, work)) return false;
  if (candidates.groups() != nullptr) return true;
  VictimSearch search(context.search, cls, candidates.groups());
  batch_ |= state.change_end() - cursor_ > entries_.size() / 4;
  for (; cursor_ < state.change_end(); ++cursor_) {
    const NodeSlot node = state.change(cursor_);
    if (entries_[node.value].generation == state.node(node).generation) continue;
    if (!try_node(search, context, candidates, node, work)) return false;
  }
  return true;
}

bool PreemptionView::try_all(const Context& context, const PodClass& cls, const Candidates& candidates,
                             WorkBudget& work) {
  const State& state = context.search.state;
  VictimSearch search(context.search, cls, candidates.groups());
  for (; scan_ < state.node_slots(); ++scan_) {
    const NodeSlot node{scan_};
    const bool known = candidates.groups() != nullptr && holds(node, state, candidates);
    if (known && (scan_ % kGlancesPerUnit != 0 || work.spend())) continue;
    if (known) return false;
    batch_ = true;
    if (!try_node(search, context, candidates, node, work)) return false;
  }
  scanning_ = false;
  scan_ = 0;
  return true;
}

// Tries the cheapest nodes again until one holds.
bool PreemptionView::confirm_best(const Context& context, const PodClass& cls, const Candidates& candidates,
                                  WorkBudget& work) {
  const State& state = context.search.state;
  VictimSearch search(context.search, cls, candidates.groups());
  settle(state);
  for (NodeSlot node = best(); node.valid(); node = best()) {
    const bool same = candidates.groups() != nullptr ? holds(node, state, candidates)
                                                     : entries_[node.value].generation == state.node(node).generation;
    if (same) return true;
    if (!try_node(search, context, candidates, node, work)) return false;
    if (best() == node) return true;
  }
  return true;
}

std::string PreemptionView::why_not(const PodClass& cls, const Candidates& candidates, const FailureSets& sets) const {
  if (!cls.preempts) return "preemption: not eligible due to preemptionPolicy=Never.";
  if (cls.gave_up) return "preemption: not eligible for now, since its nominations came to nothing too often.";
  const FailureCounts counts = candidates.counts();
  std::map<std::string, uint64_t> by_text;
  uint64_t &no_victims = by_text["No preemption victims found for incoming pod"],
           &not_helpful = by_text["Preemption is not helpful for scheduling"];
  for (uint32_t id = 1; id < counts.by_set.size(); ++id)
    (sets.preemption_helps(FailureSetId{id}) ? no_victims : not_helpful) += counts.by_set[id];
  std::vector<uint64_t> hopeless(sets.size(), 0);
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].failure.valid() || entries_[i].planned()) continue;
    const FailureSetId failure = candidates.failure(NodeSlot{i});
    if (failure.valid() && failure != kFits && sets.preemption_helps(failure)) ++hopeless[entries_[i].failure.value];
  }
  for (uint32_t id = 0; id < hopeless.size(); ++id) {
    check(no_victims >= hopeless[id], "a node that could be cleared is counted");
    no_victims -= hopeless[id];
    if (hopeless[id] == 0) continue;
    for (const std::string& text : sets.texts(FailureSetId{id})) by_text[text] += hopeless[id];
  }
  return "preemption: " + unavailable_message(counts.nodes, by_text);
}

}  // namespace berth::engine
