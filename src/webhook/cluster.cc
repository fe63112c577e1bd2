#include "webhook/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "api/decode.h"
#include "api/names.h"
#include "base/printable.h"
#include "limits/namespace_limits.h"
#include "webhook/mutate.h"
#include "webhook/object.h"
#include "webhook/owners.h"
#include "webhook/rules.h"

namespace berth::webhook {
namespace {

// Others wait while the pods of a Job are tried: so many at most, and fewer where a pod is described at length.
constexpr int64_t kPodsTriedMax = 1000, kBytesTriedMax = 4LL << 20;

bool is_job(const AdmissionRequest& request) { return request.group == "batch" && request.kind == "Job"; }
bool is_pod(const AdmissionRequest& request) { return request.group.empty() && request.kind == "Pod"; }

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The queue in which the object is to wait from now on; empty if it names none or stays where it was. What a whole has
// made is where its whole is.
std::string new_queue_of(const AdmissionRequest& request) {
  std::string queue = label_of(request.object, kQueueLabel);
  if (request.operation == "UPDATE" && queue == label_of(request.old_object, kQueueLabel)) return "";
  return whole_of(request.object).empty() ? std::move(queue) : "";
}

void check_queue(Cluster& cluster, const AdmissionRequest& request, AdmissionAnswer& answer) {
  const std::string queue = new_queue_of(request);
  const std::string& space = request.namespace_name;
  // Both become part of a path.
  if (queue.empty() || !api::check_dns1123_subdomain(queue).empty() || !api::check_dns1123_subdomain(space).empty())
    return;
  const std::string path = api::append_key("metadata.labels", kQueueLabel);
  switch (cluster.local_queue(space, queue)) {
    case QueueIs::kThere:
      if (const std::string missing = cluster.missing_cluster_queue(space, queue); !missing.empty())
        answer.warnings.push_back(
            fmt::format("{}: there is no ClusterQueue \"{}\", which LocalQueue \"{}\" names; until there is this waits",
                        path, printable(missing, 80), printable(queue, 80)));
      return;
    case QueueIs::kUnknown:
      answer.warnings.push_back(fmt::format(
          "{}: whether there is a LocalQueue \"{}\" in this namespace could not be found out; without it this waits",
          path, printable(queue, 80)));
      return;
    case QueueIs::kMissing: {
      std::vector<std::string> warnings = std::move(answer.warnings);
      answer = deny_invalid(fmt::format(
          "{}: {}; make it, or name one that `kubectl get localqueues -n {}` lists", path,
          api::invalid_value(queue, fmt::format("there is no LocalQueue of this name in namespace {}", space)), space));
      answer.warnings = std::move(warnings);
    }
  }
}

// How many pods of a Job are there at once.
int64_t pods_of(const Json& spec) {
  const auto number = [&](const char* key, int64_t otherwise) {
    const auto member = spec.find(key);
    return member != spec.end() && member->is_number_integer() ? member->get<int64_t>() : otherwise;
  };
  const int64_t parallelism = number("parallelism", 1);
  return std::min(parallelism, number("completions", parallelism));
}

// A pod as the Job would make it, as JSON; empty without a template.
std::string pod_of(const Json& spec, const std::string& namespace_name) {
  const Json* pod_template = part_of(spec, "template");
  if (pod_template == nullptr) return "";
  Json pod = *pod_template;
  pod["apiVersion"] = "v1";
  pod["kind"] = "Pod";
  if (part_of(pod, "metadata") == nullptr) pod["metadata"] = Json::object();
  pod["metadata"]["namespace"] = namespace_name;
  pod["metadata"]["name"] = "pod";
  return dump(pod);
}

void check_limits(Cluster& cluster, const AdmissionRequest& request, AdmissionAnswer& answer) {
  const Json* spec = part_of(request.object, "spec");
  if (spec == nullptr) return;
  NamespaceSeen seen = cluster.limits_of(request.namespace_name);
  if (seen.ranges.empty() && seen.quotas.empty()) return;
  const std::string text = pod_of(*spec, request.namespace_name);
  const Result<api::Pod> pod = api::decode_pod(text);
  if (!pod) return;
  limits::NamespaceLimits limits;
  for (api::LimitRange& range : seen.ranges) limits.put(std::move(range));
  for (SeenQuota& each : seen.quotas) limits.put_used(std::move(each.quota), std::move(each.used));
  const int64_t pods = pods_of(*spec);
  const int64_t tried = std::clamp<int64_t>(kBytesTriedMax / static_cast<int64_t>(text.size()), 1, kPodsTriedMax);
  int64_t fit = 0;
  std::optional<limits::Refusal> refused;
  for (; fit < std::min(pods, tried) && !refused; fit += refused ? 0 : 1) {
    api::Pod next = *pod;
    refused = limits.admit(next);
  }
  if (!refused) return;
  answer.warnings.push_back(refused->text);  // alone, since a warning is cut where it is long
  const bool suspended = spec->value("suspend", Json()) == true;
  answer.warnings.push_back(
      fmt::format("so the API server would refuse pods of this Job: {} of {} fit now{}", fit, pods,
                  suspended ? "; it is suspended, and this may have changed when it starts" : ""));
}

}  // namespace

Result<SeenQuota> decode_quota(std::string_view json) {
  BERTH_TRY(quota, api::decode_json<api::ResourceQuota>(json));
  SeenQuota seen{std::move(quota), {}};
  const Json object = Json::parse(json, nullptr, false);
  const Json* used = part_of(part_of(object, "status"), "used");
  if (used == nullptr) return seen;
  // Amounts of status.used are written as those of spec.hard.
  const Json as_hard{{"metadata", object["metadata"]}, {"spec", {{"hard", *used}}}};
  BERTH_TRY(read, api::decode_json<api::ResourceQuota>(dump(as_hard)));
  seen.used = std::move(read.hard);
  return seen;
}

AdmissionAnswer mutate_in(Cluster& cluster, const AdmissionRequest& request, const Rules& rules) {
  const bool named = !label_of(request.object, kQueueLabel).empty();
  if (named || !is_job(request) || request.operation != "CREATE" || !request.subresource.empty() ||
      !request.object.is_object() || !whole_of(request.object).empty() ||
      !cluster.has_default_queue(request.namespace_name))
    return mutate(request, rules);
  AdmissionRequest queued = request;
  queued.object["metadata"]["labels"][std::string(kQueueLabel)] = std::string(api::kDefaultLocalQueue);
  return mutate(queued, rules);
}

AdmissionAnswer validate_in(Cluster& cluster, const AdmissionRequest& request, AdmissionAnswer answer) {
  const bool create = request.operation == "CREATE";
  if (!answer.allowed || !request.subresource.empty() || !(create || request.operation == "UPDATE")) return answer;
  if (!is_job(request) && !is_pod(request)) return answer;
  if (!text_of(part_of(request.object, "metadata"), "deletionTimestamp").empty()) return answer;
  check_queue(cluster, request, answer);
  if (create && answer.allowed && is_job(request)) check_limits(cluster, request, answer);
  return answer;
}

}  // namespace berth::webhook
