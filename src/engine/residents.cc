#include "engine/residents.h"

#include <algorithm>
#include <tuple>

namespace berth::engine {
namespace {

// kube-scheduler's MoreImportantPod; equals by name.
bool more_important(const model::Pod& a, const model::Pod& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  if (start_of(a) != start_of(b)) return start_of(a) < start_of(b);
  return std::tie(a.namespace_name, a.name, a.uid) < std::tie(b.namespace_name, b.name, b.uid);
}

}  // namespace

int64_t start_of(const model::Pod& pod) { return pod.started == Time{} ? INT64_MAX : pod.started.nanos; }

size_t Residents::Table::first_below(int32_t priority) const {
  const auto at = std::partition_point(pods_.begin(), pods_.end(),
                                       [priority](const Resident& pod) { return pod.priority >= priority; });
  return static_cast<size_t>(at - pods_.begin());
}

const Residents::Table& Residents::of(NodeSlot node, const State& state, const DisruptionRules& rules) {
  if (tables_.size() <= node.value) tables_.resize(state.node_slots());
  Table& table = tables_[node.value];
  if (table.generation_ != state.node(node).generation) make(table, state.node(node), state, rules);
  return table;
}

void Residents::make(Table& table, const NodeState& node, const State& state, const DisruptionRules& rules) {
  table.generation_ = node.generation;
  table.judged_from_ = SIZE_MAX;
  table.pods_.clear();
  table.amounts_.clear();
  slots_ = node.pods;
  std::sort(slots_.begin(), slots_.end(),
            [&state](PodSlot a, PodSlot b) { return more_important(state.pod(a).pod, state.pod(b).pod); });
  for (const PodSlot slot : slots_) {
    const PodState& pod = state.pod(slot);
    const PodClass& cls = state.pod_class(pod.cls);
    const auto keeps_away = [](const OwnedTerm& owned) { return owned.anti > 0; };
    table.pods_.push_back(
        {.pod = slot,
         .identity = pod.identity,
         .priority = pod.pod.priority,
         .start = start_of(pod.pod),
         .first_amount = static_cast<uint32_t>(table.amounts_.size()),
         .amounts = static_cast<uint32_t>(cls.requests.size()),
         .nominated = pod.phase == PodPhase::kNominated && (!pod.pod.stand_in || !pod.pod.keeps_gpus_for.empty()),
         .yields = !rules.is_protected(pod.pod) && pod.evictable_from == Time{},
         .heard = !state.peers().identity(pod.identity).matches.empty() ||
                  std::any_of(cls.peers.owned.begin(), cls.peers.owned.end(), keeps_away)});
    table.amounts_.insert(table.amounts_.end(), cls.requests.begin(), cls.requests.end());
  }
}

const std::vector<bool>& Residents::violations(NodeSlot node, const std::vector<uint32_t>& pods, const State& state,
                                               DisruptionRules& rules) {
  Table& table = tables_[node.value];
  slots_.clear();
  // All pods below some priority are what most classes ask about; the answer for the latest such is kept.
  const bool all = !pods.empty() && pods.size() == table.pods_.size() - pods.front();
  if (all && table.judged_from_ == pods.front()) return table.judged_;
  for (const uint32_t pod : pods) slots_.push_back(table.pods_[pod].pod);
  std::vector<bool>& out = all ? table.judged_ : violations_;
  out = rules.violations(slots_, state);
  if (all) table.judged_from_ = pods.front();
  return out;
}

size_t Residents::memory_bytes() const {
  size_t total = tables_.capacity() * sizeof(Table);
  for (const Table& table : tables_)
    total += table.pods_.capacity() * sizeof(Resident) + table.amounts_.capacity() * sizeof(ResourceAmount);
  return total;
}

}  // namespace berth::engine
