#include "scenario/made_pods.h"

namespace berth::scenario {

void MadePods::see(const api::Object& object) {
  const api::ObjectMeta& metadata = api::metadata_of(object);
  const api::OwnerReference* owner = metadata.controller();
  if (owner == nullptr) return;
  if (!owner->uid.empty()) uids_.insert(owner->uid);
  if (!std::holds_alternative<api::Pod>(object) || !owner->api_version.starts_with("apps/")) return;
  if (owner->kind == "StatefulSet") statefulsets_.insert(metadata.namespace_name + "/" + owner->name);
  const std::string* hash = metadata.labels.find("pod-template-hash");
  if (owner->kind != "ReplicaSet" || hash == nullptr || hash->empty()) return;
  const std::string tail = "-" + *hash;
  if (owner->name.size() > tail.size() && owner->name.ends_with(tail))
    deployments_.insert(metadata.namespace_name + "/" + owner->name.substr(0, owner->name.size() - tail.size()));
}

bool MadePods::made_by(const api::Object& controller) const {
  const api::ObjectMeta& metadata = api::metadata_of(controller);
  const std::string name = metadata.namespace_name + "/" + metadata.name;
  if (std::holds_alternative<api::StatefulSet>(controller) && statefulsets_.contains(name)) return true;
  if (metadata.uid.empty()) return false;  // it is yet to be created
  return uids_.contains(metadata.uid) ||
         (std::holds_alternative<api::Deployment>(controller) && deployments_.contains(name));
}

}  // namespace berth::scenario
