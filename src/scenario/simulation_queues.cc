// The part of Simulation that lets work wait in queues, and starts and stops it as the engine decides about workloads.
#include <algorithm>
#include <utility>

#include "api/kueue_names.h"
#include "base/check.h"
#include "scenario/simulation.h"
#include "workloads/job/job.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {
namespace {

// Nothing is left to run, suspended or not.
bool is_done(const SimObject& record) {
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || record.active > 0) return false;
  return record.stopped || workloads::wanted_once_released(*job, 0, record.ended) == 0;
}

}  // namespace

QueueController::Called called(const api::Object& object) {
  const api::ObjectMeta& metadata = api::metadata_of(object);
  return {std::string(api::kind_of(object)), metadata.namespace_name + "/" + metadata.name};
}

// True: the object that was submitted waits in a queue, and makes no pods before it is admitted.
bool Simulation::wait_in_queue(size_t workload) {
  Workload& record = workloads_[workload];
  if (!queues_.serves() || record.before_admission) return false;
  if (record.manifest.stored != nullptr) return resume(workload), true;
  const QueueController::Owner owner{workload, SIZE_MAX};
  const Time created = now_ + Duration{static_cast<int64_t>(sequence_++)};
  const auto submit = [&](const api::Workload& waits, const std::string& refused = "") {
    queues_.submit(waits, owner, called(record.manifest.object), created, options_.topology_levels, refused);
  };
  if (const auto* waits = std::get_if<api::Workload>(&record.manifest.object)) return submit(*waits), true;
  auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr) return false;
  if (job->metadata.controller() == nullptr && workloads::queue_of(job->metadata).empty() &&
      queues_.has_default_queue(job->metadata.namespace_name))  // as the webhook does
    job->metadata.labels.set(std::string(api::kQueueLabel), std::string(api::kDefaultLocalQueue));
  if (workloads::queue_of(job->metadata).empty()) return false;
  const CountedJob counts = counted(*job, limits_.ranges());
  submit(counts.workload, counts.refused);
  return true;
}

void Simulation::carry_out(const quota::AdmissionDecision& decision) {
  happened_ = now_;
  const quota::Admission& admission = engine().admission();
  if (decision.kind == quota::AdmissionDecision::Kind::kEvict) return clear_out(queues_.evict(decision, admission));
  if (decision.kind == quota::AdmissionDecision::Kind::kReserve) return queues_.reserve(decision, admission);
  const QueueController::Admitted given = queues_.admit(decision, admission, now_);
  if (given.owner.group != SIZE_MAX) return let_in(given);
  const api::Object& object = workloads_[given.owner.object].manifest.object;
  if (std::holds_alternative<api::Job>(object)) return release_job(given.owner.object, given);
  begin_workload(given.owner.object);
}

// A Workload by itself has been admitted: its pods are nobody's to play, unless they were there already.
void Simulation::begin_workload(size_t workload) {
  const api::Object& object = workloads_[workload].manifest.object;
  if (workloads_[workload].active == 0 && api::metadata_of(object).annotation(kSimulatedReady) == nullptr)
    queues_.set_ready({workload, SIZE_MAX}, INT32_MAX, now_);
  if (const auto runtime = simulated(object, kSimulatedRuntime))
    schedule(now_, *runtime, DueKind::kWorkloadEnds, workload);
}

// Its pods are to leave; it may be let in anew when they have.
void Simulation::clear_out(QueueController::Owner owner) {
  if (owner.group != SIZE_MAX) {
    groups_.all[owner.group].infos.clear();
    const std::vector<size_t> pods = groups_.all[owner.group].pods;  // others may come in their place
    for (const size_t pod : pods)
      if (!workloads::waits_for_admission(pods_[pod].object)) make_leave(pod);
    return;
  }
  Workload& record = workloads_[owner.object];
  if (!record.before_admission && record.active == 0) return queues_.released(owner);  // nothing runs for it
  if (auto* job = std::get_if<api::Job>(&record.manifest.object)) job->suspend = true;
  make_pods_leave(owner.object);
}

void Simulation::make_pods_leave(size_t workload) {
  const size_t count = pods_.size();
  for (size_t i = 0; i < count; ++i)
    if (pods_[i].workload == workload) make_leave(i);
}

void Simulation::release_job(size_t workload, const QueueController::Admitted& given) {
  Workload& record = workloads_[workload];
  record.before_admission = record.manifest.object;
  record.released = now_;
  auto& job = std::get<api::Job>(record.manifest.object);
  job.suspend = false;
  job.succeeded = record.ended;
  const workloads::PodSetInfo& info = given.infos.front();
  if (given.counts.front() < workloads::wanted_active(job, 0, record.ended))
    workloads::set_pods(job, given.counts.front());
  workloads::inject(info, job.pod_template.metadata, job.pod_template.spec);
  expand(workload);
}

