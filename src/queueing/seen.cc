#include "queueing/seen.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "api/decode.h"
#include "api/kueue_names.h"
#include "api/queue_limits.h"
#include "model/quantity.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kVersion = "kueue.x-k8s.io/v1beta2";

std::string text(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

int64_t number(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number_integer() ? at->get<int64_t>() : 0;
}

// The member, an empty object without it.
const Json& member(const Json& object, const char* key) {
  static const Json none = Json::object();
  const auto at = object.find(key);
  return at != object.end() && !at->is_null() ? *at : none;
}

std::vector<StoredCondition> conditions_of(const Json& status) {
  std::vector<StoredCondition> out;
  for (const Json& one : member(status, "conditions"))
    out.push_back({text(one, "type"), text(one, "status"), text(one, "reason"), text(one, "message"),
                   text(one, "lastTransitionTime"), number(one, "observedGeneration")});
  return out;
}

api::SpendingRate rate_of(const Json& status) {
  std::vector<api::Condition> conditions;
  for (const StoredCondition& one : conditions_of(status))
    conditions.push_back({one.type, one.status, one.reason, one.message});
  return api::spending_rate_of(conditions);
}

// An amount that cannot be read counts as nothing: what a queue holds is never less for a word of a tenant's, since
// only the schema's quantities are stored.
std::optional<StoredAdmission> admission_of(const Json& status) {
  const Json& admission = member(status, "admission");
  if (admission.empty()) return std::nullopt;
  StoredAdmission out{text(admission, "clusterQueue"), {}};
  for (const Json& set : member(admission, "podSetAssignments")) {
    quota::PodSetAssignment& given = out.pod_sets.emplace_back();
    given.name = text(set, "name");
    given.count = static_cast<int32_t>(number(set, "count"));
    for (const auto& [resource, flavor] : member(set, "flavors").items())
      if (flavor.is_string()) given.flavors[resource] = {flavor.get<std::string>(), quota::FlavorMode::kFit};
    for (const auto& [resource, amount] : member(set, "resourceUsage").items()) {
      const std::string quantity = amount.is_string() ? amount.get<std::string>() : amount.dump();
      if (const auto value = model::parse_quota(resource, quantity); value && given.flavors.contains(resource))
        given.usage.set(resource, *value);
    }
  }
  return out;
}

// A state that is not known counts as none: the workload waits.
std::vector<StoredCheck> checks_of(const Json& status) {
  std::vector<StoredCheck> out;
  for (const Json& one : member(status, "admissionChecks")) {
    StoredCheck& check = out.emplace_back(StoredCheck{text(one, "name"), text(one, "state"), {}, one.dump()});
    check.report.check = check.name;
    check.report.message = text(one, "message");
    if (check.state == "Ready") check.report.state = quota::CheckState::kReady;
    if (check.state == "Retry") check.report.state = quota::CheckState::kRetry;
    if (check.state == "Rejected") check.report.state = quota::CheckState::kRejected;
    check.report.requeue_after = Duration::seconds(number(one, "requeueAfterSeconds"));
  }
  return out;
}

std::optional<StoredRequeue> requeue_of(const Json& status) {
  const Json& state = member(status, "requeueState");
  if (state.empty()) return std::nullopt;
  StoredRequeue out{static_cast<int32_t>(number(state, "count"))};
  if (const auto at = parse_rfc3339(text(state, "requeueAt"))) out.at = *at;
  return out;
}

// True: Kueue's is among them; `others` gains the rest.
bool read_finalizers(const Json& metadata, std::string_view of_kueue, std::vector<std::string>& others) {
  bool found = false;
  for (const Json& finalizer : member(metadata, "finalizers")) {
    if (finalizer == of_kueue) found = true;
    else if (finalizer.is_string()) others.push_back(finalizer.get<std::string>());
  }
  return found;
}

Result<Json> parse(std::string_view json) {
  Json out = Json::parse(json, nullptr, false);
  if (!out.is_object()) return fail(ErrorCode::kInvalidInput, "not a JSON object");
  return out;
}

}  // namespace

