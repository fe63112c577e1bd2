// The part of Provisioning that asks for nodes, and says of a check what became of that.
#include <fmt/format.h>

#include <algorithm>

#include "api/kueue_names.h"
#include "api/patch.h"
#include "queueing/provisioning.h"
#include "queueing/write_json.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

// On requests: since when the quota has been reserved for which the request was made.
constexpr const char* kReservedAnnotation = "berth.dev/quota-reserved";
// On pods: autoscalers of before 1.32 know the second of each.
constexpr const char *kConsumeAnnotations[] = {"autoscaling.x-k8s.io/consume-provisioning-request",
                                               "cluster-autoscaler.kubernetes.io/consume-provisioning-request"},
                     *kClassAnnotations[] = {"autoscaling.x-k8s.io/provisioning-class-name",
                                             "cluster-autoscaler.kubernetes.io/provisioning-class-name"};
constexpr std::string_view kNotActive = "the check is not active",
                           kNotNeeded = "the provisioning request is not needed";

CheckWord pending(std::string message) { return {.state = "Pending", .message = std::move(message)}; }

// Of one that had to give its quota back and had it again at once, only the eviction tells.
const std::string& reserved_since(const SeenWorkload& workload) {
  const StoredCondition *reserved = workload.condition("QuotaReserved"), *evicted = workload.condition("Evicted");
  return evicted == nullptr ? reserved->since : std::max(reserved->since, evicted->since);
}

bool has_failed(const ProvisioningRequest& request) {
  return request.is("Failed") != nullptr || request.is("BookingExpired") != nullptr;
}

// Made for the quota that the workload has now. Who made one without saying so made it for that while it is alive.
bool is_of_now(const ProvisioningRequest& request, const SeenWorkload& workload) {
  const std::string* made_for = request.metadata.annotation(kReservedAnnotation);
  return made_for == nullptr ? !has_failed(request) : *made_for == reserved_since(workload);
}

bool follows(const ProvisioningRequest& request, const ProvisioningConfig& config) {
  return request.class_name == config.class_name && std::ranges::all_of(config.parameters, [&](const auto& parameter) {
           const auto at = request.parameters.find(parameter.first);
           return at != request.parameters.end() && at->second == parameter.second;
         });
}

// The member if it is an object or a list, else an empty one: templates of others may hold nulls.
const Json& part(const Json& of, const char* key) {
  static const Json none = Json::object();
  const auto at = of.is_object() ? of.find(key) : of.end();
  return at != of.end() && at->is_structured() ? *at : none;
}

// Those of the workload's pod sets for which nodes are to be asked.
std::vector<size_t> sets_to_ask_for(const SeenWorkload& workload, const ProvisioningConfig& config) {
  const auto asks = [&](const Json& container) {
    const Json& resources = part(container, "resources");
    return std::ranges::any_of(config.managed, [&](const std::string& resource) {
      return part(resources, "requests").contains(resource) || part(resources, "limits").contains(resource);
    });
  };
  std::vector<size_t> out;
  for (size_t i = 0; i < workload.templates.size(); ++i) {
    const Json pods = Json::parse(workload.templates[i]);
    bool is_asked_for = config.managed.empty();
    for (const char* list : {"initContainers", "containers"})
      is_asked_for |= std::ranges::any_of(part(part(pods, "spec"), list), asks);
    if (is_asked_for) out.push_back(i);
  }
  return out;
}

std::string template_name(const std::string& request, const std::string& pod_set) {
  constexpr size_t kPlainMax = 247;
  std::string name = fmt::format("ppt-{}-{}", request, pod_set);
  return name.size() <= kPlainMax ? name : workloads::hashed_name(name, name);
}

// What the pods will ask for, as the autoscaler is to see it: the server gives pods their limits as requests, and
// templates not.
void say_requests(Json& spec) {
  for (const char* list : {"initContainers", "containers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) {
      const Json limits = part(part(container, "resources"), "limits");
      for (const auto& [resource, amount] : limits.items())
        if (!part(part(container, "resources"), "requests").contains(resource))
          container["resources"]["requests"][resource] = amount;
    }
  }
}

Json metadata_of(const SeenWorkload& workload, const std::string& name) {
  api::OwnerReference owner{"kueue.x-k8s.io/v1beta2", "Workload", workload.workload.metadata.name,
                            workload.workload.metadata.uid, true};
  return {{"name", name},
          {"namespace", workload.workload.metadata.namespace_name},
          {"labels", {{std::string(api::kManagedLabel), "true"}}},
          {"ownerReferences", Json::parse(owners_json({owner}))}};
}

Json template_json(const SeenWorkload& workload, size_t pod_set, const std::string& name,
                   const quota::PodSetAssignment& given, const quota::Flavors& flavors) {
  Json pods = Json::parse(workload.templates[pod_set]);
  const Json tolerations = part(part(pods, "spec"), "tolerations");
  pods.merge_patch(pod_additions(workload, given, quota::terms_of(given, flavors), tolerations));
  say_requests(pods["spec"]);
  return {{"apiVersion", "v1"}, {"kind", "PodTemplate"}, {"metadata", metadata_of(workload, name)}, {"template", pods}};
}

