#include "engine/pod_owners.h"

#include <utility>

namespace berth::engine {

std::vector<std::string> PodOwners::learn(const OwnerQueued& owner) {
  Owner& known = owners_[owner.uid];
  const bool was_awaited = std::exchange(known.awaited, false);
  const bool news = was_awaited || known.queued != owner.queued || known.workload != owner.workload ||
                    known.suspended != owner.suspended;
  known.queued = owner.queued;
  known.workload = owner.workload;
  known.suspended = owner.suspended;
  std::vector<std::string> pods;
  if (news) {
    for (const auto& [uid, says_itself] : known.pods) pods.push_back(uid);
    if (!known.pods.contains(owner.uid)) pods.push_back(owner.uid);  // it may be a pod itself
  }
  if (!known.queued && known.workload.empty() && known.pods.empty()) owners_.erase(owner.uid);
  return pods;
}

bool PodOwners::says_itself(const model::Pod& pod) const {
  const auto owner = owners_.find(pod.owner_uid);
  if (!pod.of_job || owner == owners_.end()) return true;
  const auto known = owner->second.pods.find(pod.uid);
  return known == owner->second.pods.end() || known->second;
}

void PodOwners::complete(model::Pod& pod) {
  if (pod.stand_in) return;
  if (pod.of_job && (pod.workload.empty() || pod.node_name.empty())) {
    Owner& owner = owners_[pod.owner_uid];
    owner.pods.emplace(pod.uid, !pod.workload.empty());
    owner.awaited |= pod.awaits_owner;
    pod.queued |= owner.queued;
    if (pod.workload.empty() && (!owner.suspended || !pod.node_name.empty())) pod.workload = owner.workload;
  } else if (pod.workload.empty() && !pod.gated && !owners_.empty()) {
    if (const auto own = owners_.find(pod.uid); own != owners_.end()) pod.workload = own->second.workload;
  }
}

void PodOwners::forget(const model::Pod& pod) {
  const auto owner = pod.of_job ? owners_.find(pod.owner_uid) : owners_.end();
  if (owner == owners_.end()) return;
  owner->second.pods.erase(pod.uid);
  if (!owner->second.queued && owner->second.workload.empty() && owner->second.pods.empty()) owners_.erase(owner);
}

}  // namespace berth::engine