bool is_older(const std::string& version, const std::string& known) {
  uint64_t x = 0, y = 0;
  const auto number = [](const std::string& text, uint64_t& out) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    return error == std::errc{} && end == text.data() + text.size();
  };
  return number(version, x) && number(known, y) && x < y;
}

const StoredCondition* SeenWorkload::condition(std::string_view type) const {
  const auto at = std::ranges::find(conditions, type, &StoredCondition::type);
  return at == conditions.end() ? nullptr : &*at;
}

bool SeenWorkload::is(std::string_view type) const {
  const StoredCondition* known = condition(type);
  return known != nullptr && known->status == "True";
}

namespace {

Result<api::KueueObject> decode_object(std::string_view json, std::string_view kind) {
  api::Problems problems;
  api::Document document;
  document.api_version = kVersion;
  document.kind = kind;
  document.json = json;
  auto object = api::decode_kueue(document, problems, true);
  if (object) return std::move(*object);
  if (problems.empty()) return fail(ErrorCode::kInvalidInput, "cannot be read");
  const api::Problem& first = problems.front();
  return fail(ErrorCode::kInvalidInput, first.path.empty() ? first.message : first.path + ": " + first.message);
}

}  // namespace

Duration SeenWorkload::admitted_for(Time wall) const {
  if (!is("Admitted")) return {};
  const auto since = parse_rfc3339(condition("Admitted")->since);
  return since ? std::max(Duration{}, wall - *since) : Duration{};
}

std::optional<model::Spent> spent_by_now(const SeenQueue& seen, Time wall) {
  const auto by_now = [&](const auto& queue) {
    return queue.spent ? std::optional(api::spent_by(*queue.spent, seen.rate, queue.budget.window, wall))
                       : std::nullopt;
  };
  if (const auto* queue = std::get_if<api::ClusterQueue>(&seen.object)) return by_now(queue->queue);
  if (const auto* local = std::get_if<api::LocalQueue>(&seen.object)) return by_now(local->queue);
  return std::nullopt;
}

Result<SeenQueue> decode_queue_object(std::string_view json, std::string_view kind) {
  BERTH_TRY(raw, parse(json));
  auto object = decode_object(json, kind);
  if (!object && kind == "ClusterQueue") {
    Json bare = raw;
    bare["spec"] = Json::object();
    auto queue = decode_object(bare.dump(), kind);
    if (!queue) return tl::unexpected(object.error());
    std::get<api::ClusterQueue>(*queue).queue.problem = object.error().message;
    object = std::move(queue);
  }
  BERTH_TRY(read, std::move(object));
  SeenQueue out{std::move(read), member(raw, "status").dump()};
  out.rate = rate_of(member(raw, "status"));
  if (auto* queue = std::get_if<api::ClusterQueue>(&out.object)) {
    if (queue->queue.problem.empty()) queue->queue.problem = api::unreadable_limits(*queue);
    if (!queue->queue.problem.empty()) queue->queue.budget = {};
    out.problem = queue->queue.problem;
    out.remark = api::idle_user_limits(queue->queue);
  }
  if (auto* local = std::get_if<api::LocalQueue>(&out.object)) {
    out.problem = api::unreadable_limits(*local);
    if (!out.problem.empty()) local->queue.budget = {};
  }
  return out;
}

Result<SeenWorkload> decode_workload(std::string_view json) {
  BERTH_TRY(object, decode_object(json, "Workload"));
  BERTH_TRY(raw, parse(json));
  SeenWorkload out;
  out.workload = std::get<api::Workload>(std::move(object));
  for (const Json& set : member(member(raw, "spec"), "podSets"))
    out.templates.push_back(member(set, "template").dump());
  out.conditions = conditions_of(member(raw, "status"));
  out.admission = admission_of(member(raw, "status"));
  out.checks = checks_of(member(raw, "status"));
  out.requeue = requeue_of(member(raw, "status"));
  const Json& priority = member(member(raw, "spec"), "priorityClassRef");
  if (text(priority, "kind") == "WorkloadPriorityClass") out.priority_class = text(priority, "name");
  out.finalizer = read_finalizers(member(raw, "metadata"), api::kInUseFinalizer, out.finalizers);
  return out;
}

