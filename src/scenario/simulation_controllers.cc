#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "api/requests.h"
#include "base/check.h"
#include "bridge/to_model.h"
#include "scenario/simulation.h"
#include "workloads/daemonset/daemonset.h"
#include "workloads/job/job.h"
#include "workloads/kinds.h"
#include "workloads/statefulset/statefulset.h"

namespace berth::scenario {
namespace {

// The slot's workload does not want it any more.
void forget_refused_pod(std::map<size_t, RefusedPods>& refused, size_t workload, size_t slot) {
  const auto at = refused.find(workload);
  if (at == refused.end()) return;
  std::deque<size_t>& slots = at->second.slots;
  if (const auto mine = std::find(slots.begin(), slots.end(), slot); mine != slots.end()) slots.erase(mine);
  if (slots.empty()) refused.erase(at);
}

}  // namespace

void Simulation::arrive(size_t workload) {
  happened_ = now_;
  const api::Object& object = workloads_[workload].manifest.object;
  if (const auto* node = std::get_if<api::Node>(&object)) return add_node(*node);
  if (const auto* name_space = std::get_if<api::Namespace>(&object)) {
    outbox_.emplace_back(bridge::to_event(*name_space));
    return;
  }
  if (is_limit(object)) return put_limit(object);
  if (!admit_object(workload)) return;
  if (is_storage(object)) return storage_.put(object);
  if (is_queueing(object)) return queues_.put(object);
  if (const auto* budget = std::get_if<api::PodDisruptionBudget>(&object)) return budgets_.put(*budget);
  if (const auto* pod = std::get_if<api::Pod>(&object)) return adopt(*pod);
  expand(workload);
}

void Simulation::add_node(const api::Node& node) {
  nodes_.insert_or_assign(node.metadata.name, node);
  agent_.put(node);
  outbox_.emplace_back(engine::NodeUpserted{bridge::to_model(node, bridge::DeviceKnowledge::kExact)});
  adopt_change(node);
  for (SimPod& pod : pods_)  // bound to it by their manifests before it was there
    if (pod.stage == Stage::kRunning && pod.object.spec.node_name == node.metadata.name) account(pod, true);
  for (size_t i = 0; i < workloads_.size(); ++i)
    if (std::holds_alternative<api::DaemonSet>(workloads_[i].manifest.object) && workloads_[i].active > 0)
      add_daemons(i, std::span(&node, 1));
}

// Gives the workload an identity and makes its first pods.
void Simulation::expand(size_t workload) {
  Workload& record = workloads_[workload];
  const workloads::KindInfo* kind = workloads::find_kind(record.manifest.object);
  if (kind == nullptr) {
    wait_in_queue(workload);
    return;
  }
  if (record.manifest.stored == nullptr)
    std::visit([&](auto& o) { o.metadata.uid = fmt::format("{}-{}", kind->kind, workload); }, record.manifest.object);
  if (std::holds_alternative<api::DaemonSet>(record.manifest.object)) {
    record.active = 1;
    std::vector<api::Node> nodes;
    for (const auto& [name, node] : nodes_) nodes.push_back(node);
    return add_daemons(workload, nodes);
  }
  if (wait_in_queue(workload)) return;
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job != nullptr) record.ended = job->succeeded;
  record.released = now_;
  if (const auto deadline = deadline_of(record)) schedule(now_, *deadline - now_, DueKind::kJobDeadline, workload);
  if (const auto* statefulset = std::get_if<api::StatefulSet>(&record.manifest.object)) {
    for (const api::PersistentVolumeClaim& claim : workloads::statefulset_claims(*statefulset)) storage_.add(claim);
    storage_.reconcile();
  }
  int32_t index = record.ended;
  for (api::Pod& pod : kind->expand(record.manifest.object, {})) add_made_pod(std::move(pod), workload, index++);
  workloads_[workload].next_index = index;
}

void Simulation::add_daemons(size_t workload, std::span<const api::Node> nodes) {
  const auto& daemonset = std::get<api::DaemonSet>(workloads_[workload].manifest.object);
  for (api::Pod& pod : workloads::daemonset_pods(daemonset, nodes)) add_made_pod(std::move(pod), workload, 0);
}

bool Simulation::name_is_taken(const api::Pod& pod, size_t workload) const {
  const auto known = by_name_.find(pod_name(pod));
  const bool of_another = known != by_name_.end() && pods_[known->second].workload != workload;
  return of_another || names_.reserved(pod.metadata.namespace_name, pod.metadata.name);
}

