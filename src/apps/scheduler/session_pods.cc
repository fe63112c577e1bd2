// Session's part for pods: what their watch brings, and what those that wait are told.
#include "apps/scheduler/session.h"

namespace berth::apps {

// A pod as it is now, listed or changed. An annotation that cannot be meant is said once (repetitions join the event's
// series), and scheduling goes on without it. Of nominations the watch may show what was before our own latest word.
void Session::take_in(SeenPod& seen) {
  model::Pod& pod = seen.pod;
  if (!seen.problem.empty())
    events_->record({.regarding = {.name_space = pod.namespace_name, .name = pod.name, .uid = pod.uid},
                     .type = "Warning",
                     .reason = "InvalidAnnotation",
                     .action = "Scheduling",
                     .note = seen.problem});
  if (!pod.ours || !pod.node_name.empty()) {
    told_.erase(pod.uid);
    return;
  }
  if (seen.scheduler_name != config_.scheduler_names.front()) other_schedulers_[pod.uid] = seen.scheduler_name;
  if (const auto told = told_.find(pod.uid); told != told_.end()) {
    if (told->second.nominated_by_us) pod.nominated_node = told->second.nominated_node;
    else told->second.nominated_node = pod.nominated_node;
  } else if (!pod.nominated_node.empty()) {
    told_[pod.uid].nominated_node = pod.nominated_node;
  }
  if (budgets_refused_ && pod.preempts) {
    pod.preempts = false;
    held_back_.insert(pod.uid);
  }
}

void Session::list_pods(kube::ListReplaced<SeenPod>& list) {
  doubtful_ = doubtful_ || list.went_back;
  set_aside_.clear("Pod");
  const auto before = std::exchange(told_, {});
  other_schedulers_.clear();
  held_back_.clear();
  engine::PodsReplaced pods;
  for (SeenPod& seen : list.objects) {
    if (const auto told = before.find(seen.pod.uid); told != before.end() && told->second.nominated_by_us)
      told_[seen.pod.uid] = {"", told->second.nominated_node, true};
    take_in(seen);
    if (!seen.told.empty() && seen.pod.node_name.empty()) told_[seen.pod.uid].message = std::move(seen.told);
    pods.pods.push_back(std::move(seen.pod));
  }
  engine_.apply(pods);
  pods_listed_ = true;
}

void Session::handle(PodUpdates& updates) {
  for (auto& update : updates) {
    if (auto* list = std::get_if<kube::ListReplaced<SeenPod>>(&update)) {
      list_pods(*list);
    } else if (auto* upserted = std::get_if<kube::Upserted<SeenPod>>(&update)) {
      set_aside_.remove("Pod", upserted->object.pod.namespace_name, upserted->object.pod.name);
      take_in(upserted->object);
      engine_.apply(engine::PodUpserted{std::move(upserted->object.pod)});
    } else if (auto* deleted = std::get_if<kube::Deleted<SeenPod>>(&update)) {
      set_aside_.remove("Pod", deleted->object.pod.namespace_name, deleted->object.pod.name);
      forget_pod(deleted->object.pod.uid);
    } else if (auto* malformed = std::get_if<kube::Malformed>(&update)) {
      if (!malformed->deleted) {
        quarantine("Pod", *malformed);
        continue;
      }
      set_aside_.remove("Pod", malformed->name_space, malformed->name);
      forget_pod(malformed->uid);
    }
  }
}

void Session::forget_pod(const std::string& uid) {
  told_.erase(uid);
  other_schedulers_.erase(uid);
  held_back_.erase(uid);
  evictor_->withdraw(uid);
  engine_.apply(engine::PodDeleted{uid});
}

// The verdict, and the node that the pod is nominated for: each is written when it is new.
void Session::tell_waiting(const engine::Decision& decision) {
  options_.metrics->attempt("unschedulable", Duration{0});
  Told& told = told_[decision.pod_uid];
  const std::string nominated = decision.kind == engine::DecisionKind::kNominate ? decision.node_name : "";
  const bool first = told.message.empty();
  const bool new_text = told.message != *decision.message;
  const bool new_node = told.nominated_node != nominated;
  told.nominated_by_us |= new_node || !nominated.empty();
  if (!new_text && !new_node) return;
  told.message = *decision.message;
  told.nominated_node = nominated;
  const engine::PodSlot slot = engine_.state().find_pod(decision.pod_uid);
  statuses_->write({.namespace_name = decision.namespace_name,
                    .pod_name = decision.pod_name,
                    .uid = decision.pod_uid,
                    .message = decision.message,
                    .generation = slot.valid() ? engine_.state().pod(slot).pod.generation : 0,
                    .first = first,
                    .nominated_node = new_node ? std::optional(nominated) : std::nullopt});
  if (!new_text) return;
  events_->record(
      {.regarding = {.name_space = decision.namespace_name, .name = decision.pod_name, .uid = decision.pod_uid},
       .type = "Warning",
       .reason = "FailedScheduling",
       .action = "Scheduling",
       .note = *decision.message});
}

}  // namespace berth::apps
