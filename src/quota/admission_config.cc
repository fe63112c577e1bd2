#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "quota/admission_keeper.h"

namespace berth::quota {
namespace {

// False: it is known as it is, as when somebody has only written its status. Whatever changes costs a look at
// everybody.
template <typename Map, typename Key, typename Value>
bool store(Map& known, const Key& key, Value&& value) {
  const auto [at, fresh] = known.try_emplace(key, value);
  if (!fresh && at->second == value) return false;
  at->second = std::forward<Value>(value);
  return true;
}

// The same. What an object says was spent counts when it is first heard of.
template <typename Map, typename Key, typename Queue>
bool store_queue(Map& known, const Key& key, Queue&& queue) {
  if (const auto at = known.find(key); at != known.end()) at->second.spent = queue.spent;
  return store(known, key, std::forward<Queue>(queue));
}

}  // namespace

void Admission::upsert(model::ResourceFlavor flavor) {
  if (store(flavors_, flavor.name, std::move(flavor))) reconfigure();
}

void Admission::upsert(model::ClusterQueue queue) {
  const bool was_going = going_.erase(queue.name) > 0;
  const auto known = queues_.find(queue.name);
  bool changes = true;
  if (!queue.problem.empty() && known != queues_.end())
    changes = std::exchange(known->second.problem, queue.problem) != queue.problem;
  else changes = store_queue(queues_, queue.name, std::move(queue));
  if (changes || was_going) reconfigure();
}

void Admission::upsert(model::Cohort cohort) {
  if (store(cohorts_, cohort.name, std::move(cohort))) reconfigure();
}

// What it says was used counts when it is first heard of, too.
void Admission::upsert(model::LocalQueue queue) {
  const std::pair key(queue.namespace_name, queue.name);
  const std::optional<model::UsedOfLate> used = std::exchange(queue.used, std::nullopt);
  if (used && !local_queues_.contains(key))
    usage_.know(key, used->amounts, used->until + (Duration{} - options_.created_ahead));
  if (store_queue(local_queues_, key, std::move(queue))) reconfigure();
}

void Admission::set_namespace_labels(const std::string& name, model::Labels labels) {
  model::Labels& known = namespaces_[name];
  if (known == labels) return;
  known = std::move(labels);
  reconfigure();
}

void Admission::remove(const model::ResourceFlavor& flavor) {
  flavors_.erase(flavor.name);
  reconfigure();
}

void Admission::remove(const model::ClusterQueue& queue) {
  const auto known = queues_.find(queue.name);
  if (known == queues_.end()) return;
  known->second.stop = model::StopPolicy::kHold;
  going_.insert(queue.name);
  reconfigure();
}

void Admission::remove(const model::Cohort& cohort) {
  cohorts_.erase(cohort.name);
  reconfigure();
}

void Admission::remove(const model::LocalQueue& queue) {
  local_queues_.erase({queue.namespace_name, queue.name});
  spending_.remove({queue.namespace_name, queue.name});
  reconfigure();
}

void Admission::drop_empty_queues() {
  for (auto at = going_.begin(); at != going_.end();) {
    const QuotaNode node = ledger_ ? ledger_->tree().queue(*at) : QuotaNode{};
    const bool empty = !node.valid() || ledger_->holders(node).empty();
    if (!empty) {
      ++at;
      continue;
    }
    queues_.erase(*at);
    spending_.remove({"", *at});
    at = going_.erase(at);
    stale_ = true;
  }
}

void Admission::reconfigure() {
  stale_ = charges_stale_ = true;
  ++epoch_;
}

const model::LocalQueue* Admission::local_queue(const model::Workload& workload) const {
  const auto found = local_queues_.find({workload.namespace_name, workload.queue});
  return found == local_queues_.end() ? nullptr : &found->second;
}

void Admission::rebuild_ledger() {
  if (!std::exchange(stale_, false)) return;
  QuotaTree tree(queues_, cohorts_);
  kept_.alone.emplace(tree);
  kept_.by_usage = std::ranges::any_of(queues_, [](const auto& each) { return each.second.usage_based; });
  Ledger next(std::move(tree));
  for (const auto& [name, queue] : queues_) next.set_terms(next.tree().queue(name), queue.victims);
  for (const Record& record : records_) {
    if (record.standing != Standing::kHolding) continue;
    Holder holder = ledger_->holder(record.key.id);
    holder.queue = next.tree().queue(record.status.cluster_queue);
    if (!holder.queue.valid()) continue;
    holder.usage = usage_of(next.tree(), record.status.assignment, record.status.workload);
    next.reserve(std::move(holder));
  }
  ledger_.emplace(std::move(next));
  kept_.aside.reserved.clear();
  touched_.clear();
  for (const Record& record : records_)
    if (record.key.id.valid()) touched_.push_back(record.key.id);
}

WorkloadId Admission::restore(model::Workload workload, HeldQuota held) {
  if (const WorkloadId known = find(workload.uid); known.valid()) return known;
  const WorkloadId id = upsert(std::move(workload));
  if (!queues_.contains(held.cluster_queue)) {
    model::ClusterQueue& gone = queues_[held.cluster_queue];
    gone.name = held.cluster_queue;
    gone.stop = model::StopPolicy::kHold;
    going_.insert(held.cluster_queue);
    reconfigure();
  }
  rebuild_ledger();
  Record& record = this->record(id);
  record.standing = Standing::kHolding;
  record.status.phase = held.quota_only ? WorkloadPhase::kQuotaReserved : WorkloadPhase::kAdmitted;
  record.status.cluster_queue = std::move(held.cluster_queue);
  record.status.assignment = std::move(held.assignment);
  record.status.evicted = held.evicted;
  record.admitted = held.admitted;
  record.status.lent_room = held.lent_room;
  if (held.evicted.empty() && options_.pods_ready.enabled) not_ready_.insert(id);
  Holder holder = holder_of(record);
  holder.reserved = held.reserved.value_or(record.status.workload.created);
  holder.evicted = !held.evicted.empty();
  ledger_->reserve(std::move(holder));
  uncounted_.restored.push_back(id);
  charges_stale_ = true;
  return id;
}

// Brings the ledger up to the configuration, and workloads to where the facts put them.
void Admission::rebuild(std::vector<AdmissionDecision>& decisions) {
  drop_empty_queues();
  rebuild_ledger();
  wake_due();
  count_spending();
  usage_.no_later_than(now_);
  for (const WorkloadId id : std::exchange(uncounted_.restored, {})) {
    Record& restored = record(id);
    const bool runs = restored.standing == Standing::kHolding && restored.status.phase == WorkloadPhase::kAdmitted;
    if (runs && !restored.counted) count_usage(restored, true);
  }
  for (const UsedLocally& over : std::exchange(uncounted_.no_longer_used, {}))
    usage_.end(over.local_queue, over.amounts, now_);
  for (const WorkloadId id : places_ == nullptr ? std::set<WorkloadId>() : places_->lacking()) {
    Record& lacks = record(id);
    const bool reserved = lacks.status.phase == WorkloadPhase::kQuotaReserved;
    if (reserved ? lacks.placeless : places_->has_begun(id)) continue;
    lacks.placeless = reserved;  // it is not admitted before it has them all again
    touched_.push_back(id);
  }
  std::vector<WorkloadId> touched = std::exchange(touched_, {});
  for (const WorkloadId id : touched) Keeper{*this}.measure(id);
  // Of those with quota alone who comes first in the queue has the first turn, whoever was known first.
  const auto placeless =
      std::stable_partition(touched.begin(), touched.end(), [this](WorkloadId id) { return !record(id).placeless; });
  std::sort(placeless, touched.end(), [this](WorkloadId a, WorkloadId b) { return record(a).key < record(b).key; });
  std::vector<AdmissionDecision> decided;
  for (const WorkloadId id : touched) settle(id, decided);
  const auto age = [this](const AdmissionDecision& decision) {
    const model::Workload& workload = record(decision.workload).status.workload;
    return std::tie(workload.created, workload.uid);
  };
  std::ranges::stable_sort(decided, {}, age);  // whoever was known first
  std::ranges::move(decided, std::back_inserter(decisions));
}

// The reason of the condition Active=False; empty where the queue is active.
std::string Admission::inactive_reason(const model::ClusterQueue& queue) const {
  if (going_.contains(queue.name)) return "Terminating";
  if (queue.stop != model::StopPolicy::kNone) return "Stopped";
  if (!queue.problem.empty()) return std::string(kInvalidSpec);
  for (const model::ResourceGroup& group : queue.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      if (!flavors_.contains(flavor.flavor)) return "FlavorNotFound";
  if (std::string reason = inactive_check(queue); !reason.empty()) return reason;
  if (spending_.is_spent({"", queue.name})) return std::string(kBudgetSpent);
  const QuotaNode node = ledger_->tree().queue(queue.name);
  return node.valid() && ledger_->tree().in_cycle(node) ? "CohortCycle" : "";
}

std::string why_inactive(const model::ClusterQueue& queue, const std::string& reason, const Flavors& flavors,
                         const Checks& checks, const Spending& spending) {
  if (reason == "Terminating") return "it is deleted, and goes when those have ended that have its quota";
  if (reason == "Stopped") return "it is stopped";
  if (reason == kInvalidSpec)
    return fmt::format(
        "its spec cannot be understood: {}; until it is mended, what it said before counts for who holds "
        "quota",
        queue.problem);
  if (reason == kBudgetSpent) return spending.message({"", queue.name});
  if (reason == "CohortCycle") return fmt::format("the cohorts above {} are a circle", queue.cohort);
  const auto names = [&](const auto& left_out) {
    std::set<std::string> out;
    for (const model::AdmissionCheckRule& rule : queue.checks)
      if (const auto known = checks.find(rule.check); left_out(known == checks.end() ? nullptr : &known->second))
        out.insert(rule.check);
    return fmt::format("{}", fmt::join(out, ", "));
  };
  if (reason == "AdmissionCheckNotFound")
    return "it references missing AdmissionChecks: " + names([](const auto* check) { return check == nullptr; });
  if (reason == "AdmissionCheckInactive")
    return "it references inactive AdmissionChecks: " +
           names([](const auto* check) { return check != nullptr && !check->active; });
  if (reason != "FlavorNotFound") return "it is " + reason;
  std::set<std::string> missing;
  for (const model::ResourceGroup& group : queue.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      if (!flavors.contains(flavor.flavor)) missing.insert(flavor.flavor);
  return fmt::format("it references missing ResourceFlavors: {}", fmt::join(missing, ", "));
}

// Why a workload that is admitted has to go; none: it stays.
std::optional<EvictionReason> Admission::must_leave(const Record& record) const {
  const model::Workload& workload = record.status.workload;
  const model::LocalQueue* local = local_queue(workload);
  const auto queue = local == nullptr ? queues_.end() : queues_.find(local->cluster_queue);
  // Who has quota alone does not become admitted by a queue that holds, either.
  const auto stops = [&](model::StopPolicy stop) {
    return stop == model::StopPolicy::kHoldAndDrain ||
           (stop == model::StopPolicy::kHold && record.status.phase == WorkloadPhase::kQuotaReserved);
  };
  if (!workload.active) return EvictionReason{"Deactivated", "The workload is deactivated"};
  if (auto failed = failed_check(record)) return failed;
  if (queue != queues_.end() && stops(queue->second.stop))
    return EvictionReason{"ClusterQueueStopped", "The ClusterQueue is stopped"};
  if (local != nullptr && stops(local->stop)) return EvictionReason{"LocalQueueStopped", "The LocalQueue is stopped"};
  if (auto spent = spent_budget(record)) return spent;
  if (auto late = overdue(record)) return late;
  return lost_place(record);
}

// Puts a workload where its facts and those of its queue say. Who is admitted stays unless he is stopped.
void Admission::settle(WorkloadId id, std::vector<AdmissionDecision>& decisions) {
  Record& record = this->record(id);
  WorkloadStatus& status = record.status;
  if (!record.key.id.valid() || status.phase == WorkloadPhase::kFinished || leaving(record)) return;
  if (record.standing == Standing::kHolding) {
    sync_checks(record);
    const bool waits = status.phase == WorkloadPhase::kQuotaReserved;
    if (!waits && !record.admitted) record.admitted = now_;  // restored
    if (const std::optional<EvictionReason> why = must_leave(record)) return evict(id, *why, decisions);
    if (waits) {
      admit_if_ready(record, decisions);
      if (status.phase == WorkloadPhase::kAdmitted) decisions.back().had_quota = true;
    }
    return schedule(id);
  }
  if (record.admitted) record.ran = record.ran + (now_ - *std::exchange(record.admitted, std::nullopt));
  if (std::exchange(record.begins_anew, false)) record.ran = {};
  leave(id);
  record.next_flavor.clear();
  record.promised.reset();
  release_places(id);
  schedule(id);
  const model::LocalQueue* local = local_queue(status.workload);
  const auto queue = local == nullptr ? queues_.end() : queues_.find(local->cluster_queue);
  status.cluster_queue = local == nullptr ? "" : local->cluster_queue;
  const std::string& name = status.workload.queue;
  if (record.eviction) record.key.since = record.eviction->ranks_since.value_or(status.workload.created);
  if (record.deactivated()) return hold_back(id, record.eviction->reason, record.eviction->message);
  if (!status.workload.active) {
    status.evicted = "Deactivated";
    return hold_back(id, "Deactivated", "The workload is deactivated");
  }
  if (local == nullptr) return hold_back(id, "Misconfigured", fmt::format("LocalQueue {} doesn't exist", name));
  if (local->stop != model::StopPolicy::kNone)
    return hold_back(id, "Suspended", fmt::format("LocalQueue {} is inactive", name));
  if (const std::string spent = spent_budget_of(*local); !spent.empty())
    return hold_back(id, std::string(kBudgetSpent), spent);
  if (queue == queues_.end())
    return hold_back(id, "Misconfigured", fmt::format("ClusterQueue {} doesn't exist", local->cluster_queue));
  if (const std::string reason = inactive_reason(queue->second); !reason.empty())
    return hold_back(id, "Suspended",
                     fmt::format("ClusterQueue {} is inactive: {}", local->cluster_queue,
                                 why_inactive(queue->second, reason, flavors_, checks_, spending_)));
  if (!status.workload.problem.empty()) return hold_back(id, "Misconfigured", status.workload.problem);
  if (backs_off(record))
    return hold_back(id, record.eviction->reason,
                     fmt::format("{}; it waits in its queue again from {} on", record.eviction->message,
                                 time_text(*record.eviction->requeue_at, options_.created_ahead)));
  enqueue(id);
}

}  // namespace berth::quota
