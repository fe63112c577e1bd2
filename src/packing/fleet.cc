#include "packing/fleet.h"

#include <algorithm>

#include "base/check.h"

namespace berth::packing {

Fleet::Fleet(std::vector<Node> nodes, PlacementPolicy& policy, const FragmentMeasure& measure, uint64_t seed,
             size_t kept_scores_max)
    : nodes_(std::move(nodes)),
      generations_(nodes_.size(), 1),
      memos_(nodes_.size()),
      policy_(policy),
      measure_(measure),
      rng_(seed),
      kept_scores_max_(kept_scores_max) {
  for (const Node& node : nodes_) {
    fragments_.push_back(measure_.of(node));
    fragment_ += fragments_.back();
    free_milli_ += node.devices().free();
    capacity_milli_ += int64_t{node.devices().count} * kMilliPerDevice;
  }
}

Fleet::RequestClass& Fleet::class_of(const Request& request) {
  if (const auto found = classes_.find(request); found != classes_.end()) return found->second;
  if ((classes_.size() + 1) * nodes_.size() <= kept_scores_max_) return classes_[request];
  not_kept_.seen = 0;
  return not_kept_;
}

void Fleet::refresh(RequestClass& of, const Request& request) const {
  of.scores.resize(nodes_.size(), kNoRoom);
  if (of.seen < scores_since_) of.seen = 0;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    if (generations_[n] <= of.seen) continue;
    of.scores[n] = nodes_[n].fits(request)
                       ? policy_.score({.node = nodes_[n], .fragment = fragments_[n], .memo = &memos_[n]}, request)
                       : kNoRoom;
  }
  of.seen = generation_;
}

std::optional<uint32_t> Fleet::best(const RequestClass& of) {
  int32_t highest = kNoRoom;
  for (const int32_t score : of.scores) highest = std::max(highest, score);
  if (highest == kNoRoom) return std::nullopt;
  auto found = std::find(of.scores.begin(), of.scores.end(), highest);
  if (policy_.draws()) {
    const auto equals = static_cast<uint64_t>(std::count(found, of.scores.end(), highest));
    for (uint64_t skip = rng_.below(equals); skip > 0; --skip) found = std::find(found + 1, of.scores.end(), highest);
  }
  return static_cast<uint32_t>(found - of.scores.begin());
}

void Fleet::observe(const Request& request) {
  if (!policy_.observe(request)) return;
  scores_since_ = ++generation_;
  for (NodeMemo& memo : memos_) memo.known = false;
}

std::optional<Placement> Fleet::place(const Request& request) {
  observe(request);
  return place_observed(request);
}

std::optional<Placement> Fleet::place_observed(const Request& request) {
  RequestClass& requests = class_of(request);
  refresh(requests, request);
  const std::optional<uint32_t> at = best(requests);
  if (!at) return std::nullopt;
  const Node& node = nodes_[*at];
  Placement placement = {.node = *at, .devices = 0};
  if (request.is_share()) {
    const int device =
        policy_.share_device({.node = node, .fragment = fragments_[*at], .memo = &memos_[*at]}, request, rng_);
    check(device >= 0, "a node with room has a device with room");
    placement.devices = DeviceMask{1} << device;
  } else {
    placement.devices = node.first_idle(request);
  }
  take(request, placement);
  return placement;
}

bool Fleet::fits(const Request& request) {
  RequestClass& requests = class_of(request);
  refresh(requests, request);
  return std::any_of(requests.scores.begin(), requests.scores.end(), [](int32_t score) { return score != kNoRoom; });
}

void Fleet::take(const Request& request, const Placement& placement) {
  nodes_[placement.node].take(request, placement.devices);
  free_milli_ -= request.device_milli();
  changed(placement.node);
}

void Fleet::give_back(const Request& request, const Placement& placement) {
  nodes_[placement.node].give_back(request, placement.devices);
  free_milli_ += request.device_milli();
  changed(placement.node);
}

void Fleet::changed(uint32_t node) {
  generations_[node] = ++generation_;
  memos_[node].known = false;
  fragment_ -= fragments_[node];
  fragments_[node] = measure_.of(nodes_[node]);
  fragment_ += fragments_[node];
}

}  // namespace berth::packing
