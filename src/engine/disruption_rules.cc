#include "engine/disruption_rules.h"

#include <algorithm>
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
  std::unique_ptr<Rule>& rule = budgets_[budget.namespace_name][budget.name];
  if (rule != nullptr && rule->budget == budget) return;
  const bool same_pods = rule != nullptr && rule->budget.pods == budget.pods;
  if (rule != nullptr && !same_pods) touch_covered(rule->budget, state);
  if (rule == nullptr) rule = std::make_unique<Rule>();
  if (!same_pods) ++cover_version_;
  touch_covered(budget, state);
  rule->budget = std::move(budget);
}

void DisruptionRules::remove_budget(const std::string& key, State& state) {
  const size_t slash = key.find('/');
  const auto in_namespace = budgets_.find(key.substr(0, slash));
  if (in_namespace == budgets_.end()) return;
  const auto at = in_namespace->second.find(key.substr(slash + 1));
  if (at == in_namespace->second.end()) return;
  touch_covered(at->second->budget, state);
  ++cover_version_;
  in_namespace->second.erase(at);
  if (in_namespace->second.empty()) budgets_.erase(in_namespace);
}

void DisruptionRules::replace_budgets(const std::vector<model::DisruptionBudget>& budgets, State& state) {
  std::vector<std::string> gone;
  for (const auto& by_name : budgets_) {
    for (const auto& entry : by_name.second) {
      const std::string key = entry.second->budget.key();
      if (std::none_of(budgets.begin(), budgets.end(), [&](const auto& b) { return b.key() == key; }))
        gone.push_back(key);
    }
  }
  for (const std::string& key : gone) remove_budget(key, state);
  for (const model::DisruptionBudget& budget : budgets) set_budget(budget, state);
}

std::vector<model::DisruptionBudget> DisruptionRules::budgets() const {
  std::vector<model::DisruptionBudget> out;
  for (const auto& [namespace_name, by_name] : budgets_)
    for (const auto& [name, rule] : by_name) out.push_back(rule->budget);
  return out;
}

bool DisruptionRules::set_protects(const std::string& namespace_name, bool protects, State& state) {
  if (protecting_namespaces_.contains(namespace_name) == protects) return false;
  if (protects) protecting_namespaces_.insert(namespace_name);
  else protecting_namespaces_.erase(namespace_name);
  for (const IdentityId id : state.peers().identities_in(namespace_name))
    for (const PodSlot pod : state.peers().identity(id).pods)
      if (holds_room(state.pod(pod).phase) && !state.pod(pod).pod.preemptible) state.touch_node_of(pod);
  return true;
}

const std::vector<DisruptionRules::Rule*>& DisruptionRules::rules_of(IdentityId id, const State& state) {
  if (covers_.size() <= id.value) covers_.resize(id.value + 1);
  Cover& cover = covers_[id.value];
  const Identity& identity = state.peers().identity(id);
  if (cover.version == cover_version_ && cover.labels == identity.labels &&
      cover.namespace_name == identity.namespace_name)
    return cover.rules;
  cover = {cover_version_, identity.namespace_name, identity.labels, {}};
  if (const auto in_namespace = budgets_.find(identity.namespace_name); in_namespace != budgets_.end())
    for (const auto& [name, rule] : in_namespace->second)
      if (covers(rule->budget, identity.labels.get())) cover.rules.push_back(rule.get());
  return cover.rules;
}

std::vector<bool> DisruptionRules::violations(const std::vector<PodSlot>& pods, const State& state) {
  std::vector<bool> out(pods.size(), false);
  if (budgets_.empty()) return out;
  ++round_;
  for (size_t i = 0; i < pods.size(); ++i) {
    const PodState& pod = state.pod(pods[i]);
    for (Rule* rule : rules_of(pod.identity, state)) {
      const std::vector<std::string>& disrupted = rule->budget.disrupted;
      if (std::binary_search(disrupted.begin(), disrupted.end(), pod.pod.name)) continue;
      if (std::exchange(rule->round, round_) != round_) rule->left = rule->budget.allowed;
      if (--rule->left < 0) out[i] = true;
    }
  }
  return out;
}

}  // namespace berth::engine
