#include "engine/trial.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/promised_shares.h"

namespace berth::engine {

Trial::Trial(State& state, NodeSlot node, const PodClass& cls)
    : state_(state),
      slot_(node),
      node_(state.nodes_[node.value]),
      ports_(!cls.spec->host_ports.empty()),
      claims_(!cls.claims.empty()),
      shares_(!node_.devices.all().empty() || node_.node.gpus.sharing == model::GpuSharing::kReplicas) {
  check(!std::exchange(state.in_trial_, true), "at most one Trial is open at a time");
  NodeState& before = state.before_trial_;
  before.used = node_.used;
  if (shares_) {
    before.devices = node_.devices;
    before.promises = node_.promises;
    before.listed = node_.listed;
    if (cls.shares_gpu)
      asked_ = std::clamp<int64_t>(node_.node.gpus.units_of(cls.spec->gpu_share), 0, node_.node.gpus.units());
    find_promised();
    lift_promised();
    lay_promised();
  }
  if (ports_) before.host_ports = node_.host_ports;
}

Trial::~Trial() {
  NodeState& before = state_.before_trial_;
  std::swap(node_.used, before.used);
  if (shares_) {
    std::swap(node_.devices, before.devices);
    std::swap(node_.promises, before.promises);
    node_.listed = std::move(before.listed);
  }
  if (ports_) std::swap(node_.host_ports, before.host_ports);
  while (!claimants_.empty()) {
    return_claims(claimants_.back());
    claimants_.pop_back();
  }
  state_.in_trial_ = false;
}

void Trial::take_out(PodSlot pod, std::span<const ResourceAmount> requests) {
  for (const ResourceAmount& request : requests) node_.used[request.id.value] -= request.amount;
  if (shares_) node_.promises.count(state_.pods_[pod.value], requests, -1), move_devices(pod, -1);
  if (!ports_ && !claims_) return;
  const PodClass& cls = state_.classes_[state_.pods_[pod.value].cls.value];
  if (ports_) State::charge_ports(node_, cls, -1);
  if (!claims_ || cls.claims.empty()) return;
  claimants_.push_back({pod, state_.volume_choices(pod)});
  state_.use_claims(slot_, cls, state_.pods_[pod.value].phase, -1);
}

void Trial::put_back(PodSlot pod, std::span<const ResourceAmount> requests) {
  for (const ResourceAmount& request : requests) node_.used[request.id.value] += request.amount;
  if (shares_) node_.promises.count(state_.pods_[pod.value], requests, +1), move_devices(pod, +1);
  if (!ports_ && !claims_) return;
  if (ports_) State::charge_ports(node_, state_.classes_[state_.pods_[pod.value].cls.value], +1);
  const auto at = std::find_if(claimants_.begin(), claimants_.end(), [pod](const auto& c) { return c.pod == pod; });
  if (at == claimants_.end()) return;
  return_claims(*at);
  claimants_.erase(at);
}

void Trial::find_promised() {
  if (node_.guesses == 0) return;
  for (const PodSlot slot : node_.pods)
    if (const PodState& pod = state_.pods_[slot.value]; pod.phase == PodPhase::kNominated && pod.devices.device >= 0)
      promised_.push_back({slot, pod.devices});
  std::ranges::sort(promised_, std::greater<>(), [](const Promised& share) { return share.use.amount; });
}

// Takes the pod's devices from the node's accounts (-1), or gives them back (+1); what is promised moves with that.
void Trial::move_devices(PodSlot pod, int sign) {
  const PodState& moved = state_.pods_[pod.value];
  if (!state_.classes_[moved.cls.value].requests_gpu) return;
  lift_promised();
  const auto own = std::ranges::find(promised_, pod, &Promised::pod);
  if (own != promised_.end()) {
    own->out = sign < 0;
  } else {
    State::count_share(node_, moved.devices, sign);
    if (sign < 0) node_.listed.give_back(moved.devices.whole);
    else node_.listed.take(moved.devices.whole);
  }
  lay_promised();
}

void Trial::lift_promised() {
  for (const Promised& share : promised_)
    if (!share.out) State::count_share(node_, share.use, -1);
}

// So that a pod of the class has room beside it, if there is a way.
void Trial::lay_promised() {
  if (promised_.empty()) return;
  std::vector<int64_t> amounts;
  for (const Promised& share : promised_)
    if (!share.out) amounts.push_back(share.use.amount);
  const auto own = std::ranges::lower_bound(amounts, asked_, std::greater<>()) - amounts.begin();
  if (asked_ > 0) amounts.insert(amounts.begin() + own, asked_);
  const std::vector<int32_t> places = places_of_shares(amounts, node_.node.gpus.units(), node_.devices, node_.listed);
  size_t next = 0;
  for (Promised& share : promised_) {
    if (share.out) continue;
    if (asked_ > 0 && next == static_cast<size_t>(own)) ++next;
    share.use.device = places[next++];
    State::count_share(node_, share.use, +1);
  }
}

void Trial::return_claims(const Claimant& claimant) {
  const PodState& pod = state_.pods_[claimant.pod.value];
  state_.use_claims(slot_, state_.classes_[pod.cls.value], pod.phase, +1);
  state_.restore_choices(claimant.choices);
}

}  // namespace berth::engine
