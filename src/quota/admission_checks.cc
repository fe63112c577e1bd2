// AdmissionChecks: what has to be ready, beside quota and a place, before a workload is admitted.
//
// With quota a workload has its queue's checks, of those flavors that it was given. Controllers say how each stands;
// once all are ready the workload is admitted, and nothing that a check says later but Retry and Rejected changes that.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "quota/admission.h"

namespace berth::quota {

void Admission::upsert(model::AdmissionCheck check) {
  std::string name = check.name;
  checks_[std::move(name)] = std::move(check);
  reconfigure();
}

void Admission::remove(const model::AdmissionCheck& check) {
  checks_.erase(check.name);
  reconfigure();
}

// The reason why a queue is not active for its checks; empty: they are all there.
std::string Admission::inactive_check(const model::ClusterQueue& queue) const {
  const auto known = [&](const model::AdmissionCheckRule& rule) { return checks_.contains(rule.check); };
  if (!std::ranges::all_of(queue.checks, known)) return "AdmissionCheckNotFound";
  const auto active = [&](const model::AdmissionCheckRule& rule) { return checks_.find(rule.check)->second.active; };
  return std::ranges::all_of(queue.checks, active) ? "" : "AdmissionCheckInactive";
}

// Those that a workload with these flavors has to pass.
std::set<std::string> Admission::checks_of(const model::ClusterQueue& queue,
                                           const std::vector<PodSetAssignment>& given) const {
  std::set<std::string> flavors, out;
  for (const PodSetAssignment& set : given) flavors.merge(flavor_names(set));
  const auto is_given = [&](const std::string& flavor) { return flavors.contains(flavor); };
  for (const model::AdmissionCheckRule& rule : queue.checks)
    if (rule.flavors.empty() || std::ranges::any_of(rule.flavors, is_given)) out.insert(rule.check);
  return out;
}

// Whether nodes are yet to be made for a workload with these flavors, so that quota is enough to begin with.
bool Admission::provisions(const model::ClusterQueue& queue, const std::vector<PodSetAssignment>& given) const {
  return std::ranges::any_of(checks_of(queue, given), [&](const std::string& name) {
    const auto check = checks_.find(name);
    return check != checks_.end() && check->second.controller == model::kProvisioningController;
  });
}

// The checks of a workload with quota follow its queue's.
void Admission::sync_checks(Record& record) {
  const auto queue = queues_.find(record.status.cluster_queue);
  if (queue == queues_.end()) return;
  const std::set<std::string> wanted = checks_of(queue->second, record.status.assignment);
  std::vector<CheckReport>& checks = record.status.checks;
  std::erase_if(checks, [&](const CheckReport& check) { return !wanted.contains(check.check); });
  for (const std::string& name : wanted)
    if (std::ranges::find(checks, name, &CheckReport::check) == checks.end()) checks.push_back({name});
  std::ranges::sort(checks, {}, &CheckReport::check);
}

void Admission::check_state(WorkloadId id, const CheckReport& report, Time at) {
  Record& record = this->record(id);
  if (record.standing != Standing::kHolding || leaving(record)) return;
  std::vector<CheckReport>& checks = record.status.checks;
  const auto known = std::ranges::find(checks, report.check, &CheckReport::check);
  if (known == checks.end()) checks.push_back(report);  // goes where its queue does not ask for it
  else *known = report;
  if (report.state == CheckState::kRetry)
    record.checks_retry_at = std::max(record.checks_retry_at, at + report.requeue_after);
  touched_.push_back(id);
}

// Why a workload has to give its quota back for what its checks say.
std::optional<EvictionReason> Admission::failed_check(const Record& record) const {
  std::vector<std::string> rejected;
  bool retries = false;
  for (const CheckReport& check : record.status.checks) {
    if (check.state == CheckState::kRejected) rejected.push_back(check.check);
    retries |= check.state == CheckState::kRetry;
  }
  if (!rejected.empty())
    return EvictionReason{"DeactivatedDueToAdmissionCheck",
                          fmt::format("The workload is deactivated due to Admission check(s): {}, were rejected",
                                      fmt::join(rejected, ",")),
                          true};
  if (!retries) return std::nullopt;
  EvictionReason out{std::string(kCheckEviction), "At least one admission check is false"};
  out.requeue_at = record.checks_retry_at;
  out.ranks_since = now_ + options_.created_ahead;
  return out;
}

// For who has quota alone: a place, as soon as there is one; also one that is kept for those who have no quota as
// things are, since they may wait for that which it has, or who are not let in before its pods are ready.
void Admission::find_place(Record& record) {
  if (!record.placeless) return;
  std::vector<WorkloadId> over;
  PlaceRequest request{record.key.id, &record.status.workload, &record.status.assignment, &flavors_};
  record.placeless = !places_->hold(request, {});
  if (!record.placeless) return;
  const bool blocks = options_.pods_ready.block_admission && not_ready_.contains(record.key.id);
  for (const auto& [id, room] : kept_.rooms)
    if (room.keeps_places() && (blocks || !ledger_->tree().has_room(room.queue, room.usage))) over.push_back(id);
  request.over = &over;
  record.placeless = over.empty() || !places_->hold(request, {});
  for (const WorkloadId id : record.placeless ? std::vector<WorkloadId>() : over) {
    kept_.rooms.at(id).looked_at = Time{INT64_MIN};  // it is to be kept elsewhere
    enqueue(id);
  }
  if (!record.placeless) return;
  request.over = nullptr;
  release_places(record.key.id);  // what was left of those that it had: all or none
  want_place_.insert(record.key.id);
  record.status.reason = "WaitingForPlace";
  places_->fit(request, {}, &record.status.message);
}

namespace {

EvictionReason place_is_lost(const std::string& why) {
  return {std::string(kNodeFailures), "A place that was held for it is lost" + (why.empty() ? "" : ": " + why)};
}

}  // namespace

// One that is admitted and has not begun does so with all of its places, or gives them all back.
std::optional<EvictionReason> Admission::lost_place(const Record& record) const {
  const WorkloadId id = record.key.id;
  const bool lacks = places_ != nullptr && places_->lacking().contains(id);
  if (record.status.phase != WorkloadPhase::kAdmitted || !lacks || places_->has_begun(id)) return std::nullopt;
  std::string why;
  places_->fit({id, &record.status.workload, &record.status.assignment, &flavors_}, {}, &why);
  return place_is_lost(why);
}

// Admits a workload with quota and a place all of whose checks are ready; else it is told what it waits for.
void Admission::admit_if_ready(Record& record, std::vector<AdmissionDecision>& decisions) {
  WorkloadStatus& status = record.status;
  std::vector<std::string> waits_for;
  for (const CheckReport& check : status.checks) {
    if (check.state == CheckState::kReady) continue;
    const std::string& said = checks_.contains(check.check) ? check.message : "it is not there";
    waits_for.push_back(said.empty() ? check.check : fmt::format("{} ({})", check.check, said));
  }
  find_place(record);
  if (!waits_for.empty()) {
    const std::string place = record.placeless ? "; " + status.message : "";
    status.reason = "UnsatisfiedChecks";
    status.message = fmt::format("has quota, and waits for AdmissionCheck(s) {}{}", fmt::join(waits_for, ", "), place);
    return;
  }
  if (record.placeless) {  // it was lost while checks were waited for: quota that no node can hold is for others
    const auto queue = queues_.find(status.cluster_queue);
    if (queue != queues_.end() && provisions(queue->second, status.assignment)) return;
    return evict(record.key.id, place_is_lost(status.message), decisions);
  }
  status.phase = WorkloadPhase::kAdmitted;
  status.reason.clear();
  status.message.clear();
  begin_term(record);
  AdmissionDecision& decision = decisions.emplace_back();
  decision.workload = record.key.id;
  decision.cluster_queue = status.cluster_queue;
  decision.assignment = status.assignment;
}

}  // namespace berth::quota
