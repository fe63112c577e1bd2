#include "queueing/queue_status.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "model/quantity.h"
#include "queueing/write_json.h"

namespace berth::queueing {
namespace {

constexpr Duration kWriteEvery = Duration::seconds(1), kRetry = Duration::seconds(10);

// What its condition Active says.
struct Active {
  bool is = true;
  std::string reason = "Ready", message;
};

// The flavors of the queue that are not there.
std::set<std::string> missing_flavors(const model::ClusterQueue& queue, const quota::Flavors& flavors) {
  std::set<std::string> out;
  for (const model::ResourceGroup& group : queue.groups)
    for (const model::FlavorQuotas& flavor : group.flavors)
      if (!flavors.contains(flavor.flavor)) out.insert(flavor.flavor);
  return out;
}

Active activity(const quota::Admission& admission, const std::string& name,
                const quota::Admission::QueueStatus& status) {
  if (status.active) return {true, "Ready", "Can admit new workloads"};
  const model::ClusterQueue& queue = admission.cluster_queues().find(name)->second;
  std::string why = "it is " + status.reason;
  if (status.reason == "Stopped") why = "it is stopped";
  if (status.reason == "FlavorNotFound")
    why = fmt::format("it references missing ResourceFlavors: {}",
                      fmt::join(missing_flavors(queue, admission.flavors()), ", "));
  if (status.reason == "CohortCycle") why = fmt::format("the cohorts above {} are a circle", queue.cohort);
  return {false, status.reason, "Can't admit new workloads: " + why};
}

Active local_activity(const quota::Admission& admission, const std::string& cluster_queue, bool stopped,
                      const quota::QueueOverview& overview) {
  if (stopped) return {false, "Stopped", "Can't submit new workloads: the LocalQueue is stopped"};
  if (!admission.cluster_queues().contains(cluster_queue))
    return {false, "ClusterQueueDoesNotExist",
            fmt::format("Can't submit new workloads to clusterQueue: {} is not there", cluster_queue)};
  if (!admission.queue_status(cluster_queue, overview).active)
    return {false, "ClusterQueueIsInactive",
            fmt::format("Can't submit new workloads to clusterQueue: {} is inactive", cluster_queue)};
  return {true, "Ready", "Can submit new workloads to localQueue"};
}

// flavorsReservation: by flavor, in its order.
Json usage(const quota::Admission::QueueStatus& status) {
  Json out = Json::array();
  for (const auto& held : status.held) {
    if (out.empty() || out.back()["name"] != held.flavor)
      out.push_back({{"name", held.flavor}, {"resources", Json::array()}});
    out.back()["resources"].push_back({{"name", held.resource},
                                       {"total", model::format_resource(held.resource, held.total)},
                                       {"borrowed", model::format_resource(held.resource, held.borrowed)}});
  }
  return out;
}

Json usage(const std::map<std::pair<std::string, std::string>, int64_t>& held) {
  Json out = Json::array();
  for (const auto& [key, amount] : held) {
    if (out.empty() || out.back()["name"] != key.first)
      out.push_back({{"name", key.first}, {"resources", Json::array()}});
    out.back()["resources"].push_back({{"name", key.second}, {"total", model::format_resource(key.second, amount)}});
  }
  return out;
}

// The stored conditions with this one in its place.
Json with_condition(const Json& stored, const Active& active, int64_t generation, Time wall) {
  Json out = stored.is_array() ? stored : Json::array();
  Json condition = {{"type", "Active"}, {"status", active.is ? "True" : "False"}};
  condition["reason"] = active.reason;
  condition["message"] = active.message;
  if (generation > 0) condition["observedGeneration"] = generation;
  const auto at = std::ranges::find_if(out, [](const Json& one) { return one.value("type", "") == "Active"; });
  const bool same = at != out.end() && at->value("status", "") == condition["status"];
  condition["lastTransitionTime"] = same ? at->value("lastTransitionTime", "") : format_rfc3339(wall);
  if (at == out.end()) out.push_back(std::move(condition));
  else *at = std::move(condition);
  return out;
}

void count(Json& status, const quota::QueueCounts& counts) {
  status["pendingWorkloads"] = counts.pending;
  status["reservingWorkloads"] = counts.reserving;
  status["admittedWorkloads"] = counts.admitted;
}

// Whatever the order of its members.
bool same(const Json& a, const Json& b) { return nlohmann::json(a) == nlohmann::json(b); }

}  // namespace

void QueueStatuses::see(const SeenQueue& seen) {
  Record next{};
  Key key;
  if (const auto* queue = std::get_if<api::ClusterQueue>(&seen.object)) {
    key = {"ClusterQueue", "", queue->metadata.name};
    next.uid = queue->metadata.uid;
    next.resource_version = queue->metadata.resource_version;
    next.generation = queue->metadata.generation;
  } else if (const auto* local = std::get_if<api::LocalQueue>(&seen.object)) {
    key = {"LocalQueue", local->metadata.namespace_name, local->metadata.name};
    next.uid = local->metadata.uid;
    next.resource_version = local->metadata.resource_version;
    next.generation = local->metadata.generation;
    next.cluster_queue = local->queue.cluster_queue;
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
  record = std::move(next);
}

void QueueStatuses::gone(const std::string& kind, const std::string& namespace_name, const std::string& name) {
  queues_.erase({kind, namespace_name, name});
}

std::string QueueStatuses::wanted(const Key& key, const Record& record, const quota::Admission& admission,
                                  const quota::QueueOverview& overview, Time wall) {
  const auto& [kind, namespace_name, name] = key;
  const Json stored = Json::parse(record.status, nullptr, false);
  Json status = Json::object();
  Active active;
  if (kind == "LocalQueue") {
    const auto known = overview.local_queues.find({namespace_name, name});
    const quota::LocalQueueStatus held =
        known == overview.local_queues.end() ? quota::LocalQueueStatus{} : known->second;
    active = local_activity(admission, record.cluster_queue, record.stopped, overview);
    count(status, held.counts);
    status["flavorsReservation"] = usage(held.held);
  } else if (admission.cluster_queues().contains(name)) {
    const quota::Admission::QueueStatus queue = admission.queue_status(name, overview);
    const auto known = overview.cluster_queues.find(name);
    active = activity(admission, name, queue);
    count(status, known == overview.cluster_queues.end() ? quota::QueueCounts{} : known->second);
    status["flavorsReservation"] = usage(queue);
  } else {
    return {};
  }
  status["flavorsUsage"] = status["flavorsReservation"];
  const Json conditions = stored.is_object() ? stored.value("conditions", Json()) : Json();
  status["conditions"] = with_condition(conditions, active, record.generation, wall);
  for (const auto& [member, value] : status.items())
    if (!stored.is_object() || !stored.contains(member) || !same(stored[member], value)) return status.dump();
  return {};
}

std::vector<Write> QueueStatuses::look(const quota::Admission& admission, const quota::QueueOverview& overview,
                                       Time now, Time wall, size_t room) {
  std::vector<Write> writes;
  for (auto& [key, record] : queues_) {
    if (writes.size() >= room) break;
    if (record.busy || record.from > now) continue;
    const std::string status = wanted(key, record, admission, overview, wall);
    if (status.empty()) continue;
    record.busy = true;
    record.from = now + kWriteEvery;
    const Json body = {{"metadata", {{"uid", record.uid}, {"resourceVersion", record.resource_version}}},
                       {"status", Json::parse(status)}};
    const auto& [kind, namespace_name, name] = key;
    writes.push_back({.kind = Write::Kind::kPatchStatus,
                      .party = kind == "LocalQueue" ? Write::Party::kLocalQueue : Write::Party::kClusterQueue,
                      .namespace_name = namespace_name,
                      .name = name,
                      .body = body.dump()});
  }
  return writes;
}

void QueueStatuses::answered(const Answer& answer, Time now) {
  const bool local = answer.write.party == Write::Party::kLocalQueue;
  const auto known =
      queues_.find({local ? "LocalQueue" : "ClusterQueue", answer.write.namespace_name, answer.write.name});
  if (known == queues_.end()) return;
  known->second.busy = false;
  if (answer.queue) return see(*answer.queue);
  const bool news = answer.http_status == 404 || answer.http_status == 409;  // the watch is about to say
  known->second.from = now + std::max(news ? kWriteEvery : kRetry, answer.wait);
}

}  // namespace berth::queueing