Result<SeenWorkload> decode_any_workload(std::string_view json) {
  Result<SeenWorkload> seen = decode_workload(json);
  if (seen) return seen;
  Result<Json> raw = parse(json);
  if (!raw || !raw->is_object() || !member(*raw, "spec").is_object()) return seen;
  const Json nobody = Json::parse(
      R"({"name": "main", "count": 0, "template": {"spec": {"containers": [{"name": "none", "image": "none"}]}}})");
  (*raw)["spec"]["podSets"] = Json::array({nobody});  // a Workload has one
  Result<SeenWorkload> rest = decode_workload(raw->dump());
  if (!rest || rest->is("QuotaReserved")) return seen;
  rest->workload.pod_sets.clear();
  rest->templates.clear();
  rest->problem = "what it asks for cannot be understood: " + seen.error().message;
  return rest;
}

Result<SeenJob> decode_job(std::string_view json) {
  BERTH_TRY(job, api::decode_json<api::Job>(json));
  BERTH_TRY(raw, parse(json));
  SeenJob out;
  out.job = std::move(job);
  out.pod_template = member(member(raw, "spec"), "template").dump();
  const Json& status = member(raw, "status");
  out.started = status.contains("startTime") && !status["startTime"].is_null();
  if (const Json& leaving = member(status, "terminating"); leaving.is_number_integer())
    out.terminating = leaving.get<int32_t>();
  out.conditions = status.value("conditions", Json::array()).dump();
  for (const StoredCondition& condition : conditions_of(status)) {
    if (condition.status != "True") continue;
    out.rests |= condition.type == "Suspended";
    if (condition.type == "SuccessCriteriaMet" || condition.type == "FailureTarget") out.ends_since = condition.since;
    if (condition.type != "Complete" && condition.type != "Failed") continue;
    out.finished = condition.type == "Complete" ? "Succeeded" : "Failed";
    out.how_finished = condition.message;
  }
  return out;
}

Result<SeenPod> decode_pod(std::string_view json) {
  BERTH_TRY(pod, api::decode_json<api::Pod>(json));
  BERTH_TRY(raw, parse(json));
  SeenPod out;
  out.pod = std::move(pod);
  const Json &metadata = member(raw, "metadata"), &spec = member(raw, "spec");
  Json kept = spec;
  for (const char* key : {"schedulingGates", "nodeName"}) kept.erase(key);
  Json pod_template = {{"metadata", Json::object()}, {"spec", std::move(kept)}};
  for (const char* key : {"labels", "annotations"})
    if (metadata.contains(key)) pod_template["metadata"][key] = metadata[key];
  out.pod_template = pod_template.dump();
  out.gates = spec.value("schedulingGates", Json::array()).dump();
  out.tolerations = spec.value("tolerations", Json::array()).dump();
  out.finalizer = read_finalizers(metadata, api::kManagedLabel, out.finalizers);
  return out;
}

const StoredCondition* ProvisioningRequest::is(std::string_view type) const {
  const auto at = std::ranges::find(conditions, type, &StoredCondition::type);
  return at == conditions.end() || at->status != "True" ? nullptr : &*at;
}

namespace {

std::map<std::string, std::string> texts_of(const Json& object) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : object.items())
    if (value.is_string()) out[key] = value.get<std::string>();
  return out;
}

// For kinds that api/ does not know.
api::ObjectMeta metadata_of(const Json& object) {
  const Json& metadata = member(object, "metadata");
  api::ObjectMeta out;
  out.name = text(metadata, "name");
  out.namespace_name = text(metadata, "namespace");
  out.uid = text(metadata, "uid");
  out.resource_version = text(metadata, "resourceVersion");
  out.generation = number(metadata, "generation");
  if (const auto deleted = parse_rfc3339(text(metadata, "deletionTimestamp"))) out.deleted = *deleted;
  for (const auto& [key, value] : texts_of(member(metadata, "annotations"))) out.annotations.set(key, value);
  for (const Json& owner : member(metadata, "ownerReferences"))
    out.owners.push_back({text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"), text(owner, "uid"),
                          owner.value("controller", false)});
  return out;
}

int32_t seconds_or_count(const Json& object, const char* key, int32_t without) {
  return object.contains(key) ? static_cast<int32_t>(number(object, key)) : without;
}

}  // namespace

