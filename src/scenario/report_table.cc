#include "scenario/report_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/printable.h"
#include "bridge/gpus.h"
#include "limits/amounts.h"
#include "model/quantity.h"
#include "scenario/text_table.h"
#include "scenario/verdict_text.h"

namespace berth::scenario {
namespace {

std::string at_time(const std::optional<Time>& time) {
  return !time ? "-" : *time == Time{} ? "0s" : format_duration(*time - Time{});
}

// Memory at a glance: "1.5Ti", "64Gi", "512Mi".
std::string bytes_text(int64_t bytes) {
  static constexpr const char* kUnits[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  return value < 10 && unit > 0 && value != static_cast<double>(static_cast<int64_t>(value))
             ? fmt::format("{:.1f}{}", value, kUnits[unit])
             : fmt::format("{:.0f}{}", value, kUnits[unit]);
}

std::string use_of(const NodeReport& node, const char* name) {
  if (!node.allocatable.contains(name) && node.use.get(name) == 0) return "-";
  if (std::string_view(name) == "memory")
    return bytes_text(node.use.get(name)) + "/" + bytes_text(node.allocatable.get(name));
  return fmt::format("{}/{}", model::format_resource(name, node.use.get(name)),
                     model::format_resource(name, node.allocatable.get(name)));
}

std::string status_of(const PodReport& pod) {
  if (!pod.ended.empty() && !pod.waiting) return pod.ended;
  return pod.waiting ? pod.reason : "Running";
}

std::string pods_table(const Report& report, bool wide) {
  std::vector<std::string> headings = {"POD", ">GPUS", "NODE", ">STARTED", ">FINISHED", "STATUS"};
  const bool devices =
      wide && std::ranges::any_of(report.pods, [](const PodReport& pod) { return !pod.gpu_devices.numbers.empty(); });
  const bool mig =
      std::ranges::any_of(report.pods, [](const PodReport& pod) { return count_gpus(pod.requests).mig_instances > 0; });
  if (wide) headings.insert(headings.begin() + 3, ">SUBMITTED"), headings.emplace_back("REQUESTS");
  if (mig) headings.insert(headings.begin() + 2, ">MIG");
  if (devices) headings.emplace_back("DEVICES");
  const bool limits =
      wide && std::ranges::any_of(report.pods, [](const auto& pod) { return !pod.gpu_devices.limit.empty(); });
  if (limits) headings.emplace_back("GPU LIMIT");
  TextTable table(headings);
  for (const PodReport& pod : report.pods) {
    const GpuCount count = count_gpus(pod.requests);
    std::vector<std::string> cells = {pod.namespace_name + "/" + pod.name,
                                      pod.gpu_share.asked() ? share_text(pod.gpu_share)
                                      : count.gpus == 0     ? "-"
                                                            : std::to_string(count.gpus),
                                      pod.node.empty() ? "-" : pod.node,
                                      at_time(pod.started),
                                      at_time(pod.finished),
                                      status_of(pod)};
    if (wide) cells.insert(cells.begin() + 3, at_time(pod.submitted)), cells.push_back(asks_text(pod));
    if (mig) cells.insert(cells.begin() + 2, count.mig_instances == 0 ? "-" : std::to_string(count.mig_instances));
    if (devices) cells.push_back(pod.gpu_devices.numbers.empty() ? "-" : bridge::told_devices(pod.gpu_devices));
    if (limits) cells.emplace_back(pod.gpu_devices.limit.empty() ? "-" : pod.gpu_devices.limit);
    table.add(std::move(cells));
  }
  return table.text();
}

struct WaitingGroup {
  std::vector<std::string> pods;
  const PodReport* sample = nullptr;
};

// "a, b, c, d, … and 8 more".
std::string few_of(const std::vector<std::string>& all) {
  constexpr size_t kNamesMax = 4;
  std::string names;
  for (size_t i = 0; i < std::min(all.size(), kNamesMax); ++i) names += (i == 0 ? "" : ", ") + all[i];
  if (all.size() > kNamesMax) names += fmt::format(", … and {} more", all.size() - kNamesMax);
  return printable(names);
}

std::string waiting_text(const Report& report, bool wide) {
  std::map<std::pair<size_t, std::string>, WaitingGroup> groups;
  std::vector<WaitingGroup*> order;
  for (const PodReport& pod : report.pods) {
    if (!pod.waiting) continue;
    WaitingGroup& group = groups[{pod.verdict, pod.refusal.empty() ? pod.message : pod.refusal}];
    if (group.pods.empty()) order.push_back(&group);
    group.pods.push_back(pod.namespace_name + "/" + pod.name);
    group.sample = &pod;
  }
  std::string out;
  for (const WaitingGroup* group : order) {
    const bool gated = group->sample->reason == "SchedulingGated";  // what it waits for is not room
    std::string asks = gated ? "" : " for " + asks_text(*group->sample);
    if (group->sample->reason == "Nominated") asks += ", nominated for " + printable(group->sample->nominated_node);
    const bool one = group->pods.size() == 1;
    const std::string_view does = group->sample->refusal.empty() ? (one ? "waits" : "wait")
                                  : one                          ? "is refused, asking"
                                                                 : "are refused, each asking";
    out += fmt::format("\n{} {}{}\n  {}\n", few_of(group->pods), does, asks, printable(group->sample->message, 2000));
    if (!wide || group->sample->verdict >= report.verdicts.size()) continue;
    for (const std::string& line : verdict_lines(report.verdicts[group->sample->verdict], "    ")) out += line + "\n";
  }
  return out;
}

std::string nodes_table(const Report& report) {
  if (report.nodes.empty()) return "no nodes\n";
  const auto has_mig = [](const NodeReport& node) {
    return count_gpus(node.allocatable).mig_instances + count_gpus(node.capacity).mig_instances > 0;
  };
  const bool mig = std::ranges::any_of(report.nodes, has_mig);
  std::vector<std::string> headings = {"NODE", ">GPUS", ">CPU", ">MEMORY", ">PODS"};
  if (mig) headings.insert(headings.begin() + 2, ">MIG");
  TextTable table(headings);
  for (const NodeReport& node : report.nodes) {
    const GpuCount has = count_gpus(node.allocatable), had = count_gpus(node.capacity), use = count_gpus(node.use);
    std::vector<std::string> cells = {node.name,
                                      has.gpus + had.gpus == 0 ? "-" : fmt::format("{}/{}", use.gpus, has.gpus),
                                      use_of(node, "cpu"), use_of(node, "memory"), use_of(node, "pods")};
    if (mig)
      cells.insert(cells.begin() + 2, has_mig(node) ? fmt::format("{}/{}", use.mig_instances, has.mig_instances) : "-");
    table.add(std::move(cells));
  }
  return table.text();
}

std::string repartitions_table(const Report& report) {
  if (report.repartitions.empty()) return "";
  TextTable table({"REPARTITIONED", ">FROM", ">TO", "INTO"});
  for (const RepartitionReport& cut : report.repartitions)
    table.add({cut.node, at_time(cut.begun),
               cut.given_up            ? "given up"
               : cut.overtaken.empty() ? at_time(cut.ended)
                                       : "overtaken",
               requests_text(cut.resources)});
  return "\n" + table.text();
}

std::string workloads_table(const Report& report, bool wide) {
  if (report.workloads.empty()) return "";
  std::vector<std::string> headings = {"WORKLOAD", "QUEUE", ">ADMITTED", ">FINISHED", "STATE", "FLAVORS"};
  if (wide) headings.insert(headings.begin() + 2, ">SUBMITTED"), headings.emplace_back(">EVICTIONS");
  TextTable table(headings);
  for (const WorkloadReport& workload : report.workloads) {
    const std::string queue = workload.cluster_queue.empty() ? workload.queue : workload.cluster_queue;
    std::vector<std::string> cells = {fmt::format("{} {}", workload.kind, workload.name),
                                      queue,
                                      at_time(workload.admitted),
                                      at_time(workload.finished),
                                      workload.state == "Pending" ? workload.reason : workload.state,
                                      flavors_text(workload)};
    if (wide) {
      cells.insert(cells.begin() + 2, at_time(Time{workload.submitted.nanos / 1'000'000 * 1'000'000}));
      cells.push_back(std::to_string(workload.evictions));
    }
    table.add(std::move(cells));
  }
  return "\n" + table.text();
}

// Why each pending workload waits; equal reasons are told once.
std::string queues_text(const Report& report) {
  std::vector<std::pair<std::string, std::vector<std::string>>> by_message;
  for (const WorkloadReport& workload : report.workloads) {
    if (workload.state == "Admitted" || workload.state == "Finished") continue;
    const std::string& message = workload.message.empty() ? workload.reason : workload.message;
    const auto known = std::ranges::find(by_message, message, [](const auto& entry) { return entry.first; });
    auto& names =
        known == by_message.end() ? by_message.emplace_back(message, std::vector<std::string>{}).second : known->second;
    names.push_back(workload.kind + " " + workload.name);
  }
  std::string out;
  for (const auto& [message, names] : by_message)
    out +=
        fmt::format("\n{} {}\n  {}\n", few_of(names), names.size() == 1 ? "waits" : "wait", printable(message, 2000));
  return out;
}

std::string queues_table(const Report& report) {
  if (report.queues.empty()) return "";
  TextTable table(
      {"CLUSTERQUEUE", "COHORT", ">PENDING", ">ADMITTED", "FLAVOR", "RESOURCE", ">USED", ">NOMINAL", ">BORROWED"});
  for (const QueueReport& queue : report.queues) {
    bool first = true;
    for (const QueueReport::Held& held : queue.held) {
      const auto shown = [&](int64_t amount) { return model::format_quota(held.resource, amount); };
      table.add({first ? queue.name : "",
                 !first                 ? ""
                 : queue.cohort.empty() ? "-"
                                        : queue.cohort,
                 first ? std::to_string(queue.pending) : "", first ? std::to_string(queue.admitted) : "", held.flavor,
                 held.resource, shown(held.used), shown(held.nominal), shown(held.borrowed)});
      first = false;
    }
    if (first)
      table.add({queue.name, queue.cohort.empty() ? "-" : queue.cohort, std::to_string(queue.pending),
                 std::to_string(queue.admitted), "-", "-", "-", "-", "-"});
  }
  return "\n" + table.text();
}

// What is not there since the API server refused it, and how full the quotas are.
std::string limits_text(const Report& report) {
  std::string out;
  for (const RefusedObject& object : report.refused)
    out += fmt::format("\n{} is refused\n  {}\n",
                       printable(fmt::format("{} {}/{}", object.kind, object.namespace_name, object.name)),
                       printable(object.message, 2000));
  if (report.quotas.empty()) return out;
  TextTable table({"RESOURCEQUOTA", "RESOURCE", ">USED", ">HARD"});
  for (const limits::QuotaUse& quota : report.quotas) {
    std::string name = quota.namespace_name + "/" + quota.name;
    for (const auto& [resource, used] : quota.used)
      table.add({std::exchange(name, ""), resource, limits::amount_text(resource, used),
                 limits::amount_text(resource, quota.hard.get(resource))});
  }
  return out + "\n" + table.text();
}

// "; 3 of 20 GPUs in use at the end, 15 at most", with instances of MIG apart; empty where there are neither.
std::string gpus_in_use(const Report& report) {
  GpuCount used, all;
  for (const NodeReport& node : report.nodes) {
    const GpuCount use = count_gpus(node.use), has = count_gpus(node.allocatable);
    used = {used.gpus + use.gpus, used.mig_instances + use.mig_instances};
    all = {all.gpus + has.gpus, all.mig_instances + has.mig_instances};
  }
  // What is kept for workloads is in use at the end, and no pod's.
  const int64_t gpus_most = std::max(report.gpus_peak, used.gpus);
  const int64_t instances_most = std::max(report.mig_instances_peak, used.mig_instances);
  const bool peaked = gpus_most != used.gpus || instances_most != used.mig_instances;
  const std::string end = peaked ? " at the end" : "";
  const auto at_most = [&](const std::string& most) { return peaked ? fmt::format(", {} at most", most) : ""; };
  if (all.mig_instances == 0)
    return all.gpus == 0 ? ""
                         : fmt::format("; {} of {} GPUs in use{}{}", used.gpus, all.gpus, end,
                                       at_most(std::to_string(gpus_most)));
  if (all.gpus == 0)
    return fmt::format("; {} of {} MIG instances in use{}{}", used.mig_instances, all.mig_instances, end,
                       at_most(std::to_string(instances_most)));
  return fmt::format("; {} of {} GPUs and {} of {} MIG instances in use{}{}", used.gpus, all.gpus, used.mig_instances,
                     all.mig_instances, end,
                     at_most(fmt::format("{} GPUs and {} MIG instances", gpus_most, instances_most)));
}

std::string summary(const Report& report) {
  const size_t refused = report.pods_refused() + report.refused.size();
  const size_t waiting = report.waiting() - report.pods_refused();
  const auto placed = std::count_if(report.pods.begin(), report.pods.end(),
                                    [](const PodReport& pod) { return !pod.waiting && pod.started.has_value(); });
  std::string out = fmt::format("{} {} placed, {} waiting", placed, placed == 1 ? "pod" : "pods", waiting);
  if (refused > 0) out += fmt::format(", {} refused", refused);
  if (const size_t workloads = report.workloads_waiting(); workloads > 0)
    out += fmt::format("; {} {} in {} queue{}", workloads, workloads == 1 ? "workload waits" : "workloads wait",
                       workloads == 1 ? "its" : "their", workloads == 1 ? "" : "s");
  out += gpus_in_use(report);
  return out + (report.end == Time{} ? "\n" : fmt::format("; simulated {}\n", format_duration(report.end - Time{})));
}

}  // namespace

std::string flavors_text(const WorkloadReport& workload) {
  std::set<std::string> names;
  for (const WorkloadReport::Set& set : workload.pod_sets)
    for (const auto& [resource, flavor] : set.flavors) names.insert(flavor);
  return names.empty() ? "-" : fmt::format("{}", fmt::join(names, ", "));
}

std::string owned_pods_text(const std::string& owner, const Report& report) {
  std::map<std::string, int> states;
  std::map<std::string, std::vector<std::string>> waiting;  // by what they are told
  for (const PodReport& pod : report.pods) {
    if (pod.owner != owner) continue;
    ++states[status_of(pod)];
    if (pod.waiting) waiting[pod.refusal.empty() ? pod.message : pod.refusal].push_back(pod.name);
  }
  if (states.empty()) return "";
  std::vector<std::string> counted;
  for (const auto& [state, pods] : states) counted.push_back(fmt::format("{} {}", pods, printable(state)));
  std::string out = fmt::format("  pods: {}\n", fmt::join(counted, ", "));
  for (const auto& [why, names] : waiting) out += fmt::format("  {}: {}\n", few_of(names), printable(why, 2000));
  return out;
}

std::string quota_text(const WorkloadReport& workload) {
  const quota::WaitingFor& waits = workload.waits_for;
  std::string out;
  if (waits.position > 0)
    out += fmt::format("  {} of {} in ClusterQueue {}\n", waits.position, waits.waiting,
                       printable(workload.cluster_queue));
  if (waits.quota.empty()) return out;
  TextTable table({"FLAVOR", "RESOURCE", ">ASKED", ">NOMINAL", ">USED", ">MAY BORROW", ">FREE", ">SHORT BY"});
  std::string held;
  for (const quota::WaitingFor::Account& account : waits.quota) {
    const auto shown = [&](int64_t amount) { return model::format_quota(account.resource, amount); };
    table.add({account.flavor, account.resource, shown(account.asked), shown(account.nominal), shown(account.used),
               shown(account.may_borrow), shown(account.available), shown(account.short_by)});
    if (account.short_by == 0) continue;
    if (account.asked > account.most) {
      held += fmt::format("it asks for more {} of {} than its queue can ever have, which is {}\n", account.resource,
                          printable(account.flavor), shown(account.most));
      continue;
    }
    std::vector<std::string> names;
    for (const auto& holder : account.holders)
      names.push_back(fmt::format("{} of {} ({})", holder.workload, holder.cluster_queue, shown(holder.amount)));
    if (!names.empty())
      held += fmt::format("{} of {} is held by {}\n", account.resource, printable(account.flavor), few_of(names));
  }
  std::map<std::pair<std::string, bool>, std::vector<std::string>> on_nodes;
  for (const WorkloadReport::OnNode& one : workload.on_nodes)
    on_nodes[{one.resource, one.kept}].push_back(fmt::format("{} on {} ({})", printable(one.pod), printable(one.node),
                                                             model::format_resource(one.resource, one.amount)));
  for (const auto& [what, names] : on_nodes)
    held += fmt::format("{} of its nodes is {} {}\n", what.first, what.second ? "kept for" : "held by", few_of(names));
  std::vector<std::string> fits;
  for (const quota::WaitingFor::Fit& fit : waits.fits)
    fits.push_back(fmt::format("{} of {} pods of {}", fit.pods, fit.of, printable(fit.pod_set)));
  if (!fits.empty()) held += fmt::format("there is quota now for {}\n", fmt::join(fits, ", for "));
  return out + "\n" + table.text() + (held.empty() ? "" : "\n" + held);
}

std::string requests_text(const model::ResourceList& requests) {
  std::string first, last;
  for (const auto& [name, amount] : requests) {
    if (name == "pods" || amount == 0) continue;
    std::string& out = model::is_gpu_resource(name) ? first : last;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", model::format_resource(name, amount), name);
  }
  if (first.empty() && last.empty()) return "nothing in particular";
  return first + (first.empty() || last.empty() ? "" : ", ") + last;
}

std::string share_text(const model::GpuShare& share) {
  if (share.memory_bytes > 0) return model::format_resource("memory", share.memory_bytes);
  if (share.micros <= 0) return "?";
  std::string out = fmt::format("{}.{:06}", share.micros / model::kWholeGpu, share.micros % model::kWholeGpu);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

std::string asks_text(const PodReport& pod) {
  std::string requests = requests_text(pod.requests);
  const bool none = std::none_of(pod.requests.begin(), pod.requests.end(),
                                 [](const auto& entry) { return entry.first != "pods" && entry.second != 0; });
  if (!pod.gpu_share.asked()) return requests;
  const std::string share = !pod.gpu_share.problem.empty()   ? "a share of a GPU"
                            : pod.gpu_share.memory_bytes > 0 ? share_text(pod.gpu_share) + " of a GPU's memory"
                                                             : share_text(pod.gpu_share) + " of a GPU";
  return share + (none ? "" : ", " + requests);
}

std::string table_text(const Report& report, bool wide) {
  std::string out;
  if (!report.pods.empty()) out += pods_table(report, wide);
  out += waiting_text(report, wide);
  out += workloads_table(report, wide) + queues_text(report) + queues_table(report) + limits_text(report);
  if (!out.empty()) out += "\n";
  return out + nodes_table(report) + repartitions_table(report) + "\n" + summary(report);
}

}  // namespace berth::scenario
