#include "policy/why_not_cut.h"

#include <fmt/format.h>

#include <bit>

#include "engine/idle_gpus.h"

namespace berth::policy {
namespace {

using namespace berth::engine;

// Of what the pod asks for more is in use or promised than there is on the devices that are not idle.
bool owes(const PodClass& pod, const NodeView& node) {
  const model::ResourceList asked = asked_of_idle(pod, node);
  for (ResourceId id{0}; id.value < node.resources().size(); ++id.value)
    if (asked.get(node.resources().name(id)) > 0 && free_beside_idle(node, id) < 0) return true;
  return false;
}

}  // namespace

std::string why_not_cut(const PodClass& pod, const NodeView& node) {
  constexpr std::string_view kSoon = ", though not right after another change";
  if (!node.node().mig || node.is_being_cut()) return "";
  if (node.node().cut_by_agent().empty())
    return uses_gpus(node) ? "; its GPUs are cut anew only while none is in use or promised"
                           : fmt::format("; its GPUs are idle and may be cut anew{}", kSoon);
  const int idle = std::popcount(idle_devices(node));
  if (idle == 0) return "; only GPUs that are idle are cut anew, and none is";
  if (!lists_what_is_there(node))
    return "; its GPUs are left as they are cut: its agent tells other devices than kubelet has allocatable";
  if (!idle_could_be_cut_for(pod, node))
    return fmt::format(
        "; only GPUs that are idle are cut anew, and {} {} too few{}", idle, idle == 1 ? "is" : "are",
        owes(pod, node) ? ": what is in use or promised, and not there any more, is made up for first" : "");
  return fmt::format("; its {} idle GPU{} may be cut anew once the agent has told where all pods are{}", idle,
                     idle == 1 ? "" : "s", kSoon);
}

}  // namespace berth::policy
