// Turns a pod away from nodes in other zones or regions than its bound volumes, by the volumes' labels.
// A node without any zone label is taken for one in a cluster without zones. Volumes with a node affinity, which says
// it better, are the rule today; the labels are of in-tree provisioners.
// Source: kube-scheduler's VolumeZone plugin.
#include <array>

#include "engine/policy.h"
#include "engine/volume_state.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

struct TopologyKey {
  std::string_view key, also;  // a node may carry the older or the newer label
};
constexpr std::array<TopologyKey, 4> kKeys{{
    {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
    {"topology.kubernetes.io/zone", "topology.kubernetes.io/zone"},
    {"topology.kubernetes.io/region", "topology.kubernetes.io/region"},
}};

// True if `wanted` is one of the zones in "us-1a__us-1b".
bool lists(std::string_view zones, std::string_view wanted) {
  while (true) {
    const size_t end = zones.find("__");
    if (zones.substr(0, end) == wanted) return true;
    if (end == std::string_view::npos) return false;
    zones.remove_prefix(end + 2);
  }
}

bool in_zone(const model::Volume& volume, const model::Labels& node) {
  for (const TopologyKey& key : kKeys) {
    const std::string* wanted = volume.labels.find(key.key);
    if (wanted == nullptr) continue;
    const std::string* actual = node.find(key.key);
    if (actual == nullptr) actual = node.find(key.also);
    if (actual == nullptr || !lists(*wanted, *actual)) return false;
  }
  return true;
}

constexpr ReasonInfo kOtherZone{.text = "node(s) had no available volume zone",
                                .detail = [](const PodClass& pod, const NodeView& node, const Reason& reason) {
                                  const ClaimRecord& claim = *pod.claims.at(reason.index);
                                  const model::Volume* volume = node.volumes().volume_of(claim);
                                  return "claim " + claim.key + " is bound to volume " +
                                         (volume == nullptr ? "" : volume->name) + " in another zone";
                                }};

void volume_zone(const PodClass& pod, const NodeView& node, Reasons& reasons) {
  if (pod.claims.empty()) return;
  const model::Labels& labels = node.node().labels;
  bool has_zone = false;
  for (const TopologyKey& key : kKeys) has_zone |= labels.contains(key.key);
  if (!has_zone) return;
  for (uint32_t i = 0; i < pod.claims.size(); ++i) {
    const model::Volume* volume = node.volumes().volume_of(*pod.claims[i]);
    if (volume != nullptr && !in_zone(*volume, labels)) return reasons.push_back({&kOtherZone, {}, i});
  }
}

}  // namespace

extern const PolicyInfo kVolumeZone =
    filter_policy("volume-zone", "turns pods away from nodes in other zones than their volumes", 100, &volume_zone);

}  // namespace berth::policy
