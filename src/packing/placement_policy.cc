#include "packing/placement_policy.h"

namespace berth::packing {

void FleetSupply::add(const Node& node) {
  const int count = node.devices().count;
  if (count == 0) return;
  if (devices.size() <= node.model()) devices.resize(node.model() + 1, 0);
  devices[node.model()] += count;
  cpu_milli += node.cpu_milli();
  memory_bytes += node.memory_bytes();
}

int PlacementPolicy::share_device(const Candidate& candidate, const Request& request, Rng& /*rng*/) const {
  return candidate.node.devices().tightest(request.milli_each);
}

const std::vector<PolicyEntry>& placement_policies() {
  static const std::vector<PolicyEntry> entries = {
      {"berth", "the least waste of remnants, then of devices without CPU or memory; learns the mix", &make_berth},
      {"berth-told", "as berth, told the mix beforehand", &make_berth_told},
      {"best-fit", "the node that the request leaves with the least CPU and devices", &make_best_fit},
      {"dot-product", "the node whose free resources point least in the request's direction", &make_dot_product},
      {"fgd", "the node on which fragmentation grows least (fragmentation gradient descent)", &make_fgd},
      {"gpu-clustering", "the node with pods that ask for as many GPUs", &make_gpu_clustering},
      {"gpu-packing", "shared GPUs first, then used nodes, then idle ones", &make_gpu_packing},
      {"random", "any node with room", &make_random},
  };
  return entries;
}

}  // namespace berth::packing