// The same for a pod that is named as its workload likes: with another name where its own is taken.
void Simulation::add_made_pod(api::Pod pod, size_t workload, int32_t index) {
  const api::Object& maker = workloads_[workload].manifest.object;
  if (!std::holds_alternative<api::StatefulSet>(maker)) {
    std::string kind = fmt::format("-{}", api::kind_of(maker));
    std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return std::tolower(c); });
    while (name_is_taken(pod, workload)) pod.metadata.name += kind;
  }
  add_pod(std::move(pod), workload, index, 1);
}

void Simulation::add_pod(api::Pod pod, size_t workload, int32_t index, int32_t attempt, size_t group) {
  if (++made_pods_ > kSimulatedPodsMax) return;
  const bool stored = is_stored(pod);
  const uint64_t number = sequence_++;
  if (pod.metadata.name.empty()) {
    pod.metadata.name = fmt::format("{}{}", pod.metadata.generate_name, number);
    while (name_is_taken(pod, SIZE_MAX)) pod.metadata.name += "x";
  }
  pod.metadata.uid = fmt::format("{}/{}/{}", pod.metadata.namespace_name, pod.metadata.name, number);
  pod.metadata.created = now_ + Duration{static_cast<int64_t>(number)};
  SimPod record;
  record.workload = workload;
  record.index = index;
  record.attempt = attempt;
  record.group = group;
  record.submitted = now_;
  record.object = std::move(pod);
  const size_t slot = pods_.size();
  by_uid_[record.object.metadata.uid] = slot;
  by_name_[pod_name(record.object)] = slot;
  if (workload != SIZE_MAX && !std::holds_alternative<api::DaemonSet>(workloads_[workload].manifest.object))
    ++workloads_[workload].active;
  pods_.push_back(std::move(record));
  if (stored || admit_pod(slot)) begin_pod(slot);
}

void Simulation::begin_pod(size_t slot) {
  SimPod& added = pods_[slot];
  const model::ResourceList requests = api::effective_requests(added.object);
  added.gpus = count_gpus(requests);
  shares_gpus_ |= bridge::gpu_share_of(added.object.metadata, requests).asked();
  if (added.group != SIZE_MAX) join_group(added);
  if (added.object.terminal()) {
    added.stage = Stage::kEnded;
    added.reason = added.object.status.phase;
    if (added.workload != SIZE_MAX) --workloads_[added.workload].active;
    return;
  }
  if (!added.object.spec.node_name.empty()) {
    added.reason = "Bound";
    storage_.make_claims(added.object);
    start(added, added.object.spec.node_name);
    if (added.object.metadata.deleted) await_end_of_grace(slot);
    return;
  }
  storage_.make_claims(added.object);
  wait_in_queue(added);
  tell_pod(added);
}

std::optional<Time> deadline_of(const SimObject& record) {
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  if (job == nullptr || !job->active_deadline_s) return std::nullopt;
  constexpr int64_t kLater = kSimulatedDurationMax.nanos / 1'000'000'000 + 1;
  return record.released + Duration::seconds(std::min(*job->active_deadline_s, kLater));
}

bool gives_up(const SimObject& record) {
  const auto* job = std::get_if<api::Job>(&record.manifest.object);
  return job != nullptr && record.failed > workloads::backoff_limit(*job);
}

// A pod of a Job has ended: the job starts as many as its parallelism and completions allow now.
void Simulation::next_job_pods(size_t workload) {
  const auto* job = std::get_if<api::Job>(&workloads_[workload].manifest.object);
  if (job == nullptr || workloads_[workload].stopped) return;
  if (queues_.knows({workload, SIZE_MAX}) && !workloads_[workload].before_admission) return;  // it waits
  // Pods that share their work: once one has succeeded, no more are created.
  if (const auto refused = refused_pods_.find(workload);
      refused != refused_pods_.end() && workloads::wanted_active(*job, 0, workloads_[workload].ended) == 0)
    for (const size_t slot : std::deque<size_t>(refused->second.slots)) remove(slot);
  drop_surplus_pods(workload, *job);
  const int32_t total = workloads::total_pods(*job);
  while (workloads_[workload].next_index < total) {
    const Workload& record = workloads_[workload];
    if (record.active >= workloads::wanted_active(*job, record.active, record.ended)) return;
    const int32_t index = workloads_[workload].next_index++;
    add_made_pod(workloads::job_pod(*job, index), workload, index);
  }
}

