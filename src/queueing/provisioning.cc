#include "queueing/provisioning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "queueing/write_json.h"
#include "workloads/kueue/queued.h"

namespace berth::queueing {
namespace {

constexpr std::string_view kConfigGroup = "kueue.x-k8s.io", kConfigKind = "ProvisioningRequestConfig";
constexpr size_t kAttemptDigits = 6;

// The workload that the request is for; null: it is nobody's.
const api::OwnerReference* workload_of(const ProvisioningRequest& request) {
  const api::OwnerReference* owner = request.metadata.controller();
  return owner != nullptr && owner->kind == "Workload" ? owner : nullptr;
}

bool holds_quota(const SeenWorkload& workload) {
  return workload.admission && workload.is("QuotaReserved") && !workload.is("Evicted") && !workload.is("Finished");
}

// A request that came to nothing stays while its workload waits for the next attempt: it is the count of them.
bool is_kept(const ProvisioningRequest& request, const SeenWorkload& workload) {
  if (!workload.workload.active || workload.is("Finished")) return false;
  if (request.is("Failed") != nullptr) return true;
  const bool for_check = workload.is("Evicted") && workload.condition("Evicted")->reason == quota::kCheckEviction;
  return for_check && request.is("BookingExpired") != nullptr;
}

}  // namespace

std::string request_name(const std::string& workload, const std::string& check, int attempt) {
  constexpr size_t kPlainMax = 247;
  std::string stem = fmt::format("{}-{}", workload, check);
  if (stem.size() + 1 + kAttemptDigits > kPlainMax) stem = workloads::hashed_name(stem, stem, 1 + kAttemptDigits);
  return fmt::format("{}-{}", stem, attempt);
}

std::optional<int> attempt_of(const std::string& request, const std::string& workload, const std::string& check) {
  const size_t dash = request.rfind('-');
  if (dash == std::string::npos || request.size() - dash - 1 > kAttemptDigits) return std::nullopt;
  int attempt = 0;
  const char *from = request.data() + dash + 1, *end = request.data() + request.size();
  const auto [at, error] = std::from_chars(from, end, attempt);
  if (error != std::errc{} || at != end || request_name(workload, check, attempt) != request) return std::nullopt;
  return attempt;
}

void Provisioning::see(const SeenQueue& seen) {
  const auto* check = std::get_if<api::AdmissionCheck>(&seen.object);
  if (check == nullptr || check->check.controller != model::kProvisioningController) return;
  const auto known = checks_.find(check->metadata.name);
  if (known != checks_.end() && known->second.metadata.uid == check->metadata.uid &&
      is_older(check->metadata.resource_version, known->second.metadata.resource_version))
    return;
  const Lane lane = known == checks_.end() ? Lane{} : known->second.lane;
  checks_[check->metadata.name] = {check->metadata, check->parameters, seen.status, lane};
  look_at_all();
}

void Provisioning::see(ProvisioningConfig config) {
  std::string name = config.metadata.name;
  configs_[std::move(name)] = std::move(config);
  look_at_all();
}

void Provisioning::see(ProvisioningRequest request) {
  const Name name{request.metadata.namespace_name, request.metadata.name};
  forget_made(request);
  const auto known = requests_.find(name);
  if (known != requests_.end()) {
    const api::ObjectMeta& before = known->second.metadata;
    if (before.uid != request.metadata.uid) request_gone(name);
    else if (is_older(request.metadata.resource_version, before.resource_version)) return;
  }
  if (const api::OwnerReference* owner = workload_of(request); owner != nullptr) {
    by_owner_[owner->uid].insert(name);
    dirty_.insert({name.first, owner->name});
  }
  requests_[name] = std::move(request);
}

void Provisioning::check_gone(const std::string& name) {
  if (checks_.erase(name) > 0) look_at_all();
}

void Provisioning::config_gone(const std::string& name) {
  if (configs_.erase(name) > 0) look_at_all();
}

void Provisioning::request_gone(const Name& name) {
  const auto known = requests_.find(name);
  if (known == requests_.end()) return;
  forget_made(known->second);
  if (const api::OwnerReference* owner = workload_of(known->second); owner != nullptr) {
    dirty_.insert({name.first, owner->name});
    if (const auto own = by_owner_.find(owner->uid); own != by_owner_.end()) {
      own->second.erase(name);
      if (own->second.empty()) by_owner_.erase(own);
    }
  }
  requests_.erase(known);
}

// What is known of the request's objects from writing them: the watch knows better by now.
void Provisioning::forget_made(const ProvisioningRequest& request) {
  const api::OwnerReference* owner = workload_of(request);
  const auto subject =
      owner == nullptr ? subjects_.end() : subjects_.find({request.metadata.namespace_name, owner->name});
  if (subject == subjects_.end()) return;
  const auto forget = [](std::map<std::string, Made>& all, const std::string& name) {
    if (const auto at = all.find(name); at != all.end() && !at->second.lane.busy) all.erase(at);
  };
  forget(subject->second.requests, request.metadata.name);
  for (const std::string& name : request.templates) forget(subject->second.templates, name);
}

void Provisioning::look_at_all() {
  for (const auto& [name, subject] : subjects_) dirty_.insert(name);
  for (const auto& [name, check] : checks_) dirty_checks_.insert(name);
}

// By attempt, or by name where they are of different checks.
std::vector<const ProvisioningRequest*> Provisioning::requests_of(const SeenWorkload& workload) const {
  std::vector<const ProvisioningRequest*> out;
  if (const auto own = by_owner_.find(workload.workload.metadata.uid); own != by_owner_.end())
    for (const Name& name : own->second) out.push_back(&requests_.at(name));
  return out;
}

std::vector<Write> Provisioning::look(Desk& desk, const quota::Flavors& flavors, bool served, Time now, Time wall,
                                      size_t room) {
  now_ = now;
  if (std::exchange(served_, served) != served) look_at_all();
  for (const Name& name : desk.take_checked()) dirty_.insert(name);
  std::vector<Write> writes;
  for (const std::string& name : std::exchange(dirty_checks_, {}))
    if (const auto at = checks_.find(name); at != checks_.end()) look_at(name, at->second, wall, writes);
  for (const Name& name : std::exchange(dirty_, {})) {
    again_ = writes.size() >= room;
    if (!again_) look_at(name, desk, flavors, writes);
    if (again_) dirty_.insert(name);
  }
  return writes;
}

void Provisioning::look_at(const Name& name, Desk& desk, const quota::Flavors& flavors, std::vector<Write>& writes) {
  const SeenWorkload* workload = desk.find(name);
  std::vector<const ProvisioningRequest*> requests;
  if (workload != nullptr) requests = requests_of(*workload);
  if (workload == nullptr || workload->workload.metadata.deleted || (workload->checks.empty() && requests.empty())) {
    subjects_.erase(name);  // the garbage collector sees to what it owns
    desk.say(name, {});
    return;
  }
  subjects_[name];
  CheckWords words;
  if (holds_quota(*workload)) {
    for (const StoredCheck& stored : workload->checks) {
      const auto check = checks_.find(stored.name);
      if (check == checks_.end()) continue;
      std::string reason, message;
      const bool active = is_active(check->second, reason, message);
      Asked asked{name, *workload, stored, active ? &configs_.at(check->second.parameters->name) : nullptr};
      std::erase_if(requests, [&](const ProvisioningRequest* request) {
        const bool its = attempt_of(request->metadata.name, name.second, stored.name).has_value();
        if (its) asked.requests.push_back(request);
        return its;
      });
      std::ranges::sort(asked.requests, {}, [&](const ProvisioningRequest* request) {
        return *attempt_of(request->metadata.name, name.second, stored.name);
      });
      if (auto word = word_of(asked, flavors, writes)) words[stored.name] = std::move(*word);
    }
    if (workload->is("Admitted")) requests.clear();  // what runs keeps what it was given
  } else {
    std::erase_if(requests, [&](const ProvisioningRequest* request) { return is_kept(*request, *workload); });
  }
  for (const ProvisioningRequest* request : requests) remove(name, *request, writes);
  desk.say(name, std::move(words));
}

// Under Kueue's reasons, and in its words where it has some.
bool Provisioning::is_active(const Check& check, std::string& reason, std::string& message) const {
  reason = "BadParametersRef";
  if (!check.parameters) {
    message = "missing parameters reference";
  } else if (check.parameters->api_group != kConfigGroup) {
    message = fmt::format("wrong group \"{}\", expecting \"{}\": bad parameters reference", check.parameters->api_group,
                          kConfigGroup);
  } else if (check.parameters->kind != kConfigKind) {
    message = fmt::format("wrong kind \"{}\", expecting \"{}\": bad parameters reference", check.parameters->kind,
                          kConfigKind);
  } else if (!configs_.contains(check.parameters->name)) {
    message = fmt::format("provisioningrequestconfigs.{} \"{}\" not found", kConfigGroup, check.parameters->name);
  } else if (!served_) {
    reason = "NoProvisioningRequests";
    message =
        "the API server has no provisioningrequests of autoscaling.x-k8s.io/v1, or Berth may not list them: the "
        "cluster's "
        "autoscaler brings their definition, and deploy/rbac.yaml has the role berth-provisioning";
  } else {
    reason = "Active";
    message = "The admission check is active";
    return true;
  }
  return false;
}

void Provisioning::look_at(const std::string& name, Check& check, Time wall, std::vector<Write>& writes) {
  if (!check.lane.is_free(now_)) {
    if (!check.lane.busy) dirty_checks_.insert(name);
    return;
  }
  Told told{.type = "Active", .is = false, .reason = {}, .message = {}};
  told.is = is_active(check, told.reason, told.message);
  const Json status = Json::parse(check.status, nullptr, false);
  Json conditions = status.is_object() ? status.value("conditions", Json::array()) : Json::array();
  const bool same = std::ranges::any_of(conditions, [&](const Json& one) {
    return one.value("type", "") == told.type && one.value("status", "") == (told.is ? "True" : "False") &&
           one.value("reason", "") == told.reason && one.value("message", "") == told.message;
  });
  if (same) return;
  set_condition(conditions, told, check.metadata.generation, wall);
  check.lane.busy = true;
  const Json body = {{"metadata", metadata_json(check.metadata)}, {"status", {{"conditions", std::move(conditions)}}}};
  writes.push_back({.kind = Write::Kind::kPatchStatus,
                    .party = Write::Party::kAdmissionCheck,
                    .namespace_name = {},
                    .name = name,
                    .body = body.dump()});
}

void Provisioning::answered(const Answer& answer, Time now) {
  const Write& write = answer.write;
  if (write.party == Write::Party::kAdmissionCheck) {
    if (const auto check = checks_.find(write.name); check != checks_.end()) check->second.lane.answered(answer, now);
    dirty_checks_.insert(write.name);
    if (answer.queue) see(*answer.queue);
    return;
  }
  const Name name{write.namespace_name, write.name};
  dirty_.insert(name);
  if (const auto subject = subjects_.find(name); subject != subjects_.end()) {
    const bool of_template = write.kind == Write::Kind::kCreateTemplate || write.kind == Write::Kind::kDeleteTemplate;
    auto& all = of_template ? subject->second.templates : subject->second.requests;
    if (const auto made = all.find(write.object); made != all.end()) {
      Made& one = made->second;
      one.lane.answered(answer, now);
      const bool deletes = write.kind == Write::Kind::kDeleteTemplate || write.kind == Write::Kind::kDeleteRequest;
      one.gone = deletes && (answer.stored || answer.http_status == 404);
      if (one.gone) one.in_the_way = false, one.lane = {};
      if (!deletes) one.in_the_way = answer.http_status == 409;
      one.body = !deletes && answer.stored ? one.sent : "";
      one.error = answer.stored || answer.http_status == 404 || answer.http_status == 409 ? "" : answer.error;
    }
  }
  if (answer.request) see(*answer.request);
}

}  // namespace berth::queueing
