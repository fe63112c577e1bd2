#include "queueing/queue_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <utility>

#include "api/queue_limits.h"
#include "api/queue_usage.h"
#include "model/quantity.h"
#include "queueing/write_json.h"

namespace berth::queueing {
namespace {

constexpr Duration kWriteEvery = Duration::seconds(1), kRetry = Duration::seconds(10);

constexpr Duration kSpentEvery = Duration::seconds(60);

// What the condition Active says.
Told active(bool is, std::string reason, std::string message) {
  return {"Active", is, std::move(reason), std::move(message)};
}

Told activity(const quota::QueueStatus& status, const std::string& remark) {
  if (status.active) return active(true, "Ready", "Can admit new workloads" + (remark.empty() ? "" : "; " + remark));
  return active(false, status.reason, "Can't admit new workloads: " + status.why);
}

Told local_activity(const quota::Admission& admission, const quota::Spending::Queue& local,
                    const std::string& cluster_queue, bool stopped, const std::string& problem,
                    const quota::QueueOverview& overview) {
  if (stopped) return active(false, "Stopped", "Can't submit new workloads: the LocalQueue is stopped");
  if (!problem.empty()) return active(false, "InvalidSpec", "Can't admit new workloads: " + problem);
  if (!admission.cluster_queues().contains(cluster_queue))
    return active(false, "ClusterQueueDoesNotExist",
                  fmt::format("Can't submit new workloads to clusterQueue: {} is not there", cluster_queue));
  if (!admission.queue_status(cluster_queue, overview).active)
    return active(false, "ClusterQueueIsInactive",
                  fmt::format("Can't submit new workloads to clusterQueue: {} is inactive", cluster_queue));
  if (admission.spending().is_spent(local))
    return active(false, std::string(quota::kBudgetSpent),
                  "Can't admit new workloads: " + admission.spending().message(local));
  return active(true, "Ready", "Can submit new workloads to localQueue");
}

const model::Budget& budget_of(const quota::Admission& admission, const quota::Spending::Queue& queue) {
  if (!queue.first.empty()) return admission.local_queues().at(queue).budget;
  return admission.cluster_queues().find(queue.second)->second.budget;
}

// What is spent in an hour; the one after the next where a window ends meanwhile.
api::SpendingRate rate_of(const quota::Spending& spending, const quota::Spending::Queue& queue, Time now) {
  const Duration hour = Duration::seconds(3600);
  std::optional<model::Spent> from = spending.spent(queue, now), to = spending.spent(queue, now + hour);
  if (!from || !to) return {};
  if (from->since != to->since) from = std::exchange(to, spending.spent(queue, now + hour * 2));
  return {to->gpu_time - from->gpu_time, to->cost - from->cost};
}

// What has been spent up to now of the queue's budget; none: it has none.
std::optional<Told> spent_now(const quota::Admission& admission, const quota::Spending::Queue& queue, Time now) {
  const std::optional<model::Spent> spent = admission.spending().spent(queue, now);
  if (!spent) return std::nullopt;
  const bool within = !admission.spending().is_spent(queue);
  return Told{api::kBudgetCondition, within, within ? "WithinBudget" : std::string(quota::kBudgetSpent),
              api::budget_message(budget_of(admission, queue), *spent, rate_of(admission.spending(), queue, now))};
}

// It is written beside anything else, when somebody begins or ends to spend, or alone now and then while it changes: so
// a restart loses nothing that a status has not told, and a queue is not written all the time.
bool is_news(const Told& spent, const Json& stored) {
  const std::vector<api::Condition> before = {
      {std::string(spent.type), stored.value("status", ""), stored.value("reason", ""), stored.value("message", "")}};
  const std::optional<model::Spent> was = api::spent_of(before);
  const std::optional<model::Spent> is = api::spent_of({{std::string(spent.type), "", "", spent.message}});
  if (!was || !is || spent.reason != stored.value("reason", "") || was->since != is->since) return true;
  const api::SpendingRate rate_before = api::spending_rate_of(before),
                          rate_now = api::spending_rate_of({{std::string(spent.type), "", "", spent.message}});
  const auto differs = [](int64_t a, int64_t b) { return std::abs(a - b) > 1; };  // they are rounded
  if (differs(rate_before.gpus, rate_now.gpus) || differs(rate_before.cost, rate_now.cost)) return true;
  const bool same = was->gpu_time == is->gpu_time && was->cost == is->cost;
  return !same && is->until - was->until >= kSpentEvery;
}

// What the LocalQueue has used of late; none: its ClusterQueue does not go by that, or is not there.
std::optional<model::UsedOfLate> used_now(const quota::Admission& admission, const quota::LocalUsage::Queue& local,
                                          const std::string& cluster_queue, Time now, Time wall) {
  const auto queue = admission.cluster_queues().find(cluster_queue);
  if (queue == admission.cluster_queues().end() || !queue->second.usage_based) return std::nullopt;
  if (admission.usage().options().half_life <= Duration{}) return std::nullopt;
  return model::UsedOfLate{wall, admission.usage().used(local, now)};
}

// It is written beside anything else, or alone once in a sampling interval while it is not what becomes of the stored
// one by itself: so a restart loses nothing that a status has not told, and what nobody uses is not written again.
bool is_news(const model::UsedOfLate& used, const std::optional<model::UsedOfLate>& stored,
             const quota::LocalUsage& usage) {
  if (!stored) return !used.amounts.empty();
  if (stored->until > used.until) return true;
  const Duration passed = used.until - stored->until;
  if (passed < usage.options().sampling_interval) return false;
  std::map<std::string, double> differs = used.amounts;
  for (const auto& [resource, amount] : stored->amounts) differs[resource] -= amount * usage.kept(passed);
  return std::ranges::any_of(differs, [&](const auto& one) {
    const auto is = used.amounts.find(one.first);
    return std::abs(one.second) > 1e-8 + (is == used.amounts.end() ? 0 : is->second * 1e-6);  // they are rounded
  });
}

// status.fairSharing of a LocalQueue, which borrows nothing. As a merge patch: what is stored of other resources goes.
Json usage_told(const model::UsedOfLate& used, const Json& stored) {
  const Json::json_pointer at("/fairSharing/admissionFairSharingStatus/consumedResources");
  Json consumed = Json::object();
  if (stored.contains(at) && stored[at].is_object())
    for (const auto& [resource, amount] : stored[at].items()) consumed[resource] = nullptr;
  for (const auto& [resource, amount] : used.amounts) consumed[resource] = api::usage_text(amount);
  return {{"weightedShare", 0},
          {"admissionFairSharingStatus",
           {{"consumedResources", std::move(consumed)}, {"lastUpdate", format_rfc3339_micro(used.until)}}}};
}

// flavorsReservation and flavorsUsage: by flavor, in its order.
void tell_usage(Json& status, const quota::QueueStatus& of) {
  const auto tell = [](Json& out, const quota::QueueStatus::Held& held, int64_t amount, int64_t borrowed) {
    if (out.empty() || out.back()["name"] != held.flavor)
      out.push_back({{"name", held.flavor}, {"resources", Json::array()}});
    out.back()["resources"].push_back({{"name", held.resource},
                                       {"total", model::format_quota(held.resource, amount)},
                                       {"borrowed", model::format_quota(held.resource, borrowed)}});
  };
  Json reservation = Json::array(), usage = Json::array();
  for (const auto& held : of.held) {
    tell(reservation, held, held.total, held.borrowed);
    tell(usage, held, held.used, std::max<int64_t>(0, held.borrowed - (held.total - held.used)));
  }
  status["flavorsReservation"] = std::move(reservation);
  status["flavorsUsage"] = std::move(usage);
}

Json usage(const quota::FlavorAmounts& held) {
  Json out = Json::array();
  for (const auto& [key, amount] : held) {
    if (out.empty() || out.back()["name"] != key.first)
      out.push_back({{"name", key.first}, {"resources", Json::array()}});
    out.back()["resources"].push_back({{"name", key.second}, {"total", model::format_quota(key.second, amount)}});
  }
  return out;
}

// The one of this type among the stored conditions; end() without it.
Json::const_iterator find_condition(const Json& conditions, std::string_view type) {
  return std::ranges::find_if(conditions, [&](const Json& one) { return one.value("type", "") == type; });
}

void count(Json& status, const quota::QueueCounts& counts) {
  status["pendingWorkloads"] = counts.pending;
  status["reservingWorkloads"] = counts.reserving;
  status["admittedWorkloads"] = counts.admitted;
}

// status.fairSharing, which goes where there is no share to tell.
void tell_share(Json& status, const Json& stored, const quota::FairShare* share) {
  if (share != nullptr) status["fairSharing"] = {{"weightedShare", share->told()}};
  else if (stored.contains("fairSharing")) status["fairSharing"] = nullptr;
}

// As a merge patch.
bool changes(const Json& stored, const Json& patch) {
  const nlohmann::json before(stored);
  nlohmann::json after = before;
  after.merge_patch(nlohmann::json(patch));
  return after != before;
}

Write::Party party_of(const std::string& kind) {
  if (kind == "LocalQueue") return Write::Party::kLocalQueue;
  return kind == "Cohort" ? Write::Party::kCohort : Write::Party::kClusterQueue;
}

const char* kind_of(Write::Party party) {
  if (party == Write::Party::kLocalQueue) return "LocalQueue";
  return party == Write::Party::kCohort ? "Cohort" : "ClusterQueue";
}

}  // namespace

void QueueStatuses::see(const SeenQueue& seen) {
  Record next{};
  Key key;
  if (const auto* queue = std::get_if<api::ClusterQueue>(&seen.object)) {
    key = {"ClusterQueue", "", queue->metadata.name};
    next.uid = queue->metadata.uid;
    next.resource_version = queue->metadata.resource_version;
    next.generation = queue->metadata.generation;
  } else if (const auto* cohort = std::get_if<api::Cohort>(&seen.object)) {
    key = {"Cohort", "", cohort->metadata.name};
    next.uid = cohort->metadata.uid;
    next.resource_version = cohort->metadata.resource_version;
  } else if (const auto* local = std::get_if<api::LocalQueue>(&seen.object)) {
    key = {"LocalQueue", local->metadata.namespace_name, local->metadata.name};
    next.uid = local->metadata.uid;
    next.resource_version = local->metadata.resource_version;
    next.generation = local->metadata.generation;
    next.cluster_queue = local->queue.cluster_queue;
    next.used = local->queue.used;
    next.stopped = local->queue.stop != model::StopPolicy::kNone;
  } else {
    return;
  }
  Record& record = queues_[key];
  if (record.uid == next.uid) {
    if (is_older(next.resource_version, record.resource_version)) return;
    next.busy = record.busy;
    next.from = record.from;
  }
  next.status = seen.status;
  next.problem = seen.problem;
  next.remark = seen.remark;
  record = std::move(next);
}

void QueueStatuses::gone(const std::string& kind, const std::string& namespace_name, const std::string& name) {
  queues_.erase({kind, namespace_name, name});
}

std::string QueueStatuses::wanted(const Key& key, const Record& record, const quota::Admission& admission,
                                  const quota::QueueOverview& overview, Time now, Time wall) {
  const auto& [kind, namespace_name, name] = key;
  Json stored = Json::parse(record.status, nullptr, false);
  if (!stored.is_object()) stored = Json::object();
  Json status = Json::object();
  if (kind == "Cohort") {
    const auto share = overview.cohort_shares.find(name);
    tell_share(status, stored, share == overview.cohort_shares.end() ? nullptr : &share->second);
    return changes(stored, status) ? status.dump() : std::string();
  }
  Told active;
  std::optional<model::UsedOfLate> used;
  if (kind == "LocalQueue") {
    const quota::QueueCounts& counts = overview.of({namespace_name, name});
    active = local_activity(admission, {namespace_name, name}, record.cluster_queue, record.stopped, record.problem,
                            overview);
    count(status, counts);
    status["flavorsReservation"] = usage(counts.held);
    status["flavorsUsage"] = usage(counts.used);
    used = used_now(admission, {namespace_name, name}, record.cluster_queue, now, wall);
    if (!used && admission.cluster_queues().contains(record.cluster_queue)) tell_share(status, stored, nullptr);
  } else if (admission.cluster_queues().contains(name)) {
    const quota::QueueStatus queue = admission.queue_status(name, overview);
    active = activity(queue, record.remark);
    count(status, overview.of(name));
    tell_usage(status, queue);
    tell_share(status, stored, queue.share ? &*queue.share : nullptr);
  } else {
    return {};
  }
  const Json before = stored.value("conditions", Json());
  Json& conditions = status["conditions"] = before.is_array() ? before : Json::array();
  set_condition(conditions, active, record.generation, wall);
  const std::optional<Told> spent = spent_now(admission, {namespace_name, name}, now);
  const auto told = find_condition(before, api::kBudgetCondition);
  // What was spent stays there while nobody can say of what.
  if (!spent && told != before.end() && record.problem.empty())
    conditions.erase(find_condition(conditions, api::kBudgetCondition));
  const bool is_changed = (spent && (told == before.end() || is_news(*spent, *told))) ||
                          (used && is_news(*used, record.used, admission.usage())) || changes(stored, status);
  if (is_changed && spent) set_condition(conditions, *spent, record.generation, wall);
  if (is_changed && used && (record.used || !used->amounts.empty())) status["fairSharing"] = usage_told(*used, stored);
  return is_changed ? status.dump() : std::string();
}

std::vector<Write> QueueStatuses::look(const quota::Admission& admission, const quota::QueueOverview& overview,
                                       Time now, Time wall, size_t room) {
  std::vector<Write> writes;
  for (auto& [key, record] : queues_) {
    if (writes.size() >= room) break;
    if (record.busy || record.from > now) continue;
    const std::string status = wanted(key, record, admission, overview, now, wall);
    if (status.empty()) continue;
    record.busy = true;
    record.from = now + kWriteEvery;
    const Json body = {{"metadata", {{"uid", record.uid}, {"resourceVersion", record.resource_version}}},
                       {"status", Json::parse(status)}};
    const auto& [kind, namespace_name, name] = key;
    writes.push_back({.kind = Write::Kind::kPatchStatus,
                      .party = party_of(kind),
                      .namespace_name = namespace_name,
                      .name = name,
                      .body = body.dump(),
                      .only_tells = true});
  }
  return writes;
}

void QueueStatuses::answered(const Answer& answer, Time now) {
  const auto known = queues_.find({kind_of(answer.write.party), answer.write.namespace_name, answer.write.name});
  if (known == queues_.end()) return;
  known->second.busy = false;
  if (answer.queue) return see(*answer.queue);
  const bool news = answer.http_status == 404 || answer.http_status == 409;  // the watch is about to say
  known->second.from = now + std::max(news ? kWriteEvery : kRetry, answer.wait);
}

}  // namespace berth::queueing