// A pod that was leaving, and had been replaced, has succeeded after all: those that wait are removed first.
void Simulation::drop_surplus_pods(size_t workload, const api::Job& job) {
  const auto are_too_many = [&](int32_t pods) {
    return pods > workloads::wanted_active(job, pods, workloads_[workload].ended);
  };
  if (!are_too_many(workloads_[workload].active)) return;
  std::vector<size_t> waiting, running;
  for (size_t i = 0; i < pods_.size(); ++i)
    if (pods_[i].workload == workload && pods_[i].stage != Stage::kEnded && !pods_[i].object.metadata.deleted)
      (pods_[i].stage == Stage::kRunning ? running : waiting).push_back(i);
  for (auto alive = static_cast<int32_t>(waiting.size() + running.size()); are_too_many(alive); --alive) {
    std::vector<size_t>& from = waiting.empty() ? running : waiting;
    if (waiting.empty()) delete_gracefully(from.back());
    else remove(from.back());
    from.pop_back();
  }
}

// The job has failed: its pods end, whether they ran or waited.
void Simulation::stop_job(size_t workload, const std::string& reason) {
  workloads_[workload].stopped = true;
  const size_t count = pods_.size();
  for (size_t i = 0; i < count; ++i) {
    if (pods_[i].workload != workload || pods_[i].stage == Stage::kEnded) continue;
    if (pods_[i].stage == Stage::kRunning) end(i, "Failed", reason, false);
    else {
      pods_[i].reason = reason;
      remove(i);
    }
  }
  follow_job(workload);
}

bool Simulation::keeps_name(const SimPod& pod) const {
  return pod.workload != SIZE_MAX && std::holds_alternative<api::StatefulSet>(workloads_[pod.workload].manifest.object);
}

// A pod leaves for another, gracefully. Its workload makes a new one at once; a StatefulSet, when the name is free.
void Simulation::evict(size_t index, const std::string& preemptor_uid) {
  SimPod& pod = pods_[index];
  pod.preempted = true;
  pods_[by_uid_.at(preemptor_uid)].evicted.push_back(index);
  if (pod.object.metadata.deleted || pod.stage == Stage::kEnded) return;
  if (pod.stage == Stage::kWaiting) remove(index);
  else delete_gracefully(index);
  if (!keeps_name(pod)) replace_pod(index);
}

void Simulation::update_budgets() {
  if (budgets_.empty()) return;
  budgets_.begin();
  for (const SimPod& pod : pods_)
    if (pod.stage != Stage::kEnded && pod.stage != Stage::kRefused)
      budgets_.count(pod.object.metadata.namespace_name, pod.object.metadata.labels,
                     pod.stage == Stage::kRunning && !pod.object.metadata.deleted);
  budgets_.end();
}

// What the pod's workload does when it failed or vanished: another one in its place, of the same index.
void Simulation::replace_pod(size_t pod) {
  const SimPod old = pods_[pod];
  if (old.workload == SIZE_MAX || workloads_[old.workload].stopped) return;
  if (const auto* job = std::get_if<api::Job>(&workloads_[old.workload].manifest.object);
      job != nullptr && job->suspend)
    return;
  if (std::holds_alternative<api::DaemonSet>(workloads_[old.workload].manifest.object)) {
    const auto node = nodes_.find(old.object.spec.node_name);
    if (node != nodes_.end()) add_daemons(old.workload, std::span(&node->second, 1));
    return;
  }
  api::Pod next = old.before_admission ? *old.before_admission : old.object;
  next.status = {};
  next.metadata.uid.clear();
  next.metadata.deleted.reset();
  next.metadata.deletion_grace_s.reset();
  next.spec.node_name.clear();
  if (!old.gpu_devices.numbers.empty()) next.metadata.annotations.erase(bridge::kGpuDevicesAnnotation);
  std::string& name = next.metadata.name;
  if (old.attempt > 1) name.resize(name.size() - fmt::format("-r{}", old.attempt).size());
  if (!keeps_name(old)) name += fmt::format("-r{}", old.attempt + 1);
  add_pod(std::move(next), old.workload, old.index, keeps_name(old) ? 1 : old.attempt + 1);
}

void Simulation::tell_pod(const SimPod& pod) {
  outbox_.emplace_back(engine::PodUpserted{bridge::to_model(pod.object, {}, options_.topology_levels)});
}