Json request_json(const SeenWorkload& workload, const ProvisioningConfig& config, const std::string& name,
                  Json pod_sets) {
  Json metadata = metadata_of(workload, name), parameters = Json::object();
  metadata["annotations"] = {{kReservedAnnotation, reserved_since(workload)}};
  for (const auto& [key, value] : config.parameters) parameters[key] = value;
  for (const auto& [key, value] : workload.workload.metadata.annotations)
    if (key.starts_with(api::kProvisioningParameterPrefix))
      parameters[key.substr(api::kProvisioningParameterPrefix.size())] = value;
  return {{"apiVersion", "autoscaling.x-k8s.io/v1"},
          {"kind", "ProvisioningRequest"},
          {"metadata", std::move(metadata)},
          {"spec",
           {{"provisioningClassName", config.class_name},
            {"parameters", std::move(parameters)},
            {"podSets", std::move(pod_sets)}}}};
}

// What a request that is provisioned adds to the pods for which it was made.
std::string pod_set_updates(const SeenWorkload& workload, const ProvisioningRequest& request,
                            const ProvisioningConfig& config) {
  Json out = Json::array();
  for (const api::WorkloadPodSet& set : workload.workload.pod_sets) {
    if (std::ranges::find(request.templates, template_name(request.metadata.name, set.name)) == request.templates.end())
      continue;
    Json update = {{"name", set.name}, {"annotations", Json::object()}};
    for (const char* key : kConsumeAnnotations) update["annotations"][key] = request.metadata.name;
    for (const char* key : kClassAnnotations) update["annotations"][key] = request.class_name;
    for (const auto& [label, detail] : config.node_selector)
      if (const auto value = request.details.find(detail); value != request.details.end())
        update["nodeSelector"][label] = value->second;
    out.push_back(std::move(update));
  }
  return out.dump();
}

// Of an attempt that came to nothing.
CheckWord failed_word(const ProvisioningConfig& config, int attempt, const char* after, const std::string& message) {
  if (attempt > config.backoff_limit) return {.state = "Rejected", .message = message};
  int64_t seconds = std::min(config.backoff_base_s, config.backoff_max_s);
  for (int i = 1; i < attempt && seconds > 0 && seconds < config.backoff_max_s; ++i)
    seconds = std::min<int64_t>(2 * seconds, config.backoff_max_s);
  return {.state = "Retry",
          .message = fmt::format("Retrying after {}: {}", after, message),
          .retry_after_s = std::max<int64_t>(seconds, 1)};
}

// What the newest request means for its check; nothing: what stands there holds.
std::optional<CheckWord> word_of_request(const SeenWorkload& workload, const StoredCheck& check,
                                         const ProvisioningConfig& config, const ProvisioningRequest& request) {
  const bool admitted = workload.is("Admitted");
  const int attempt = *attempt_of(request.metadata.name, workload.workload.metadata.name, check.name);
  if (const StoredCondition* failed = request.is("Failed"))
    return failed_word(config, attempt, "failure", failed->message);
  if (const StoredCondition* revoked = request.is("CapacityRevoked"))
    return CheckWord{.state = "Rejected", .message = revoked->message};
  if (const StoredCondition* expired = request.is("BookingExpired"); expired != nullptr && !admitted)
    return failed_word(config, attempt, "booking expired", expired->message);
  if (admitted || check.state == "Ready") return std::nullopt;
  if (const StoredCondition* provisioned = request.is("Provisioned"))
    return CheckWord{.state = "Ready",
                     .message = provisioned->message,
                     .pod_set_updates = pod_set_updates(workload, request, config)};
  if (request.is("Accepted") == nullptr)
    return pending(fmt::format("ProvisioningRequest {} is not accepted yet", request.metadata.name));
  // Autoscalers say there when nodes are to be expected.
  const auto eta = std::ranges::find(request.conditions, "Provisioned", &StoredCondition::type);
  return pending(eta == request.conditions.end() ? request.is("Accepted")->message : eta->message);
}

}  // namespace

