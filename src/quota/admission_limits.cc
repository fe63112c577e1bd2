// Limits of other kinds than quota: budgets of queues, and what one user may have of a queue.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/quantity.h"
#include "quota/admission.h"

namespace berth::quota {
namespace {

using Queue = Spending::Queue;

constexpr std::string_view kReplicas = "nvidia.com/gpu.shared";

bool shares_gpu(const model::PodSet& pods) { return pods.spec != nullptr && pods.spec->gpu_share.asked(); }

// What a workload with these flavors spends.
Spending::Rate rate_of(const WorkloadStatus& status, const Flavors& flavors, const model::GpuPrices& prices) {
  // So that no sum overflows; a workload that has more spends as that many.
  constexpr int64_t kMicrosMax = 1'000'000 * model::kWholeGpu;
  Spending::Rate out;
  for (size_t i = 0; i < status.assignment.size(); ++i) {
    const PodSetAssignment& set = status.assignment[i];
    const bool by_replicas = set.usage.get(kReplicas) > 0 && shares_gpu(status.workload.pod_sets[i]);
    for (const auto& [resource, amount] : set.usage) {
      if (by_replicas && resource == model::kWholeGpuResource) continue;  // they are no less than the share
      const int64_t micros = std::clamp<int64_t>(model::gpu_micros(resource, amount), 0, kMicrosMax);
      const int64_t sevenths = model::gpu_sevenths(resource) * micros;
      if (sevenths == 0) continue;
      const auto pick = set.flavors.find(resource);
      const auto flavor = pick == set.flavors.end() ? flavors.end() : flavors.find(pick->second.flavor);
      const model::Labels none;
      const int64_t price = model::gpu_price(prices, flavor == flavors.end() ? none : flavor->second.node_labels);
      out.sevenths += sevenths;
      out.price += static_cast<int64_t>(Int128{sevenths} * price / model::kWholeGpu);
    }
  }
  return out;
}

}  // namespace

// It is admitted since then, and spends.
void Admission::charge(Record& record, Time since) {
  if (spending_.empty()) return;
  const model::Workload& workload = record.status.workload;
  Charge& charge = record.charge.emplace();
  charge.cluster_queue = {"", record.status.cluster_queue};
  charge.local_queue = {workload.namespace_name, workload.queue};
  charge.rate = rate_of(record.status, flavors_, options_.gpu_prices);
  for (const Queue& queue : {charge.cluster_queue, charge.local_queue})
    spending_.begin(queue, charge.rate, since, now_);
}

// Brings budgets up to now. Where one has become spent, or is not any more, everybody is looked at anew.
void Admission::count_spending() {
  for (const Charge& over : std::exchange(uncounted_.no_longer_charged, {}))
    for (const Queue& queue : {over.cluster_queue, over.local_queue}) spending_.end(queue, over.rate, now_);
  if (std::exchange(charges_stale_, false)) {
    spending_.stop_all(now_);
    for (const auto& [name, queue] : queues_) spending_.set({"", name}, queue.budget, queue.spent, now_);
    for (const auto& [key, queue] : local_queues_) spending_.set(key, queue.budget, queue.spent, now_);
    for (Record& record : records_) {
      const bool runs = record.standing == Standing::kHolding && record.status.phase == WorkloadPhase::kAdmitted;
      if (runs) charge(record, record.charge ? now_ : record.admitted.value_or(now_));
    }
  }
  if (spending_.advance(now_).empty()) return;
  for (const Record& record : records_)
    if (record.key.id.valid()) touched_.push_back(record.key.id);
  ++epoch_;
}

// Why a workload that has quota has to go for a budget; none: it need not.
std::optional<EvictionReason> Admission::spent_budget(const Record& record) const {
  const model::Workload& workload = record.status.workload;
  for (const Queue& queue : {Queue{"", record.status.cluster_queue}, Queue{workload.namespace_name, workload.queue}}) {
    const bool waits = record.status.phase == WorkloadPhase::kQuotaReserved;
    if (spending_.drains(queue) || (waits && spending_.is_spent(queue)))
      return EvictionReason{std::string(kBudgetSpent), spending_.message(queue)};
  }
  return std::nullopt;
}

// Of it or of its ClusterQueue; empty: none is spent.
std::string Admission::spent_budget_of(const model::LocalQueue& local) const {
  for (const Queue& queue : {Queue{"", local.cluster_queue}, Queue{local.namespace_name, local.name}})
    if (spending_.is_spent(queue)) return spending_.message(queue);
  return "";
}

std::string beyond_user_limit(const Ledger& ledger, const std::string& user, const model::ClusterQueue& queue,
                              const model::ResourceList& asked) {
  for (const auto& [resource, limit] : queue.user_limits) {
    const int64_t more = asked.get(resource);
    const int64_t used = ledger.used_by(user, ledger.tree().queue(queue.name), resource);
    if (more <= 0 || saturating_add(used, more) <= limit) continue;
    const auto text = [&name = resource](int64_t amount) { return model::format_quota(name, amount); };
    return fmt::format("{} has {} of the {} {} that each user may have of ClusterQueue {}, and asks for {} more",
                       user.empty() ? "work that names no user" : "user " + user, text(used), text(limit), resource,
                       queue.name, text(more));
  }
  return "";
}

// With what it would be given, the workload's user would have more of the queue than he may; says so in it.
bool Admission::exceeds_user_limit(Entry& entry) const {
  if (entry.spec->user_limits.empty()) return false;
  Assignment& assignment = entry.assignment;
  model::ResourceList asked;
  for (const auto& [fr, amount] : assignment.usage) asked.add(ledger_->tree().resource(fr), amount);
  std::string text = beyond_user_limit(*ledger_, record(entry.id).status.workload.user, *entry.spec, asked);
  if (text.empty()) return false;
  assignment.outcome = Outcome::kNoFit;
  assignment.user_limit = std::move(text);
  return true;
}

}  // namespace berth::quota
