#include "policy/why_not_cut.h"

#include <fmt/format.h>

#include <bit>

#include "engine/idle_gpus.h"
#include "model/mig.h"
#include "packing/mig_config.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// More is in use or promised than there is on the devices that are not idle.
bool owes(const NodeView& node) {
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value)
    if (node.resources().is_gpu(id) && most_on_device(*node.node().mig.model, node.resources().name(id)) > 0 &&
        free_beside_idle(node, id) < 0)
      return true;
  return false;
}

}  // namespace

std::string why_not_cut(const PodClass& pod, const NodeView& node) {
  constexpr std::string_view kSoon = ", though not right after another change";
  if (!node.node().mig || node.is_being_cut()) return "";
  if (node.node().cut_by_agent().empty())
    return uses_gpus(node) ? "; its GPUs are cut anew only while none is in use or promised"
                           : fmt::format("; its GPUs are idle and may be cut anew{}", kSoon);
  model::DynamicMig idle = node.node().mig;
  idle.devices = std::popcount(idle_devices(node));
  if (idle.devices == 0) return "; only GPUs that are idle are cut anew, and none is";
  if (!packing::can_be_cut_for(idle, asked_of_idle(pod, node)))
    return fmt::format("; only GPUs that are idle are cut anew, and {} {} too few{}", idle.devices,
                       idle.devices == 1 ? "is" : "are",
                       owes(node) ? ": what is in use or promised, and not there any more, is made up for first" : "");
  return fmt::format("; its {} idle GPU{} may be cut anew once the agent has told where all pods are{}", idle.devices,
                     idle.devices == 1 ? "" : "s", kSoon);
}

}  // namespace berth::policy
