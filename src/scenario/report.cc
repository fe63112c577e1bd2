#include "scenario/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "limits/amounts.h"
#include "model/mig.h"
#include "model/quantity.h"
#include "scenario/report_table.h"

namespace berth::scenario {
namespace {

using Json = nlohmann::ordered_json;

Json seconds(const std::optional<Time>& time) {
  if (!time) return nullptr;
  if (time->nanos % 1'000'000'000 == 0) return time->nanos / 1'000'000'000;
  return static_cast<double>(time->nanos) / 1e9;
}

Json amounts(const model::ResourceList& list) {
  Json out = Json::object();
  for (const auto& [name, amount] : list) out[name] = model::format_resource(name, amount);
  return out;
}

Json quota_amounts(const model::ResourceList& list) {
  Json out = Json::object();
  for (const auto& [name, amount] : list) out[name] = limits::amount_text(name, amount);
  return out;
}

Json to_json(const std::optional<engine::Forecast>& forecast) {
  if (!forecast) return nullptr;
  const auto from_now = [](const std::optional<Duration>& after) {
    return seconds(after ? std::optional(Time{} + *after) : std::nullopt);
  };
  return {{"p50_s", from_now(forecast->p50)},
          {"p90_s", from_now(forecast->p90)},
          {"blockers", forecast->blockers},
          {"declaring", forecast->declaring},
          {"unknown", forecast->unknown.empty() ? Json(nullptr) : Json(forecast->unknown)}};
}

Json to_json(const quota::WaitingFor& waits) {
  if (waits.position == 0) return nullptr;
  Json accounts = Json::array();
  for (const quota::WaitingFor::Account& account : waits.quota) {
    const auto shown = [&](int64_t amount) { return model::format_quota(account.resource, amount); };
    Json holders = Json::array();
    for (const auto& holder : account.holders)
      holders.push_back(
          {{"workload", holder.workload}, {"cluster_queue", holder.cluster_queue}, {"amount", shown(holder.amount)}});
    accounts.push_back({{"flavor", account.flavor},
                        {"resource", account.resource},
                        {"asked", shown(account.asked)},
                        {"nominal", shown(account.nominal)},
                        {"used", shown(account.used)},
                        {"may_borrow", shown(account.may_borrow)},
                        {"available", shown(account.available)},
                        {"short_by", shown(account.short_by)},
                        {"most", shown(account.most)},
                        {"holders", std::move(holders)}});
  }
  Json fits = Json::array();
  for (const quota::WaitingFor::Fit& fit : waits.fits)
    fits.push_back({{"pod_set", fit.pod_set}, {"pods", fit.pods}, {"of", fit.of}});
  return {{"position", waits.position},
          {"waiting", waits.waiting},
          {"quota", std::move(accounts)},
          {"fits_now", std::move(fits)}};
}

Json to_json(const WorkloadReport& workload) {
  Json sets = Json::array();
  for (const WorkloadReport::Set& set : workload.pod_sets) {
    Json flavors = Json::object();
    for (const auto& [resource, flavor] : set.flavors) flavors[resource] = flavor;
    sets.push_back({{"name", set.name}, {"count", set.count}, {"flavors", std::move(flavors)}});
  }
  Json on_nodes = Json::array();
  for (const WorkloadReport::OnNode& one : workload.on_nodes)
    on_nodes.push_back({{"resource", one.resource},
                        {"pod", one.pod},
                        {"node", one.node},
                        {"amount", model::format_resource(one.resource, one.amount)},
                        {"kept", one.kept}});
  const size_t slash = workload.name.find('/');
  return {{"kind", workload.kind},
          {"namespace", workload.name.substr(0, slash)},
          {"name", workload.name.substr(slash + 1)},
          {"queue", workload.queue},
          {"cluster_queue", workload.cluster_queue},
          {"priority", workload.priority},
          {"state", workload.state},
          {"reason", workload.reason},
          {"message", workload.message},
          {"pod_sets", std::move(sets)},
          {"submitted_s", seconds(workload.submitted)},
          {"admitted_s", seconds(workload.admitted)},
          {"finished_s", seconds(workload.finished)},
          {"evictions", workload.evictions},
          {"evicted_for", workload.evicted_for},
          {"waits_for", to_json(workload.waits_for)},
          {"on_nodes", std::move(on_nodes)},
          {"forecast", to_json(workload.forecast)}};
}

Json to_json(const QueueReport& queue) {
  Json held = Json::array();
  for (const QueueReport::Held& one : queue.held)
    held.push_back({{"flavor", one.flavor},
                    {"resource", one.resource},
                    {"nominal", model::format_quota(one.resource, one.nominal)},
                    {"used", model::format_quota(one.resource, one.used)},
                    {"borrowed", model::format_quota(one.resource, one.borrowed)}});
  return {{"name", queue.name},
          {"cohort", queue.cohort.empty() ? Json(nullptr) : Json(queue.cohort)},
          {"inactive", queue.inactive.empty() ? Json(nullptr) : Json(queue.inactive)},
          {"pending", queue.pending},
          {"admitted", queue.admitted},
          {"held", std::move(held)}};
}

Json to_json(const Report& report) {
  Json out = {{"apiVersion", "berth.dev/v1alpha1"},
              {"kind", "SimulationReport"},
              {"pods", Json::array()},
              {"nodes", Json::array()},
              {"repartitions", Json::array()},
              {"workloads", Json::array()},
              {"queues", Json::array()},
              {"refused", Json::array()},
              {"resource_quotas", Json::array()}};
  for (const PodReport& pod : report.pods) {
    Json evicted = Json::array();
    for (const std::string& victim : pod.evicted) {
      const size_t slash = victim.find('/');
      evicted.push_back({{"namespace", victim.substr(0, slash)}, {"name", victim.substr(slash + 1)}});
    }
    out["pods"].push_back(
        {{"namespace", pod.namespace_name},
         {"name", pod.name},
         {"node", pod.node.empty() ? Json(nullptr) : Json(pod.node)},
         {"reason", pod.reason},
         {"message", pod.message},
         {"submitted_s", seconds(pod.submitted)},
         {"started_s", seconds(pod.started)},
         {"finished_s", seconds(pod.finished)},
         {"feasible", pod.feasible},
         {"feasible_count", pod.feasible_count},
         {"nominated_node", pod.nominated_node.empty() ? Json(nullptr) : Json(pod.nominated_node)},
         {"evicted", std::move(evicted)},
         {"gpu_share",
          pod.gpu_share.asked() && pod.gpu_share.problem.empty() ? Json(share_text(pod.gpu_share)) : Json(nullptr)},
         {"gpu_device", pod.gpu_share.asked() && !pod.gpu_devices.numbers.empty()
                            ? Json(pod.gpu_devices.numbers.front())
                            : Json(nullptr)},
         {"gpu_devices", pod.gpu_devices.numbers},
         {"gpu_uuids", pod.gpu_devices.uuids},
         {"gpu_link", pod.gpu_devices.link.empty() ? Json(nullptr) : Json(pod.gpu_devices.link)},
         {"gpu_limit", pod.gpu_devices.limit.empty() ? Json(nullptr) : Json(pod.gpu_devices.limit)},
         {"forecast", to_json(pod.forecast)}});
  }
  for (const NodeReport& node : report.nodes)
    out["nodes"].push_back({{"name", node.name},
                            {"capacity", amounts(node.capacity)},
                            {"allocatable", amounts(node.allocatable)},
                            {"use", amounts(node.use)},
                            {"set_aside", node.set_aside.empty() ? Json(nullptr) : Json(node.set_aside)},
                            {"mig_problem", node.mig_problem.empty() ? Json(nullptr) : Json(node.mig_problem)},
                            {"device_mode", node.device_mode ? Json(to_string(*node.device_mode)) : Json(nullptr)},
                            {"share_limit", node.share_limit.empty() ? Json(nullptr) : Json(node.share_limit)}});
  for (const RepartitionReport& cut : report.repartitions)
    out["repartitions"].push_back({{"node", cut.node},
                                   {"begun_s", seconds(cut.begun)},
                                   {"ended_s", seconds(cut.ended)},
                                   {"given_up", cut.given_up},
                                   {"overtaken", cut.overtaken.empty() ? Json(nullptr) : Json(cut.overtaken)},
                                   {"resources", amounts(cut.resources)}});
  for (const WorkloadReport& workload : report.workloads) out["workloads"].push_back(to_json(workload));
  for (const QueueReport& queue : report.queues) out["queues"].push_back(to_json(queue));
  for (const RefusedObject& object : report.refused)
    out["refused"].push_back({{"kind", object.kind},
                              {"namespace", object.namespace_name},
                              {"name", object.name},
                              {"message", object.message}});
  for (const limits::QuotaUse& quota : report.quotas)
    out["resource_quotas"].push_back({{"namespace", quota.namespace_name},
                                      {"name", quota.name},
                                      {"hard", quota_amounts(quota.hard)},
                                      {"used", quota_amounts(quota.used)}});
  return out;
}

// A JSON string is a YAML string too; ASCII only, so that nothing in it reaches a terminal as more than text.
std::string scalar(const Json& value) { return value.dump(-1, ' ', true, Json::error_handler_t::replace); }

void write_yaml(const Json& value, const std::string& indent, std::string& out) {
  for (auto at = value.begin(); at != value.end(); ++at) {
    const bool list = value.is_array();
    const Json& item = *at;
    std::string lead = list ? "-" : Json(at.key()).dump(-1, ' ', true, Json::error_handler_t::replace) + ":";
    if (!list &&
        at.key().find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos)
      lead = at.key() + ":";
    if (!item.is_structured() || item.empty()) {
      out += indent + lead + " " + scalar(item) + "\n";
    } else if (list) {
      std::string inner;
      write_yaml(item, indent + "  ", inner);
      inner[indent.size()] = '-';
      out += inner;
    } else {
      out += indent + lead + "\n";
      write_yaml(item, item.is_array() ? indent : indent + "  ", out);
    }
  }
}

}  // namespace

GpuCount count_gpus(const model::ResourceList& amounts) {
  GpuCount out;
  for (const auto& [name, amount] : amounts)
    if (model::is_gpu_resource(name)) (model::is_mig_resource(name) ? out.mig_instances : out.gpus) += amount;
  return out;
}

size_t Report::waiting() const {
  return static_cast<size_t>(std::count_if(pods.begin(), pods.end(), [](const PodReport& pod) { return pod.waiting; }));
}

size_t Report::pods_refused() const {
  return static_cast<size_t>(
      std::count_if(pods.begin(), pods.end(), [](const PodReport& pod) { return !pod.refusal.empty(); }));
}

size_t Report::workloads_waiting() const {
  return static_cast<size_t>(std::count_if(workloads.begin(), workloads.end(), [](const WorkloadReport& w) {
    return w.state == "Pending" || w.state == "QuotaReserved";
  }));
}

std::string render(const Report& report, ReportFormat format) {
  switch (format) {
    case ReportFormat::kTable: return table_text(report, false);
    case ReportFormat::kWide: return table_text(report, true);
    case ReportFormat::kJson: return to_json(report).dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
    case ReportFormat::kYaml: break;
  }
  std::string out;
  write_yaml(to_json(report), "", out);
  return out;
}

}  // namespace berth::scenario
