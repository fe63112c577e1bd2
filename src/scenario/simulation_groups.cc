// The part of Simulation that has plain pods wait in queues: by themselves, or in groups that are let in together.
#include <algorithm>

#include "api/kueue_names.h"
#include "scenario/simulation.h"
#include "workloads/kueue/pod_group.h"
#include "workloads/kueue/queued.h"

namespace berth::scenario {

// A pod that names a queue keeps a gate until it is admitted: by itself, or with its group once that is all there. One
// that comes to a group which has been let in follows it at once.
void Simulation::wait_in_queue(SimPod& pod) {
  api::Pod& object = pod.object;
  if (!queues_.serves() || pod.group != SIZE_MAX || workloads::queue_of(object.metadata).empty() ||
      object.metadata.annotation(api::kWorkloadAnnotation) != nullptr || !object.spec.node_name.empty())
    return;
  if (!workloads::waits_for_admission(object)) object.spec.scheduling_gates.emplace_back(api::kAdmissionGate);
  const std::string name = object.metadata.namespace_name + "/" + workloads::workload_name_of(object);
  const auto [at, fresh] = groups_.by_name.try_emplace(name, groups_.all.size());
  if (!fresh && groups_.all[at->second].ended) at->second = groups_.all.size();
  if (at->second == groups_.all.size()) groups_.all.emplace_back();
  pod.group = at->second;
  PodGroup& group = groups_.all[pod.group];
  group.pods.push_back(by_uid_.at(object.metadata.uid));
  name_members(pod.group);
  if (!group.infos.empty()) return let_in(group);
  if (group.workload) return;
  std::vector<const api::Pod*> pods;
  for (const size_t index : group.pods)
    if (pods_[index].stage != Stage::kEnded) pods.push_back(&pods_[index].object);
  workloads::ComposedGroup made = workloads::compose_group(pods);
  group.trouble = std::move(made.trouble);
  group.workload = std::move(made.workload);
  if (!group.workload) return;
  const bool alone = workloads::group_of(object.metadata).empty();
  queues_.submit(*group.workload, {SIZE_MAX, pod.group}, {alone ? "Pod" : "Pod group", alone ? pod_name(object) : name},
                 *object.metadata.created, options_.topology_levels);
  name_members(pod.group);
}

// Tells who of a group that its queue knows is there. One that waits and has lost pods is not let in before others are
// there in their place.
void Simulation::name_members(size_t number) {
  PodGroup& group = groups_.all[number];
  const QueueController::Owner owner{SIZE_MAX, number};
  if (!group.workload || group.ended || group.pods.size() < 2 || !queues_.knows(owner)) return;
  std::vector<const api::Pod*> there, pods;  // all, and those that are to run
  for (const size_t index : group.pods) {
    const SimPod& pod = pods_[index];
    if (pod.stage != Stage::kEnded || pod.object.terminal()) there.push_back(&pod.object);
    if (pod.stage != Stage::kEnded && !pod.object.metadata.deleted) pods.push_back(&pod.object);
  }
  queues_.name_members(owner, *group.workload, workloads::told_apart(pods, *group.workload), options_.topology_levels);
  if (group.infos.empty()) queues_.refuse(owner, workloads::lacking_pods(there, *group.workload));
}

// A pod of a group that its queue knew already: what has been let in is waited for no more.
void Simulation::join_group(SimPod& pod) {
  PodGroup& group = groups_.all[pod.group];
  group.pods.push_back(by_uid_.at(pod.object.metadata.uid));
  name_members(pod.group);
  if (!group.infos.empty()) let_in(group);
}

// The group has been admitted.
void Simulation::let_in(const QueueController::Admitted& given) {
  PodGroup& group = groups_.all[given.owner.group];
  group.infos = given.infos;
  let_in(group);
}

// Takes the gate off pods of a group that has been admitted, with what its flavors add: as many as were admitted, of
// which those that have ended well go on counting. The others are told why they wait.
void Simulation::let_in(PodGroup& group) {
  group.trouble.clear();
  for (const size_t index : group.pods) {
    SimPod& pod = pods_[index];
    if (pod.stage != Stage::kWaiting || !workloads::waits_for_admission(pod.object)) continue;
    const auto place = std::ranges::find_if(group.workload->pod_sets, [&](const api::WorkloadPodSet& set) {
      if (!workloads::is_of_set(pod.object, *group.workload, set)) return false;
      const auto counts = [&](size_t one) {
        const SimPod& other = pods_[one];
        return !workloads::waits_for_admission(other.object) &&
               (other.stage != Stage::kEnded || other.object.status.phase == "Succeeded") &&
               workloads::is_of_set(other.object, *group.workload, set);
      };
      return std::ranges::count_if(group.pods, counts) < set.count;
    });
    if (place == group.workload->pod_sets.end()) {
      group.trouble = workloads::why_outside(pod.object, *group.workload);
      continue;
    }
    pod.before_admission = std::make_shared<const api::Pod>(pod.object);
    std::erase(pod.object.spec.scheduling_gates, api::kAdmissionGate);
    workloads::inject(group.infos[static_cast<size_t>(place - group.workload->pod_sets.begin())], pod.object.metadata,
                      pod.object.spec);
    tell_pod(pod);
  }
}

// A pod has ended, or is gone: its workload needs fewer, or has finished. Who is lost without a trace leaves none
// behind, as where the garbage collector takes it.
void Simulation::follow_group(const SimPod& pod) {
  if (pod.group == SIZE_MAX) return;
  const QueueController::Owner owner{SIZE_MAX, pod.group};
  PodGroup& group = groups_.all[pod.group];
  if (group.ended || !group.workload || !queues_.knows(owner)) return;
  std::vector<const api::Pod*> left;
  for (const size_t index : group.pods)
    if (pods_[index].stage != Stage::kEnded || pods_[index].object.terminal()) left.push_back(&pods_[index].object);
  int32_t total = 0;
  std::vector<int32_t> succeeded;
  for (const api::WorkloadPodSet& set : group.workload->pod_sets) {
    total += set.count;
    succeeded.push_back(static_cast<int32_t>(std::ranges::count_if(left, [&](const api::Pod* one) {
      return one->status.phase == "Succeeded" && workloads::is_of_set(*one, *group.workload, set);
    })));
  }
  group.ended = left.empty() || !workloads::end_of_group(left, total).reason.empty();
  if (group.ended) queues_.finish(owner, now_);
  else queues_.reclaim(owner, succeeded);
  if (group.ended) return;
  if (!group.infos.empty()) let_in(group);
  else name_members(pod.group);
}

}  // namespace berth::scenario
