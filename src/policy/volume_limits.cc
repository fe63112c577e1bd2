// Turns a pod away from nodes that cannot attach all of its volumes: each CSI driver has a limit per node.
// A volume counts once per node, however many of its pods use it. Volumes that are attached without a pod are not seen.
// Source: kube-scheduler's NodeVolumeLimits plugin.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>

#include "engine/policy.h"
#include "engine/volume_state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

struct Count {
  std::set<std::string> attached, added;  // handles at the driver
};

// By driver with a limit, of those that the pod adds volumes to.
std::map<std::string, Count> count(const PodClass& pod, const NodeView& node, const model::AttachLimits& limits) {
  std::map<std::string, Count> out;
  for (const ClaimRecord* claim : pod.claims) {
    const auto [driver, handle] = node.volumes().attachment(*claim);
    for (const auto& [limited, most] : limits.limits)
      if (limited == driver) out[driver].added.insert(handle);
  }
  if (out.empty()) return out;
  for (const auto& [claim, pods] : node.claims()) {
    const auto [driver, handle] = node.volumes().attachment(*claim);
    const auto at = out.find(driver);
    if (at == out.end()) continue;
    at->second.attached.insert(handle);
    at->second.added.erase(handle);
  }
  return out;
}

std::string detail(const PodClass& pod, const NodeView& node, const Reason& reason) {
  const model::AttachLimits& limits = *node.volumes().attach_limits(node.node().name);
  const auto& [driver, most] = limits.limits.at(reason.index);
  const Count counted = count(pod, node, limits)[driver];
  return fmt::format("{} can attach {} volumes, {} are, the pod adds {}", driver, most, counted.attached.size(),
                     counted.added.size());
}

constexpr ReasonInfo kTooMany{.text = "node(s) exceed max volume count", .preemption_helps = true, .detail = &detail};

void volume_limits(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (pod.claims.empty()) return;
  const model::AttachLimits* limits = node.volumes().attach_limits(node.node().name);
  if (limits == nullptr || limits->limits.empty()) return;
  const auto counted = count(pod, node, *limits);
  for (uint32_t i = 0; i < limits->limits.size(); ++i) {
    const auto& [driver, most] = limits->limits[i];
    const auto at = counted.find(driver);
    if (at == counted.end() || at->second.added.empty()) continue;
    if (static_cast<int64_t>(at->second.attached.size() + at->second.added.size()) > most)
      return reasons.push_back({&kTooMany, {}, i});
  }
}

}  // namespace

extern const PolicyInfo kVolumeLimits = filter_policy(
    "volume-limits", "turns pods away from nodes that cannot attach their CSI volumes", 80, &volume_limits);

}  // namespace berth::policy
