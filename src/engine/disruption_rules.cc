#include "engine/disruption_rules.h"

#include <algorithm>
#include <map>
#include <utility>

namespace berth::engine {
namespace {

const model::Labels kNoLabels;

bool covers(const model::DisruptionBudget& budget, const model::Labels* labels) {
  return budget.pods.matches(labels == nullptr ? kNoLabels : *labels);
}

}  // namespace

void DisruptionRules::touch_covered(const model::DisruptionBudget& budget, State& state) {
  for (const IdentityId id : state.peers().identities_in(budget.namespace_name)) {
    const Identity& identity = state.peers().identity(id);
    if (!covers(budget, identity.labels.get())) continue;
    for (const PodSlot pod : identity.pods)
      if (holds_room(state.pod(pod).phase)) state.touch_node_of(pod);
  }
}

void DisruptionRules::set_budget(model::DisruptionBudget budget, State& state) {
  const auto [at, added] = budgets_[budget.namespace_name].try_emplace(budget.name);
  if (at->second == budget) return;
  if (!added && !(at->second.pods == budget.pods)) touch_covered(at->second, state);
  touch_covered(budget, state);
  at->second = std::move(budget);
}

void DisruptionRules::remove_budget(const std::string& key, State& state) {
  const size_t slash = key.find('/');
  const auto in_namespace = budgets_.find(key.substr(0, slash));
  if (in_namespace == budgets_.end()) return;
  const auto at = in_namespace->second.find(key.substr(slash + 1));
  if (at == in_namespace->second.end()) return;
  touch_covered(at->second, state);
  in_namespace->second.erase(at);
  if (in_namespace->second.empty()) budgets_.erase(in_namespace);
}

void DisruptionRules::replace_budgets(const std::vector<model::DisruptionBudget>& budgets, State& state) {
  std::vector<std::string> gone;
  for (const auto& by_name : budgets_) {
    for (const auto& entry : by_name.second) {
      const std::string key = entry.second.key();
      if (std::none_of(budgets.begin(), budgets.end(), [&](const auto& b) { return b.key() == key; }))
        gone.push_back(key);
    }
  }
  for (const std::string& key : gone) remove_budget(key, state);
  for (const model::DisruptionBudget& budget : budgets) set_budget(budget, state);
}

void DisruptionRules::set_protects(const std::string& namespace_name, bool protects, State& state) {
  if (protecting_namespaces_.contains(namespace_name) == protects) return;
  if (protects) protecting_namespaces_.insert(namespace_name);
  else protecting_namespaces_.erase(namespace_name);
  for (const IdentityId id : state.peers().identities_in(namespace_name))
    for (const PodSlot pod : state.peers().identity(id).pods)
      if (holds_room(state.pod(pod).phase) && !state.pod(pod).pod.preemptible) state.touch_node_of(pod);
}

std::vector<bool> DisruptionRules::violations(const std::vector<PodSlot>& pods, const State& state) const {
  std::vector<bool> out(pods.size(), false);
  if (budgets_.empty()) return out;
  std::map<const model::DisruptionBudget*, int64_t> left;
  for (size_t i = 0; i < pods.size(); ++i) {
    const model::Pod& pod = state.pod(pods[i]).pod;
    const auto in_namespace = budgets_.find(pod.namespace_name);
    if (in_namespace == budgets_.end()) continue;
    for (const auto& [name, budget] : in_namespace->second) {
      if (!covers(budget, pod.labels.get())) continue;
      if (std::binary_search(budget.disrupted.begin(), budget.disrupted.end(), pod.name)) continue;
      int64_t& allowed = left.try_emplace(&budget, budget.allowed).first->second;
      if (--allowed < 0) out[i] = true;
    }
  }
  return out;
}

}  // namespace berth::engine
