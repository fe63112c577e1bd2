#include "engine/trial.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace berth::engine {

Trial::Trial(State& state, NodeSlot node, const PodClass& cls)
    : state_(state),
      slot_(node),
      node_(state.nodes_[node.value]),
      ports_(!cls.spec->host_ports.empty()),
      claims_(!cls.claims.empty()),
      shares_(!node_.devices.all().empty() || node_.node.gpus.sharing == model::GpuSharing::kReplicas) {
  check(!std::exchange(state.in_trial_, true), "at most one Trial is open at a time");
  state.used_before_trial_ = node_.used;
  if (shares_) state.devices_before_trial_ = node_.devices;
  if (ports_) state.ports_before_trial_ = node_.host_ports;
}

Trial::~Trial() {
  std::swap(node_.used, state_.used_before_trial_);
  if (shares_) std::swap(node_.devices, state_.devices_before_trial_);
  if (ports_) std::swap(node_.host_ports, state_.ports_before_trial_);
  while (!claimants_.empty()) {
    return_claims(claimants_.back());
    claimants_.pop_back();
  }
  state_.in_trial_ = false;
}

void Trial::take_out(PodSlot pod, std::span<const ResourceAmount> requests) {
  for (const ResourceAmount& request : requests) node_.used[request.id.value] -= request.amount;
  if (shares_) State::count_share(node_, state_.pods_[pod.value].devices, -1);
  if (!ports_ && !claims_) return;
  const PodClass& cls = state_.classes_[state_.pods_[pod.value].cls.value];
  if (ports_) State::charge_ports(node_, cls, -1);
  if (!claims_ || cls.claims.empty()) return;
  claimants_.push_back({pod, state_.volume_choices(pod)});
  state_.use_claims(slot_, cls, state_.pods_[pod.value].phase, -1);
}

void Trial::put_back(PodSlot pod, std::span<const ResourceAmount> requests) {
  for (const ResourceAmount& request : requests) node_.used[request.id.value] += request.amount;
  if (shares_) State::count_share(node_, state_.pods_[pod.value].devices, +1);
  if (!ports_ && !claims_) return;
  if (ports_) State::charge_ports(node_, state_.classes_[state_.pods_[pod.value].cls.value], +1);
  const auto at = std::find_if(claimants_.begin(), claimants_.end(), [pod](const auto& c) { return c.pod == pod; });
  if (at == claimants_.end()) return;
  return_claims(*at);
  claimants_.erase(at);
}

void Trial::return_claims(const Claimant& claimant) {
  const PodState& pod = state_.pods_[claimant.pod.value];
  state_.use_claims(slot_, state_.classes_[pod.cls.value], pod.phase, +1);
  state_.restore_choices(claimant.choices);
}

}  // namespace berth::engine
