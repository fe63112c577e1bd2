// The part of Engine that knows of workloads: what the API server says of them and their queues, and their pods.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/engine.h"
#include "engine/queued_workloads.h"

namespace berth::engine {

namespace {

quota::AdmissionOptions admission_options(const EngineOptions& options, const PolicySet& policies) {
  quota::AdmissionOptions out = options.admission;
  out.gpu_prices = policies.nodes.gpu_prices;
  out.reservations = options.reservations;
  return out;
}

}  // namespace

Engine::Engine(PolicySet policies, EngineOptions options)
    : policies_(std::move(policies)),
      options_(std::move(options)),
      workloads_(std::make_unique<QueuedWorkloads>(
          PlacementContext{state_, policies_, failure_sets_, queue_, rules_, nominees_, kept_gpus_},
          admission_options(options_, policies_),
          PodTimes{[this](PodSlot pod) { return expected_end(pod); },
                   [this](PodSlot pod) { return now_ - began(state_.pod(pod)); }})) {}

Engine::~Engine() = default;

const quota::Admission& Engine::admission() const { return workloads_->admission(); }

void Engine::on(QueueObjectUpserted&& event) {
  std::visit([&](auto& object) { workloads_->configure().upsert(std::move(object)); }, event.object);
}
void Engine::on(const QueueObjectDeleted& event) {
  std::visit([&](const auto& object) { workloads_->configure().remove(object); }, event.object);
}
void Engine::on(WorkloadUpserted&& event) { workloads_->upsert(std::move(event.workload)); }
void Engine::on(WorkloadAdmitted&& event) {
  const std::string name = event.workload.full_name();
  workloads_->restore(std::move(event));
  if (const std::set<std::string>* pods = workloads_->pods_of(name)) arrivals_.insert(pods->begin(), pods->end());
}
void Engine::on(const WorkloadEnded& event) { workloads_->end(event.uid, event.deleted); }
void Engine::on(const WorkloadReleased& event) { workloads_->released(event.uid); }
void Engine::on(const WorkloadPodsReady& event) { workloads_->pods_ready(event); }
void Engine::on(const WorkloadCheckReported& event) { workloads_->check_reported(event); }

// Its pods may have come before.
void Engine::on(const OwnerQueued& event) {
  for (const std::string& uid : workloads_->owners().learn(event)) {
    const PodSlot slot = state_.find_pod(uid);
    if (!slot.valid()) continue;
    model::Pod pod = state_.pod(slot).pod;
    pod.queued = pod.awaits_owner = false;
    const bool is_freed = pod.node_name.empty() && !holds_room(state_.pod(slot).phase) && !pod.workload.empty() &&
                          pod.workload != event.workload && !workloads_->owners().says_itself(pod);
    if (is_freed) pod.workload.clear(), pod.pod_set.clear(), forget_pod(slot);
    upsert(std::move(pod));
  }
}

namespace {

bool wants_place(const model::Pod& pod) {
  return pod.node_name.empty() && pod.ours && !pod.gated && !pod.terminating && !pod.stand_in;
}

}  // namespace

// Should be given a place now.
bool Engine::waits(const model::Pod& pod) const { return wants_place(pod) && !workloads_->holds_back(pod); }

// Puts a pod, which is in no queue, where its facts say. One of a workload waits for the next cycle, where all that
// came by then have their turn in the order of the queue, whatever the order in which they came.
void Engine::take_up(PodSlot slot) {
  const model::Pod& pod = state_.pod(slot).pod;
  if (!pod.workload.empty()) arrivals_.insert(pod.uid);
  if (pod.workload.empty() || !pod.node_name.empty()) settle(slot);
}

// A pod that took over a place of its workload, and is not to have it, or not yet: that is its workload's again, which
// looks for another where the node would not have it.
void Engine::give_place_back(PodSlot slot, NodeSlot node) {
  const std::string workload = state_.pod(slot).pod.workload;
  withdraw_nomination(slot);
  workloads_->give_up_place(slot);
  workloads_->refill(workload, node);
  take_up(slot);
}

// Pods of workloads that came get the places that are kept for them.
void Engine::meet_arrivals() {
  for (const PodSlot slot : workloads_->unsure()) give_place_back(slot, state_.pod(slot).node);
  workloads_->leave_unfit();
  std::vector<PodSlot> slots;
  for (const std::string& uid : std::exchange(arrivals_, {}))
    if (const PodSlot slot = state_.find_pod(uid); slot.valid()) slots.push_back(slot);
  for (const PodSlot slot : slots) workloads_->know(slot);
  workloads_->restore_places();
  std::sort(slots.begin(), slots.end(), QueueOrder{&state_});
  const auto waiting = std::stable_partition(slots.begin(), slots.end(),
                                             [&](PodSlot slot) { return holds_room(state_.pod(slot).phase); });
  const auto meet = [&](PodSlot slot) {
    const PodState& pod = state_.pod(slot);
    const Time until = backs_off_until(pod);
    if (until > now_ && pod.phase == PodPhase::kNotQueued && wants_place(pod.pod) &&
        workloads_->admits(pod.pod.workload))
      return back_off(slot, until);  // its place is kept meanwhile
    const NodeSlot kept = workloads_->meet(slot);
    if (state_.pod(slot).phase != PodPhase::kNotQueued) return;
    settle(slot);
    if (state_.pod(slot).phase != PodPhase::kPending) return;
    if (!kept.valid()) return adopt_nomination(slot);
    queue_.erase(slot);
    nominate(slot, kept);
    state_.mutable_pod(slot).takes_over = true;
  };
  std::for_each(slots.begin(), waiting, meet);
  workloads_->fill_short();  // what those are to have that come now
  std::for_each(waiting, slots.end(), meet);
}

// Pods of workloads that were admitted or evicted, and others where one has gone.
void Engine::settle_freed() {
  for (auto names = workloads_->take_freed(); !names.empty(); names = workloads_->take_freed())
    for (const std::string& name : names) {
      const std::set<std::string>* known = workloads_->pods_of(name);
      if (known == nullptr) continue;
      const std::set<std::string> uids = *known;
      for (const std::string& uid : uids) {
        const PodSlot slot = state_.find_pod(uid);
        const PodPhase phase = state_.pod(slot).phase;
        const bool queued = phase == PodPhase::kPending || phase == PodPhase::kNominated ||
                            (phase == PodPhase::kBackoff && !workloads_->admits(name));
        if (queued && !waits(state_.pod(slot).pod)) leave_queue(slot);
        else if (phase == PodPhase::kNotQueued) take_up(slot);
      }
    }
}

// Lets workloads in, and has others leave. False: out of work.
bool Engine::admit(WorkBudget& work, CycleResult& result) {
  const bool done = workloads_->run(now_, work, result.admissions);
  reclassify();  // whom terms of stand-ins see
  settle_freed();
  return done && arrivals_.empty();
}

}  // namespace berth::engine