// For others: one that waits vanishes at once, one that runs ends gracefully. What makes pods again makes others for
// those that were in a queue by themselves, which wait there.
void Simulation::make_leave(size_t index) {
  SimPod& pod = pods_[index];
  if (pod.stage == Stage::kEnded) return;
  pod.preempted = true;
  const bool leaves_already = pod.object.metadata.deleted.has_value();
  if (pod.stage != Stage::kRunning) remove(index);
  else if (!leaves_already) delete_gracefully(index);
  if (!leaves_already && pod.group != SIZE_MAX && !keeps_name(pod)) replace_pod(index);
}

// A pod of a Job has ended: its workload needs fewer, or has finished.
void Simulation::follow_job(size_t workload) {
  const QueueController::Owner owner{workload, SIZE_MAX};
  Workload& record = workloads_[workload];
  if (!queues_.knows(owner)) return;
  if (std::holds_alternative<api::Workload>(record.manifest.object) && record.active == 0 && queues_.admitted_at(owner))
    return queues_.finish(owner, now_);  // those that it came with have ended
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || !record.before_admission) return;
  if (is_done(record)) return queues_.finish(owner, now_);
  if (!record.stopped && !job->suspend)
    queues_.reclaim(owner, {workloads::reclaimable(*job, queues_.count_of(owner), record.ended)});
}

// A pod runs, and becomes ready when its annotation says so; without one at once.
void Simulation::await_readiness(SimPod& pod) {
  if (!options_.engine.admission.pods_ready.enabled) return;
  const std::string* text = pod.object.metadata.annotation(kSimulatedReady);
  if (text == nullptr) return set_ready(pod, true);
  if (const auto delay = simulated(pod.object, kSimulatedReady))
    schedule(now_, *delay, DueKind::kPodReady, by_uid_.at(pod.object.metadata.uid));
}

void Simulation::set_ready(SimPod& pod, bool ready) {
  if (pod.ready == ready) return;
  pod.ready = ready;
  if (pod.workload != SIZE_MAX) workloads_[pod.workload].ready += ready ? 1 : -1;
  readiness_changed_.insert(pod.group != SIZE_MAX ? QueueController::Owner{SIZE_MAX, pod.group}
                                                  : QueueController::Owner{pod.workload, SIZE_MAX});
}

// Tells the engine of workloads all of whose pods have become ready, or not all any more. One that has succeeded counts
// as ready, as in Kueue.
void Simulation::follow_readiness() {
  for (const QueueController::Owner owner : std::exchange(readiness_changed_, {})) {
    const auto is_ready = [&](size_t pod) { return pods_[pod].ready || pods_[pod].object.status.phase == "Succeeded"; };
    if (owner.group != SIZE_MAX)
      queues_.set_ready(owner, static_cast<int32_t>(std::ranges::count_if(groups_.all[owner.group].pods, is_ready)),
                        now_);
    else if (owner.object != SIZE_MAX)
      queues_.set_ready(owner, workloads_[owner.object].ready + workloads_[owner.object].ended, now_);
  }
}

Status Simulation::report_check(const std::string& name, quota::CheckReport report) {
  if (queues_.report_check(with_namespace(name), std::move(report), now_)) return {};
  return fail(ErrorCode::kNotFound, "no workload is called " + with_namespace(name));
}

Status Simulation::set_active(const std::string& name, bool active) {
  if (queues_.set_active(with_namespace(name), active)) return {};
  return fail(ErrorCode::kNotFound, "no workload is called " + with_namespace(name));
}

// Those that were evicted and whose last pod has gone may be let in anew.
void Simulation::let_go() {
  const std::vector<QueueController::Owner> leaving = queues_.leaving();
  for (const QueueController::Owner owner : leaving) {
    if (owner.group != SIZE_MAX) {
      PodGroup& group = groups_.all[owner.group];
      const auto has_ended = [&](size_t pod) { return pods_[pod].stage == Stage::kEnded; };
      const auto is_out = [&](size_t pod) {
        return has_ended(pod) || workloads::waits_for_admission(pods_[pod].object);
      };
      if (!std::ranges::all_of(group.pods, is_out)) continue;
      group.ended = std::ranges::all_of(group.pods, has_ended);
      if (group.ended) queues_.finish(owner, now_);
      else queues_.released(owner);  // those that came in their place wait
      continue;
    }
    Workload& record = workloads_[owner.object];
    if (record.active > 0) continue;
    if (is_done(record)) {  // its last pod succeeded while it was told to end
      queues_.finish(owner, now_);
      continue;
    }
    if (record.before_admission) record.manifest.object = *std::exchange(record.before_admission, std::nullopt);
    if (const auto* job = std::get_if<api::Job>(&record.manifest.object);
        job != nullptr && limits_.ranges().any(job->metadata.namespace_name)) {
      const CountedJob now = counted(*job, limits_.ranges());  // LimitRanges may have changed since
      queues_.change(owner, now.workload, options_.topology_levels, now.refused);
    }
    queues_.released(owner);
  }
}

}  // namespace berth::scenario
