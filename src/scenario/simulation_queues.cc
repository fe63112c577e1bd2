// The part of Simulation that lets work wait in queues, and starts and stops it as the engine decides about workloads.
#include <algorithm>
#include <utility>

#include "api/kueue_names.h"
#include "base/check.h"
#include "scenario/simulation.h"
#include "workloads/job/job.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {
namespace {

// Nothing is left to run, suspended or not.
bool is_done(const SimObject& record) {
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || record.active > 0) return false;
  api::Job runs = *job;
  runs.suspend = false;
  return record.stopped || workloads::wanted_active(runs, 0, record.ended) == 0;
}

}  // namespace

// True: the object that was submitted waits in a queue, and makes no pods before it is admitted.
bool Simulation::wait_in_queue(size_t workload) {
  Workload& record = workloads_[workload];
  if (!queues_.serves()) return false;
  const QueueController::Owner owner{workload, SIZE_MAX};
  const Time created = now_ + Duration{static_cast<int64_t>(sequence_++)};
  const auto submit = [&](api::Workload waits) {
    const std::string name =
        api::metadata_of(record.manifest.object).namespace_name + "/" + api::metadata_of(record.manifest.object).name;
    queues_.submit(std::move(waits), owner, std::string(api::kind_of(record.manifest.object)), name, created,
                   options_.topology_levels);
  };
  if (const auto* waits = std::get_if<api::Workload>(&record.manifest.object)) return submit(*waits), true;
  auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || record.before_admission) return false;
  if (job->metadata.controller() == nullptr && workloads::queue_of(job->metadata).empty() &&
      queues_.has_default_queue(job->metadata.namespace_name))  // as the webhook does
    job->metadata.labels.set(std::string(api::kQueueLabel), std::string(api::kDefaultLocalQueue));
  if (workloads::queue_of(job->metadata).empty()) return false;
  submit(workloads::workload_of(*job));
  return true;
}

void Simulation::carry_out(const quota::AdmissionDecision& decision) {
  happened_ = now_;
  const quota::Admission& admission = engine().admission();
  if (decision.kind == quota::AdmissionDecision::Kind::kEvict) {
    const QueueController::Owner owner = queues_.evict(decision, admission);
    if (owner.group != SIZE_MAX) {
      groups_.all[owner.group].infos.clear();
      for (const size_t pod : groups_.all[owner.group].pods) make_leave(pod);
    } else if (workloads_[owner.object].before_admission) {
      suspend_job(owner.object);
    } else {
      queues_.released(owner);  // nothing runs for it
    }
    return;
  }
  if (decision.kind == quota::AdmissionDecision::Kind::kReserve) return queues_.reserve(decision, admission);
  const QueueController::Admitted given = queues_.admit(decision, admission, now_);
  if (given.owner.group != SIZE_MAX) {
    PodGroup& group = groups_.all[given.owner.group];
    group.infos = given.infos;
    for (const size_t pod : group.pods) {
      if (pods_[pod].stage != Stage::kWaiting) continue;
      let_in(group, pods_[pod]);
      tell_pod(pods_[pod]);
    }
    return;
  }
  const api::Object& object = workloads_[given.owner.object].manifest.object;
  if (std::holds_alternative<api::Job>(object)) return release_job(given.owner.object, given);
  if (api::metadata_of(object).annotation(kSimulatedReady) == nullptr)  // its pods are nobody's to play
    queues_.set_ready(given.owner, INT32_MAX, now_);
  if (const auto runtime = simulated(object, kSimulatedRuntime))
    schedule(now_, *runtime, DueKind::kWorkloadEnds, given.owner.object);
}

void Simulation::release_job(size_t workload, const QueueController::Admitted& given) {
  Workload& record = workloads_[workload];
  record.before_admission = record.manifest.object;
  record.released = now_;
  auto& job = std::get<api::Job>(record.manifest.object);
  job.suspend = false;
  job.succeeded = record.ended;
  const workloads::PodSetInfo& info = given.infos.front();
  if (given.counts.front() < workloads::wanted_active(job, 0, record.ended)) job.parallelism = given.counts.front();
  workloads::inject(info, job.pod_template.metadata, job.pod_template.spec);
  expand(workload);
}

// The pods of a job that has to make way end gracefully; those that wait vanish at once.
void Simulation::suspend_job(size_t workload) {
  const size_t count = pods_.size();
  auto& job = std::get<api::Job>(workloads_[workload].manifest.object);
  job.suspend = true;
  for (size_t i = 0; i < count; ++i)
    if (pods_[i].workload == workload) make_leave(i);
}

// For others: one that waits vanishes at once, one that runs ends gracefully.
void Simulation::make_leave(size_t index) {
  SimPod& pod = pods_[index];
  if (pod.stage == Stage::kEnded) return;
  pod.preempted = true;
  if (pod.stage != Stage::kRunning) remove(index);
  else if (!pod.object.metadata.deleted) delete_gracefully(index);
}

// A pod of a Job has ended: its workload needs fewer, or has finished.
void Simulation::follow_job(size_t workload) {
  const QueueController::Owner owner{workload, SIZE_MAX};
  Workload& record = workloads_[workload];
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || !record.before_admission || !queues_.knows(owner)) return;
  if (is_done(record)) return queues_.finish(owner, now_);
  if (!record.stopped && !job->suspend) queues_.reclaim(owner, {workloads::reclaimable(*job, record.ended)});
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
      group.ended = std::ranges::all_of(group.pods, [&](size_t pod) { return pods_[pod].stage == Stage::kEnded; });
      if (group.ended) queues_.finish(owner, now_);
      continue;
    }
    Workload& record = workloads_[owner.object];
    if (record.active > 0) continue;
    if (is_done(record)) {  // its last pod succeeded while it was told to end
      queues_.finish(owner, now_);
      continue;
    }
    if (record.before_admission) { record.manifest.object = *std::exchange(record.before_admission, std::nullopt); }
    queues_.released(owner);
  }
}

}  // namespace berth::scenario
