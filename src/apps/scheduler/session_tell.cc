// Session's part for what pods are told: why they wait, and what went wrong when they had a place.
#include "apps/scheduler/log.h"
#include "apps/scheduler/session.h"
#include "engine/queued_workloads.h"

namespace berth::apps {
namespace {

constexpr size_t kRemindersMax = 200;  // a second: an event for each
constexpr Duration kHeldBackFor = Duration::seconds(5), kLookEvery = Duration::seconds(5);

kube::EventNote failed_scheduling(const std::string& name_space, const std::string& name, const std::string& uid,
                                  const std::string& text) {
  return {.regarding = {.name_space = name_space, .name = name, .uid = uid},
          .type = "Warning",
          .reason = "FailedScheduling",
          .action = "Scheduling",
          .note = text};
}

// Has those told of which no cycle says anything, since their workload is not to have them (now). One that has just
// come is given a moment. `tell`: true where that was news, of which there are a bounded number each time.
template <typename Tell>
void tell_held_back(const engine::Engine& engine, Time wall, const Tell& tell) {
  size_t news = 0;
  for (const engine::PodSlot slot : engine.state().pods()) {
    const engine::PodState& state = engine.state().pod(slot);
    const model::Pod& pod = state.pod;
    const bool waits = state.phase == engine::PodPhase::kNotQueued && pod.node_name.empty() && pod.ours && !pod.gated;
    if (!waits || pod.terminating || pod.stand_in || pod.created + kHeldBackFor > wall) continue;
    if (!engine.workloads().holds_back(pod)) continue;
    engine::Decision decision;
    decision.kind = engine::DecisionKind::kUnschedulable;
    decision.pod_uid = pod.uid;
    decision.namespace_name = pod.namespace_name;
    decision.pod_name = pod.name;
    decision.message = std::make_shared<const std::string>(engine.workloads().why_held_back(pod));
    if (tell(decision) && ++news == kRemindersMax) return;
  }
}

}  // namespace

// The verdict, and the node that the pod is nominated for: each is written when it is new. True: the verdict is.
bool Session::tell_waiting(const engine::Decision& decision) {
  const std::string& uid = decision.pod_uid;
  const std::string nominated = decision.kind == engine::DecisionKind::kNominate ? decision.node_name : "";
  const auto known = nominations_.find(uid);
  const bool new_node = (known == nominations_.end() ? "" : known->second.node) != nominated;
  if (new_node || !nominated.empty()) nominations_[uid] = {nominated, true};
  const Told::News news = told_.tell(uid, decision.message, clock_.monotonic());
  if (!news.is_new && !new_node) return false;
  write_condition(decision, "Unschedulable", decision.message, news.first,
                  new_node ? std::optional(nominated) : std::nullopt);
  if (!news.is_new) return false;
  options_.metrics->outcome("unschedulable");
  events_->record(failed_scheduling(decision.namespace_name, decision.pod_name, uid, *decision.message));
  return true;
}

// A pod that had a place did not get it. Each time counts: repetitions join the event's series.
void Session::tell_error(const engine::Decision& decision, const std::string& text) {
  events_->record(failed_scheduling(decision.namespace_name, decision.pod_name, decision.pod_uid, text));
  const auto message = std::make_shared<const std::string>(text);
  const Told::News news = told_.tell(decision.pod_uid, message, clock_.monotonic());
  if (news.is_new) write_condition(decision, "SchedulerError", message, news.first, std::nullopt);
}

void Session::write_condition(const engine::Decision& decision, const char* reason, const Told::Text& message,
                              bool first, std::optional<std::string> nominated_node) {
  const engine::PodSlot slot = engine_.state().find_pod(decision.pod_uid);
  const int64_t generation = slot.valid() ? engine_.state().pod(slot).pod.generation : 0;
  statuses_->write({decision.namespace_name, decision.pod_name, decision.pod_uid, message, generation, first,
                    std::string(reason), std::move(nominated_node)});
}

// The server forgets events; who still waits is told the same again.
void Session::remind(Time now) {
  if (!deciding_ || events_->stats().queued > kRemindersMax) return;
  if (now - held_back_at_ >= kLookEvery) {
    held_back_at_ = now;
    tell_held_back(engine_, clock_.wall(), [&](const engine::Decision& held) { return tell_waiting(held); });
  }
  for (const auto& [uid, text] : told_.due(now, kRemindersMax)) {
    const engine::PodSlot slot = engine_.state().find_pod(uid);
    if (!slot.valid()) {
      told_.forget(uid);
      continue;
    }
    const engine::PodState& pod = engine_.state().pod(slot);
    if (pod.phase != engine::PodPhase::kPending && pod.phase != engine::PodPhase::kNominated) continue;
    events_->record(failed_scheduling(pod.pod.namespace_name, pod.pod.name, uid, *text));
  }
}

// Notes when the last gate of a pod falls: what it waited before was not for Berth.
void Session::look_at_gate(const model::Pod& pod) {
  if (!pod.ours || pod.gated || !pod.node_name.empty()) return;
  const engine::PodSlot slot = engine_.state().find_pod(pod.uid);
  if (slot.valid() && engine_.state().pod(slot).pod.gated) gate_fell_[pod.uid] = clock_.wall();
}

// For how long a pod that is bound now could have been scheduled.
Duration Session::waited(const model::Pod& pod) {
  Time since = pod.created;
  if (const auto at = gate_fell_.find(pod.uid); at != gate_fell_.end()) {
    since = at->second;
    gate_fell_.erase(at);
  }
  return std::max(clock_.wall() - since, Duration{0});
}

}  // namespace berth::apps