void Simulation::start(SimPod& pod, const std::string& node) {
  pod.object.spec.node_name = node;
  if (std::string devices = bridge::gpu_devices_text(pod.gpu_devices); !devices.empty())
    pod.object.metadata.annotations.set(std::string(bridge::kGpuDevicesAnnotation), std::move(devices));
  pod.object.status.phase = "Running";
  pod.stage = Stage::kRunning;
  ++placed_pods_;
  pod.started = happened_ = now_;
  if (pod.reason != "Bound") pod.reason = "Scheduled";
  account(pod, true);
  await_readiness(pod);
  tell_pod(pod);
  const auto runtime = simulated(pod.object, kSimulatedRuntime);
  const int64_t limit_s = pod.object.spec.active_deadline_s.value_or(INT64_MAX);
  const bool limited = limit_s <= kSimulatedDurationMax.nanos / 1'000'000'000;
  if (!runtime && !limited) return;
  const Duration limit = limited ? Duration::seconds(limit_s) : kSimulatedDurationMax;
  schedule(now_, std::min(runtime.value_or(limit), limit), DueKind::kPodEnds, by_uid_.at(pod.object.metadata.uid));
}

void Simulation::account(SimPod& pod, bool running) {
  if (running == pod.counts_gpus || (running && !nodes_.contains(pod.object.spec.node_name))) return;
  pod.counts_gpus = running;
  const int sign = running ? 1 : -1;
  gpus_running_.gpus += sign * pod.gpus.gpus;
  gpus_running_.mig_instances += sign * pod.gpus.mig_instances;
  note_gpus_in_use(gpus_running_);
  const std::string& node = pod.object.spec.node_name;
  if (!running) {
    if (agent_.end(node, pod_name(pod.object))) tell_devices(node);
    return;
  }
  const std::vector<std::string> given = bridge::gpu_devices_of(pod.object.metadata);
  const bool set_apart = pod.reason != "Bound" && agent_.set_apart(node, pod_name(pod.object));
  if ((pod.gpus.gpus + pod.gpus.mig_instances == 0 && given.empty()) || !agent_.knows(node)) {
    if (set_apart) tell_devices(node);
    return;
  }
  agent_.start(node, pod_name(pod.object), api::effective_requests(pod.object), given);
  tell_devices(node);
}

void Simulation::end(size_t index, const std::string& phase, const std::string& reason, bool replace) {
  SimPod& pod = pods_[index];
  check(pod.stage == Stage::kRunning, "only a running pod ends");
  account(pod, false);
  recount(pod.object, false);
  set_ready(pod, false);
  pod.stage = Stage::kEnded;
  pod.finished = happened_ = now_;
  pod.object.status.phase = phase;
  recount(pod.object, true);
  pod.object.status.reason = reason;
  tell_pod(pod);
  follow_group(pod);
  if (pod.workload == SIZE_MAX) return;
  Workload& workload = workloads_[pod.workload];
  if (!std::holds_alternative<api::DaemonSet>(workload.manifest.object)) --workload.active;
  // The controller learns of the failure after the scheduler, from the same stream of pods.
  deliver();
  if (replace) {
    ++workload.failed;
    return gives_up(workload) ? stop_job(pod.workload, kBackoffLimitExceeded) : replace_pod(index);
  }
  ++workload.ended;
  ++ended_pods_;
  next_job_pods(pod.workload);
  follow_job(pod.workload);
}

// The pod's object is gone from the API server.
void Simulation::remove(size_t index) {
  SimPod& pod = pods_[index];
  if (pod.stage == Stage::kEnded) return;
  happened_ = now_;
  if (pod.workload != SIZE_MAX && !std::holds_alternative<api::DaemonSet>(workloads_[pod.workload].manifest.object))
    --workloads_[pod.workload].active;
  if (pod.stage == Stage::kRefused) {
    pod.stage = Stage::kEnded;
    if (pod.reason.empty()) pod.reason = kFailedCreate;
    return forget_refused_pod(refused_pods_, pod.workload, index);
  }
  account(pod, false);
  recount(pod.object, false);
  set_ready(pod, false);
  if (pod.stage == Stage::kRunning) pod.finished = now_;
  pod.stage = Stage::kEnded;
  if (pod.object.status.phase == "Running") pod.object.status.reason = "Deleted";
  outbox_.emplace_back(engine::PodDeleted{pod.object.metadata.uid});
  follow_group(pod);
  storage_.forget_claims(pod.object);
}

}  // namespace berth::scenario
