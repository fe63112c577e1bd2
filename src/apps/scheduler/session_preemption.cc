// Session's part for preemption: disruption budgets, and evictions from the decision to what became of it.
#include <fmt/format.h>

#include <algorithm>

#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"

namespace berth::apps {

// True when evictions respect the budgets: they have been listed, or none are carried out since they may not be read.
bool Session::budgets_listed() {
  if (budgets_listed_ || budgets_refused_) return true;
  if (!budgets_->refused()) return false;
  log_error(
      "disruption budgets cannot be read: no pod will be evicted for another; deploy/rbac.yaml lists what is needed",
      {{"resource", "poddisruptionbudgets"}});
  budgets_refused_ = true;
  cycle_due_ = true;  // nothing else may come that would begin one
  set_preemption(false);
  return true;
}

// Holds back the pods that would preempt, or lets those that were held back do so.
void Session::set_preemption(bool allowed) {
  std::vector<model::Pod> changed;
  const engine::State& state = engine_.state();
  for (const engine::PodSlot slot : state.pods()) {
    const model::Pod& pod = state.pod(slot).pod;
    const bool concerned = allowed ? held_back_.contains(pod.uid) : pod.ours && pod.node_name.empty() && pod.preempts;
    if (concerned) changed.push_back(pod);
  }
  std::sort(changed.begin(), changed.end(), [](const auto& a, const auto& b) { return a.uid < b.uid; });
  held_back_.clear();
  for (model::Pod& pod : changed) {
    pod.preempts = allowed;
    if (!allowed) held_back_.insert(pod.uid);
    engine_.apply(engine::PodUpserted{std::move(pod)});
  }
}

void Session::handle(BudgetUpdates& updates) {
  constexpr const char* kKind = "PodDisruptionBudget";
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<model::DisruptionBudget>>(&update)) {
      doubtful_ = doubtful_ || list->went_back;
      set_aside_.clear(kKind);
      engine_.apply(engine::BudgetsReplaced{std::move(list->objects)});
      budgets_listed_ = true;
      if (std::exchange(budgets_refused_, false)) set_preemption(true);
    } else if (auto* upserted = std::get_if<kube::Upserted<model::DisruptionBudget>>(&update)) {
      set_aside_.remove(kKind, upserted->object.namespace_name, upserted->object.name);
      engine_.apply(engine::BudgetUpserted{std::move(upserted->object)});
    } else if (auto* deleted = std::get_if<kube::Deleted<model::DisruptionBudget>>(&update)) {
      set_aside_.remove(kKind, deleted->object.namespace_name, deleted->object.name);
      engine_.apply(engine::BudgetDeleted{deleted->object.key()});
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      model::DisruptionBudget strict{malformed->name_space, malformed->name, {}, 0, {}};
      if (malformed->deleted) {
        set_aside_.remove(kKind, malformed->name_space, malformed->name);
        engine_.apply(engine::BudgetDeleted{strict.key()});
      } else {
        quarantine(kKind, *malformed);
        engine_.apply(engine::BudgetUpserted{std::move(strict)});  // whom it means is not known: all of its namespace
      }
    }
  }
}

void Session::evict(const engine::Decision& decision) {
  const auto target = [this](const std::string& uid) {
    const engine::PodSlot slot = engine_.state().find_pod(uid);
    if (!slot.valid()) return kube::EventTarget{.uid = uid};
    const model::Pod& pod = engine_.state().pod(slot).pod;
    return kube::EventTarget{.name_space = pod.namespace_name, .name = pod.name, .uid = uid};
  };
  Eviction eviction;
  eviction.victim = {.name_space = decision.namespace_name, .name = decision.pod_name, .uid = decision.pod_uid};
  eviction.preemptor = target(decision.preemptor_uid);
  eviction.node_name = decision.node_name;
  const auto other = other_schedulers_.find(decision.preemptor_uid);
  eviction.scheduler_name = other != other_schedulers_.end() ? other->second : config_.scheduler_names.front();
  if (const engine::PodSlot slot = engine_.state().find_pod(decision.pod_uid); slot.valid())
    eviction.victim_generation = engine_.state().pod(slot).pod.generation;
  log_info("evicting a pod for another",
           {{"pod", decision.namespace_name + "/" + decision.pod_name},
            {"node", decision.node_name},
            {"preemptor", eviction.preemptor.name_space + "/" + eviction.preemptor.name}});
  evictor_->evict(std::move(eviction));
}

void Session::count_victims(const std::vector<engine::Decision>& decisions) {
  std::map<std::string_view, size_t> victims;  // by preemptor
  for (const engine::Decision& decision : decisions)
    if (decision.kind == engine::DecisionKind::kEvict) ++victims[decision.preemptor_uid];
  for (const auto& [preemptor, count] : victims) options_.metrics->preemption(count);
}

void Session::handle(EvictionReport& report) {
  const Eviction& eviction = report.eviction;
  options_.metrics->eviction(to_string(report.end));
  if (report.end == EvictionEnd::kEvicted)
    events_->record(
        {.regarding = eviction.victim,
         .related = eviction.preemptor,
         .reason = "Preempted",
         .action = "Preempting",
         .note = fmt::format("Preempted by pod {} on node {}", eviction.preemptor.uid, eviction.node_name)});
  if (report.end == EvictionEnd::kRefused)
    log_error(report.forbidden
                  ? "a pod may not be evicted: Berth's role needs delete on pods and patch on pods/status; "
                    "deploy/rbac.yaml lists what is needed"
                  : "a pod could not be evicted: the server will not have it",
              {{"pod", eviction.victim.name_space + "/" + eviction.victim.name}, {"error", report.error}});
  if (report.end == EvictionEnd::kRefused || report.end == EvictionEnd::kWithdrawn)
    engine_.apply(engine::EvictionFailed{eviction.victim.uid});
}

}  // namespace berth::apps
