// The part of Simulation that is the API server's admission: LimitRanges complete and ResourceQuotas count what is
// created, what they refuse is not stored, and controllers try again what they could not create.
#include <fmt/format.h>

#include <utility>

#include "queueing/pod_defaults.h"
#include "scenario/simulation.h"

namespace berth::scenario {
namespace {

// Gone from the server, or never there.
bool is_gone(const SimPod& pod) {
  return pod.stage == Stage::kRefused || (pod.stage == Stage::kEnded && !pod.object.terminal());
}

// What an object other than a pod counts for; nothing for kinds that are not counted.
std::optional<limits::Usage> usage_of(const api::Object& object) {
  if (std::holds_alternative<api::Job>(object)) return limits::usage_of_one("jobs.batch");
  const auto* claim = std::get_if<api::PersistentVolumeClaim>(&object);
  return claim == nullptr ? std::nullopt : std::optional(limits::usage_of(*claim));
}

}  // namespace

bool is_stored(const api::Pod& pod) {
  return !pod.metadata.uid.empty() || !pod.spec.node_name.empty() || pod.terminal();
}

bool is_limit(const api::Object& object) {
  return std::holds_alternative<api::ResourceQuota>(object) || std::holds_alternative<api::LimitRange>(object);
}

CountedJob counted(const api::Job& job, const limits::LimitRanges& ranges) {
  CountedJob out{workloads::workload_of(job), ""};
  for (api::WorkloadPodSet& set : out.workload.pod_sets)
    ranges.complete(job.metadata.namespace_name, set.pod_template.spec);
  out.refused = queueing::refusal(ranges, job.metadata.namespace_name, out.workload.pod_sets);
  return out;
}

// Jobs that wait in queues are counted anew with a LimitRange; those that were let in keep what they have.
void Simulation::put_limit(const api::Object& object) {
  if (const auto* range = std::get_if<api::LimitRange>(&object)) {
    limits_.put(*range);
    for (size_t i = 0; i < workloads_.size(); ++i) {
      const auto* job = std::get_if<api::Job>(&workloads_[i].manifest.object);
      const QueueController::Owner owner{i, SIZE_MAX};
      if (job == nullptr || job->metadata.namespace_name != range->metadata.namespace_name ||
          !queues_.waits(owner, engine().admission()))
        continue;
      const CountedJob now = counted(*job, limits_.ranges());
      queues_.change(owner, now.workload, options_.topology_levels, now.refused);
    }
    return;
  }
  const auto& quota = std::get<api::ResourceQuota>(object);
  limits_.put(quota, present_in(quota.metadata.namespace_name));
}

std::vector<limits::Usage> Simulation::present_in(const std::string& space) const {
  std::vector<limits::Usage> present;
  for (const SimPod& pod : pods_)
    if (!is_gone(pod) && pod.object.metadata.namespace_name == space) present.push_back(limits::usage_of(pod.object));
  for (const Workload& workload : workloads_)
    if (workload.stored && api::metadata_of(workload.manifest.object).namespace_name == space)
      if (auto usage = usage_of(workload.manifest.object)) present.push_back(*std::move(usage));
  return present;
}

// Quotas count what is there, and what a controller waits to create is refused still.
void Simulation::check_limits() {
  std::set<std::string> spaces;
  for (const limits::QuotaUse& use : limits_.uses()) spaces.insert(use.namespace_name);
  for (const std::string& space : spaces)
    for (const std::string& sentence : limits_.miscounted(space, present_in(space)))
      broken_.push_back(fmt::format("at {}: {}", format_duration(now_ - Time{}), sentence));
  limits::NamespaceLimits trial = limits_;
  if (!trial.take_relieved().empty()) return;  // these are tried again before the next cycle
  for (const auto& [workload, refused] : refused_pods_) {
    api::Pod pod = pods_[refused.slots.front()].object;
    if (!trial.admit(pod))
      broken_.push_back(
          fmt::format("at {}: {} could be created and is not", format_duration(now_ - Time{}), pod_name(pod)));
  }
}

void Simulation::count_if_stored(size_t workload) {
  Workload& record = workloads_[workload];
  const api::ObjectMeta& metadata = api::metadata_of(record.manifest.object);
  const auto* pod = std::get_if<api::Pod>(&record.manifest.object);
  record.stored = pod != nullptr ? is_stored(*pod) : !metadata.uid.empty();
  if (!record.stored) return;
  if (pod != nullptr) limits_.count(metadata.namespace_name, limits::usage_of(*pod));
  else if (const auto usage = usage_of(record.manifest.object)) limits_.count(metadata.namespace_name, *usage);
}

bool Simulation::admit_object(size_t workload) {
  Workload& record = workloads_[workload];
  const api::Object& object = record.manifest.object;
  if (record.stored) return true;
  std::optional<limits::Refusal> refusal;
  const char* resource = "jobs.batch";
  if (const auto* claim = std::get_if<api::PersistentVolumeClaim>(&object)) {
    refusal = limits_.admit(*claim);
    resource = "persistentvolumeclaims";
  } else if (std::holds_alternative<api::Job>(object)) {
    refusal = limits_.admit(api::metadata_of(object).namespace_name, resource);
  }
  record.stored = !refusal;
  if (refusal) record.refusal = refusal->message(resource, api::kind_of(object), api::metadata_of(object).name);
  return record.stored;
}

bool Simulation::admit_pod(size_t slot) {
  SimPod& pod = pods_[slot];
  const auto waiting = refused_pods_.find(pod.workload);
  const bool behind_others = waiting != refused_pods_.end();  // of the same template: what refused them refuses it
  std::optional<limits::Refusal> refusal = behind_others ? waiting->second.refusal : limits_.admit(pod.object);
  if (!refusal) return true;
  pod.stage = Stage::kRefused;
  if (pod.workload != SIZE_MAX) {
    RefusedPods& refused = refused_pods_[pod.workload];
    refused.refusal = *std::move(refusal);
    refused.slots.push_back(slot);
    return false;
  }
  pod.reason = refusal->invalid ? "Invalid" : "Forbidden";
  pod.verdict = std::make_shared<std::string>(refusal->message("pods", "Pod", pod.object.metadata.name));
  return false;
}

// A real controller does so after a delay that doubles each time; here it does so when there may be room.
void Simulation::retry_refused_pods() {
  const std::set<std::string> relieved = limits_.take_relieved();
  if (relieved.empty()) return;
  for (auto at = refused_pods_.begin(); at != refused_pods_.end();) {
    RefusedPods& refused = at->second;
    const api::ObjectMeta& maker = api::metadata_of(workloads_[at->first].manifest.object);
    const bool go_on = relieved.contains(maker.namespace_name);
    while (go_on && !refused.slots.empty()) {
      const size_t slot = refused.slots.front();
      if (auto refusal = limits_.admit(pods_[slot].object)) {
        refused.refusal = *std::move(refusal);
        break;
      }
      refused.slots.pop_front();
      pods_[slot].stage = Stage::kWaiting;
      pods_[slot].object.metadata.created = now_ + Duration{static_cast<int64_t>(sequence_++)};
      begin_pod(slot);
    }
    at = refused.slots.empty() ? refused_pods_.erase(at) : std::next(at);
  }
}

void Simulation::recount(const api::Pod& pod, bool stored) {
  const std::string& space = pod.metadata.namespace_name;
  if (!limits_.has_quota(space)) return;
  if (stored) limits_.count(space, limits::usage_of(pod));
  else limits_.forget(space, limits::usage_of(pod));
}

RefusedPod Simulation::refusal_of(const SimPod& pod) const {
  if (pod.workload == SIZE_MAX) return {pod.reason, *pod.verdict, *pod.verdict};
  const limits::Refusal& refusal = refused_pods_.at(pod.workload).refusal;
  const api::Object& maker = workloads_[pod.workload].manifest.object;
  const std::string& name = pod.object.metadata.name;
  const std::string why = refusal.message("pods", "Pod", name);
  if (std::holds_alternative<api::StatefulSet>(maker))
    return {kFailedCreate,
            fmt::format("create Pod {} in StatefulSet {} failed error: {}", name, api::metadata_of(maker).name, why),
            refusal.text};
  return {kFailedCreate, "Error creating: " + why, refusal.text};
}

void Simulation::report_limits(Report& out) const {
  for (const Workload& workload : workloads_) {
    if (workload.refusal.empty()) continue;
    const api::ObjectMeta& metadata = api::metadata_of(workload.manifest.object);
    out.refused.push_back({std::string(api::kind_of(workload.manifest.object)), metadata.namespace_name, metadata.name,
                           workload.refusal});
  }
  out.quotas = limits_.uses();
}

}  // namespace berth::scenario
