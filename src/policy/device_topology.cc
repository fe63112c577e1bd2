// Prefers nodes whose free devices are close to one another, for pods that ask for several whole ones.
//
// It has something to say where an agent lists the devices of a node (docs/devices.md): the closeness of those that the
// pod would get there, 1000 where each two are joined by NVLink, 0 where a way between two crosses between CPUs. Which
// devices these are the engine decides alike for all policies: those that go best together, so that what is left does,
// too.
#include "engine/policy.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

int32_t device_topology(const PodClass& pod, const NodeView& node) {
  if (!node.listed() || pod.request(node.share_resource()) < 2) return 0;
  const model::DeviceSet best = node.best_devices(pod);
  return best == 0 ? 0 : node.listed().topology().closeness(best);
}

}  // namespace

extern const PolicyInfo kDeviceTopology = score_policy(
    "device-topology", "gives pods that ask for several GPUs those that are connected best", 4, &device_topology);

}  // namespace berth::policy