std::optional<CheckWord> Provisioning::word_of(const Asked& asked, const quota::Flavors& flavors,
                                               std::vector<Write>& writes) {
  const SeenWorkload& workload = asked.workload;
  const bool settled = workload.is("Admitted") || asked.check.state == "Ready";
  const ProvisioningRequest* newest = asked.requests.empty() ? nullptr : asked.requests.back();
  if (asked.config == nullptr) {
    if (settled) return std::nullopt;
    if (newest != nullptr && served_ && !has_failed(*newest)) remove(asked.name, *newest, writes);
    return pending(std::string(kNotActive));
  }
  const std::vector<size_t> pod_sets = sets_to_ask_for(workload, *asked.config);
  if (pod_sets.empty()) {
    for (const ProvisioningRequest* request : asked.requests) remove(asked.name, *request, writes);
    if (settled) return std::nullopt;
    return CheckWord{.state = "Ready", .message = std::string(kNotNeeded)};
  }
  const bool is_answer = newest != nullptr && is_of_now(*newest, workload);
  const bool over = newest != nullptr && (newest->metadata.deleted || (!has_failed(*newest) && !is_answer) ||
                                          (is_answer && !has_failed(*newest) && !follows(*newest, *asked.config)));
  if (over && !settled) {  // another is made when this one has gone
    remove(asked.name, *newest, writes);
    return pending(fmt::format("ProvisioningRequest {} is being replaced", newest->metadata.name));
  }
  if (is_answer) {
    // Should this one be taken back, the one before is the count of attempts.
    const size_t kept = workload.is("Admitted") ? 1 : 2;
    for (size_t i = 0; i + kept < asked.requests.size(); ++i) remove(asked.name, *asked.requests[i], writes);
    return word_of_request(workload, asked.check, *asked.config, *newest);
  }
  if (settled || asked.check.state != "Pending") return std::nullopt;
  const int before = newest == nullptr ? 0 : *attempt_of(newest->metadata.name, asked.name.second, asked.check.name);
  return ask(asked, pod_sets, before + 1, flavors, writes);
}

// Makes the templates, and then the request: an autoscaler that finds a template missing gives the request up.
std::optional<CheckWord> Provisioning::ask(const Asked& asked, const std::vector<size_t>& pod_sets, int attempt,
                                           const quota::Flavors& flavors, std::vector<Write>& writes) {
  const SeenWorkload& workload = asked.workload;
  const std::string name = request_name(asked.name.second, asked.check.name, attempt);
  if (requests_.contains({asked.name.first, name})) {
    again_ = true;
    return pending(fmt::format("ProvisioningRequest {}, made for something else, is in the way", name));
  }
  Subject& subject = subjects_[asked.name];
  Write write{.kind = Write::Kind::kCreateTemplate,
              .party = Write::Party::kProvisioning,
              .namespace_name = asked.name.first,
              .name = asked.name.second,
              .body = {}};
  Json sets = Json::array();
  for (const size_t i : pod_sets) {
    const std::string& set = workload.workload.pod_sets[i].name;
    const auto given = std::ranges::find(workload.admission->pod_sets, set, &quota::PodSetAssignment::name);
    if (given == workload.admission->pod_sets.end() || given->count < 1) continue;
    write.object = template_name(name, set);
    write.body = template_json(workload, i, write.object, *given, flavors).dump();
    Made& made = subject.templates[write.object];
    if (!make(write, made, writes)) {
      if (made.error.empty()) return std::nullopt;
      return pending(fmt::format("Error creating PodTemplate \"{}\": {}", write.object, made.error));
    }
    sets.push_back({{"podTemplateRef", {{"name", write.object}}}, {"count", given->count}});
  }
  write.kind = Write::Kind::kCreateRequest;
  write.object = name;
  write.body = request_json(workload, *asked.config, name, std::move(sets)).dump();
  write.notes = {note_of(workload.workload.metadata, "Workload", "ProvisioningRequestCreated",
                         fmt::format("Created ProvisioningRequest: \"{}\"", name))};
  Made& made = subject.requests[name];
  if (made.body.empty()) send(made, std::move(write), writes);
  if (made.error.empty()) return std::nullopt;
  return pending(fmt::format("Error creating ProvisioningRequest \"{}\": {}", name, made.error));
}

// True: the template is there as it is to be. One by its name that an earlier try left goes first.
bool Provisioning::make(const Write& write, Made& made, std::vector<Write>& writes) {
  if (made.body == write.body) return true;
  if (!made.in_the_way && made.body.empty()) {
    send(made, write, writes);
    return false;
  }
  Write removal = write;
  removal.kind = Write::Kind::kDeleteTemplate;
  removal.body.clear();
  send(made, std::move(removal), writes);
  return false;
}

// The templates first: while the request is there, whoever comes next knows of them.
void Provisioning::remove(const Name& workload, const ProvisioningRequest& request, std::vector<Write>& writes) {
  if (request.metadata.deleted) return;
  Subject& subject = subjects_[workload];
  Write write{.kind = Write::Kind::kDeleteTemplate,
              .party = Write::Party::kProvisioning,
              .namespace_name = workload.first,
              .name = workload.second,
              .body = {}};
  const std::string own = fmt::format("ppt-{}", request.metadata.name).substr(0, 240);
  for (const std::string& name : request.templates) {
    if (!name.starts_with(own)) continue;  // whoever makes a request may not have others' templates deleted
    write.object = name;
    if (Made& made = subject.templates[name]; !made.gone) return send(made, std::move(write), writes);
  }
  write.kind = Write::Kind::kDeleteRequest;
  write.object = request.metadata.name;
  write.body = api::delete_options_json(request.metadata.uid);
  if (Made& made = subject.requests[write.object]; !made.gone) send(made, std::move(write), writes);
}

void Provisioning::send(Made& made, Write write, std::vector<Write>& writes) {
  if (made.lane.is_free(now_)) {
    made.lane.busy = true;
    made.sent = write.body;
    writes.push_back(std::move(write));
  } else if (!made.lane.busy) {
    again_ = true;
  }
}

}  // namespace berth::queueing
