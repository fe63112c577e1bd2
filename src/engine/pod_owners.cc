#include "engine/pod_owners.h"

namespace berth::engine {

std::vector<std::string> PodOwners::learn(const OwnerQueued& owner) {
  Owner& known = owners_[owner.uid];
  const bool news =
      known.queued != owner.queued || known.workload != owner.workload || known.renews_pods != owner.renews_pods;
  known.queued = owner.queued;
  known.workload = owner.workload;
  known.renews_pods = owner.renews_pods;
  std::vector<std::string> pods;
  if (news) {
    pods.assign(known.pods.begin(), known.pods.end());
    if (!known.pods.contains(owner.uid)) pods.push_back(owner.uid);  // it may be a pod itself
  }
  if (!known.queued && known.workload.empty() && known.pods.empty()) owners_.erase(owner.uid);
  return pods;
}

void PodOwners::complete(model::Pod& pod) {
  if (pod.stand_in) return;
  if (pod.of_job && (pod.workload.empty() || pod.node_name.empty())) {
    Owner& owner = owners_[pod.owner_uid];
    owner.pods.insert(pod.uid);
    pod.queued |= owner.queued;
    if (pod.workload.empty() && (!owner.renews_pods || !pod.node_name.empty())) pod.workload = owner.workload;
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