Result<ProvisioningConfig> decode_provisioning_config(std::string_view json) {
  BERTH_TRY(raw, parse(json));
  ProvisioningConfig out;
  out.metadata = metadata_of(raw);
  const Json &spec = member(raw, "spec"), &retry = member(spec, "retryStrategy");
  out.class_name = text(spec, "provisioningClassName");
  out.parameters = texts_of(member(spec, "parameters"));
  for (const Json& resource : member(spec, "managedResources"))
    if (resource.is_string()) out.managed.insert(resource.get<std::string>());
  out.backoff_limit = seconds_or_count(retry, "backoffLimitCount", out.backoff_limit);
  out.backoff_base_s = seconds_or_count(retry, "backoffBaseSeconds", out.backoff_base_s);
  out.backoff_max_s = seconds_or_count(retry, "backoffMaxSeconds", out.backoff_max_s);
  for (const Json& one : member(member(spec, "podSetUpdates"), "nodeSelector"))
    out.node_selector[text(one, "key")] = text(one, "valueFromProvisioningClassDetail");
  return out;
}

Result<ProvisioningRequest> decode_provisioning_request(std::string_view json) {
  BERTH_TRY(raw, parse(json));
  ProvisioningRequest out;
  out.metadata = metadata_of(raw);
  const Json &spec = member(raw, "spec"), &status = member(raw, "status");
  out.class_name = text(spec, "provisioningClassName");
  out.parameters = texts_of(member(spec, "parameters"));
  for (const Json& set : member(spec, "podSets")) out.templates.push_back(text(member(set, "podTemplateRef"), "name"));
  out.conditions = conditions_of(status);
  out.details = texts_of(member(status, "provisioningClassDetails"));
  return out;
}

namespace {

Json owner_references(const std::vector<api::OwnerReference>& all) {
  Json owners = Json::array();
  for (const api::OwnerReference& owner : all) {
    owners.push_back(
        {{"apiVersion", owner.api_version}, {"kind", owner.kind}, {"name", owner.name}, {"uid", owner.uid}});
    if (owner.controller) owners.back()["controller"] = true;
  }
  return owners;
}

Json texts(const model::Labels& labels) {
  Json out = Json::object();
  for (const auto& [key, value] : labels) out[key] = value;
  return out;
}

}  // namespace

std::string priority_class_json(const std::string& name) {
  return Json{{"group", "kueue.x-k8s.io"}, {"kind", "WorkloadPriorityClass"}, {"name", name}}.dump();
}

std::string owners_json(const std::vector<api::OwnerReference>& owners) { return owner_references(owners).dump(); }

std::string workload_json(const api::Workload& workload, const std::vector<std::string>& templates,
                          const std::optional<std::string>& priority_class) {
  Json metadata = {{"name", workload.metadata.name},
                   {"namespace", workload.metadata.namespace_name},
                   {"finalizers", {api::kInUseFinalizer}}};
  if (!workload.metadata.labels.empty()) metadata["labels"] = texts(workload.metadata.labels);
  if (!workload.metadata.annotations.empty()) metadata["annotations"] = texts(workload.metadata.annotations);
  metadata["ownerReferences"] = owner_references(workload.metadata.owners);
  Json sets = Json::array();
  for (size_t i = 0; i < workload.pod_sets.size(); ++i) {
    const api::WorkloadPodSet& set = workload.pod_sets[i];
    Json one = {{"name", set.name}, {"count", set.count}};
    if (set.min_count) one["minCount"] = *set.min_count;
    one["template"] = Json::parse(templates[i]);
    sets.push_back(std::move(one));
  }
  Json spec = {{"active", true}, {"queueName", workload.queue_name}, {"priority", workload.priority}};
  if (priority_class) spec["priorityClassRef"] = Json::parse(priority_class_json(*priority_class));
  spec["podSets"] = std::move(sets);
  if (workload.max_execution_s) spec["maximumExecutionTimeSeconds"] = *workload.max_execution_s;
  return Json{
      {"apiVersion", kVersion}, {"kind", "Workload"}, {"metadata", std::move(metadata)}, {"spec", std::move(spec)}}
      .dump();
}

}  // namespace berth::queueing
