// What kube-scheduler's PreFilter plugins say of a pod's claims before they look at any node, in the order in which
// they run: VolumeRestrictions, VolumeBinding, VolumeZone.
#include <fmt/format.h>

#include "engine/volume_state.h"

namespace berth::engine {
namespace {

std::string name_of(const ClaimRecord& claim) { return claim.key.substr(claim.key.find('/') + 1); }

std::string not_found(const ClaimRecord& claim) {
  return fmt::format("persistentvolumeclaim \"{}\" not found", name_of(claim));
}

// What is wrong with the claim itself.
std::string problem_of(const model::ClaimUse& use, const ClaimRecord& claim) {
  if (!claim.object)
    return use.ephemeral()
               ? fmt::format("waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
                             name_of(claim))
               : not_found(claim);
  const model::VolumeClaim& object = *claim.object;
  if (object.lost)
    return fmt::format("persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"", object.name,
                       object.volume_name);
  if (object.terminating) return fmt::format("persistentvolumeclaim \"{}\" is being deleted", object.name);
  if (use.ephemeral() && object.owner_uid != use.made_for_uid)
    return fmt::format("PVC {} was not created for pod {} (pod is not owner)", claim.key, use.made_for);
  return "";
}

}  // namespace

std::string VolumeState::objection(const std::vector<model::ClaimUse>& uses,
                                   const std::vector<ClaimRecord*>& claims) const {
  for (size_t i = 0; i < uses.size(); ++i)
    if (!uses[i].ephemeral() && !claims[i]->object) return not_found(*claims[i]);
  for (size_t i = 0; i < uses.size(); ++i)
    if (std::string problem = problem_of(uses[i], *claims[i]); !problem.empty()) return problem;
  for (const ClaimRecord* claim : claims) {
    const model::VolumeClaim& object = *claim->object;
    const model::StorageClass* cls = class_of(object);
    const bool waits = cls != nullptr && cls->waits_for_consumer && object.volume_name.empty();
    if (!object.bound() && !waits) return "pod has unbound immediate PersistentVolumeClaims";
  }
  for (const ClaimRecord* claim : claims)
    if (claim->object->bound() && volume_of(*claim) == nullptr)
      return fmt::format("persistentvolume \"{}\" not found", claim->object->volume_name);
  return "";
}

}  // namespace berth::engine
