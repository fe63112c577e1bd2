// Session's part for pods: what their watch brings.
#include "apps/scheduler/session.h"

namespace berth::apps {

// A pod as it is now, listed or changed. An annotation that cannot be meant is said once (repetitions join the event's
// series), and scheduling goes on without it; so is that it reaches for GPUs, when it comes. Of nominations the watch
// may show what was before our own latest word.
void Session::take_in(SeenPod& seen) {
  model::Pod& pod = seen.pod;
  const bool is_new = !engine_.state().find_pod(pod.uid).valid();
  if (!seen.problem.empty())
    events_->record({.regarding = {.name_space = pod.namespace_name, .name = pod.name, .uid = pod.uid},
                     .type = "Warning",
                     .reason = "InvalidAnnotation",
                     .action = "Scheduling",
                     .note = seen.problem});
  if (!seen.reaches.empty() && is_new)
    events_->record({.regarding = {.name_space = pod.namespace_name, .name = pod.name, .uid = pod.uid},
                     .type = "Warning",
                     .reason = "UnrequestedGpus",
                     .action = "Scheduling",
                     .note = seen.reaches});
  look_at_gate(pod);
  if (seen.gates.empty()) queues_->topology_gates().gone(pod.uid);
  else queues_->topology_gates().see({pod.namespace_name, pod.name, pod.uid, seen.resource_version, seen.gates});
  if (!pod.node_name.empty()) told_.forget(pod.uid);
  if (!pod.ours || !pod.node_name.empty()) {
    nominations_.erase(pod.uid);
    return;
  }
  if (pod.of_job) pod.awaits_owner = queues_->awaits_job(pod.owner_uid, is_new, clock_.monotonic());
  if (seen.scheduler_name != config_.scheduler_names.front()) other_schedulers_[pod.uid] = seen.scheduler_name;
  if (const auto at = nominations_.find(pod.uid); at != nominations_.end()) {
    if (at->second.by_us) pod.nominated_node = at->second.node;
    else at->second.node = pod.nominated_node;
  } else if (!pod.nominated_node.empty()) {
    nominations_[pod.uid] = {pod.nominated_node, false};
  }
  if (budgets_refused_ && pod.preempts) {
    pod.preempts = false;
    held_back_.insert(pod.uid);
  }
}

// A list: what it does not name no longer exists. What it names but cannot be understood stands beside it in the batch.
void Session::list_pods(kube::ListReplaced<SeenPod>& list, const PodUpdates& batch) {
  doubtful_ = doubtful_ || list.went_back;
  set_aside_.clear("Pod");
  const auto before = std::exchange(nominations_, {});
  other_schedulers_.clear();
  held_back_.clear();
  engine::PodsReplaced pods;
  std::vector<std::pair<std::string, std::string>> told;
  for (SeenPod& seen : list.objects) {
    if (const auto at = before.find(seen.pod.uid); at != before.end() && at->second.by_us)
      nominations_[seen.pod.uid] = at->second;
    take_in(seen);
    if (!seen.told.empty() && seen.pod.node_name.empty()) told.emplace_back(seen.pod.uid, std::move(seen.told));
    pods.pods.push_back(std::move(seen.pod));
  }
  for (const auto& each : batch)
    if (const auto* malformed = std::get_if<kube::Malformed>(&each))
      if (std::optional<model::Pod> known = known_of(*malformed)) pods.pods.push_back(std::move(*known));
  told_.replace_all(told, clock_.monotonic());
  engine_.apply(std::move(pods));
  pods_listed_ = true;
}

void Session::handle(PodUpdates& updates) {
  std::vector<ClosedNodes::PodName> opening;  // pods that a list no longer has, or has in order
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenPod>>(&update)) {
      opening = closed_.pods();
      list_pods(*list, updates);
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenPod>>(&update)) {
      const model::Pod& pod = upserted->object.pod;
      set_aside_.remove("Pod", pod.namespace_name, pod.name);
      open_node_of(pod.namespace_name, pod.name);
      take_in(upserted->object);
      engine_.apply(engine::PodUpserted{std::move(upserted->object.pod)});
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenPod>>(&update)) {
      const model::Pod& pod = deleted->object.pod;
      set_aside_.remove("Pod", pod.namespace_name, pod.name);
      open_node_of(pod.namespace_name, pod.name);
      forget_pod(pod.uid);
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      std::erase(opening, ClosedNodes::PodName{malformed->name_space, malformed->name});
      handle_malformed_pod(*malformed);
    }
  }
  for (const auto& [name_space, name] : opening) open_node_of(name_space, name);
}

void Session::forget_pod(const std::string& uid) {
  told_.forget(uid);
  nominations_.erase(uid);
  gate_fell_.erase(uid);
  other_schedulers_.erase(uid);
  held_back_.erase(uid);
  queues_->topology_gates().gone(uid);
  evictor_->withdraw(uid);
  engine_.apply(engine::PodDeleted{uid});
}

}  // namespace berth::apps
