// The part of Engine that knows what namespaces say about their pods.
#include <algorithm>
#include <utility>

#include "engine/engine.h"
#include "engine/queued_workloads.h"

namespace berth::engine {

void Engine::on(const NamespaceUpserted& event) {
  state_.set_namespace_labels(event.name, event.labels);
  if (rules_.set_protects(event.name, event.protects_pods, state_)) workloads_->victims_changed();
  workloads_->set_namespace_labels(event.name, event.labels);
  const auto at = namespace_placement_.find(event.name);
  const auto before = at == namespace_placement_.end() ? model::Placement::kDefault : at->second;
  if (before == event.placement) return;
  if (event.placement == model::Placement::kDefault) namespace_placement_.erase(at);
  else namespace_placement_[event.name] = event.placement;
  std::vector<std::string> waiting;
  for (const PodSlot slot : state_.pods()) {
    const PodState& pod = state_.pod(slot);
    if (pod.pod.namespace_name == event.name && pod.phase <= PodPhase::kNominated && !pod.pod.stand_in)
      waiting.push_back(pod.pod.uid);
  }
  std::sort(waiting.begin(), waiting.end());
  for (const std::string& uid : waiting) upsert(model::Pod(state_.pod(state_.find_pod(uid)).pod));
}

// Gives the pod the placement that holds for it: its own, else its namespace's.
void Engine::resolve_placement(model::Pod& pod) const {
  model::Placement wanted = pod.placement;
  const auto at = namespace_placement_.find(pod.namespace_name);
  if (wanted == model::Placement::kDefault && at != namespace_placement_.end()) wanted = at->second;
  if (pod.spec->placement == wanted) return;
  auto spec = std::make_shared<model::SchedulingSpec>(*pod.spec);
  spec->placement = wanted;
  pod.spec = std::move(spec);
}

}  // namespace berth::engine
