#include "scenario/storage_controller.h"

#include <fmt/format.h>

#include <algorithm>

#include "bridge/volumes.h"

namespace berth::scenario {
namespace {

template <typename... Kinds>
bool holds_any(const api::Object& object) {
  return (std::holds_alternative<Kinds>(object) || ...);
}

// As the volume controller finds a volume for a claim, whether the volume names the claim or not.
bool serves(const model::Volume& volume, const model::VolumeClaim& claim) {
  return !volume.terminating && volume.bytes >= claim.bytes.value_or(0) && volume.block == claim.block &&
         volume.attributes_class == claim.attributes_class;
}

}  // namespace

bool is_storage(const api::Object& object) {
  return holds_any<api::PersistentVolumeClaim, api::PersistentVolume, api::StorageClass, api::CsiNode, api::CsiDriver,
                   api::CsiStorageCapacity>(object);
}

void StorageController::put(const api::Object& object) {
  if (const auto* claim = std::get_if<api::PersistentVolumeClaim>(&object)) {
    model::VolumeClaim seen = bridge::to_model(*claim);
    const bool names_class =
        claim->spec.storage_class_name || claim->metadata.annotation(api::kBetaStorageClass) != nullptr;
    if (!names_class) seen.storage_class = default_class();
    return put(std::move(seen));
  }
  if (const auto* volume = std::get_if<api::PersistentVolume>(&object)) {
    model::Volume seen = bridge::to_model(*volume);
    seen.available |= volume->phase.empty() && !seen.claim;
    return put(std::move(seen));
  }
  model::StorageObject seen;
  if (const auto* cls = std::get_if<api::StorageClass>(&object)) {
    std::erase(default_classes_, cls->metadata.name);
    if (cls->is_default()) default_classes_.push_back(cls->metadata.name);
    seen = classes_[cls->metadata.name] = bridge::to_model(*cls);
  } else if (const auto* node = std::get_if<api::CsiNode>(&object)) {
    seen = bridge::to_model(*node);
  } else if (const auto* driver = std::get_if<api::CsiDriver>(&object)) {
    seen = bridge::to_model(*driver);
  } else {
    seen = bridge::to_model(std::get<api::CsiStorageCapacity>(object));
  }
  others_[fmt::format("{} {}", seen.index(), model::key_of(seen))] = seen;
  outbox_.emplace_back(engine::StorageUpserted{std::move(seen)});
}

void StorageController::put(model::VolumeClaim claim) {
  const auto known = claims_.find(claim.key());
  if (claim.uid.empty()) claim.uid = known == claims_.end() ? fmt::format("claim-{}", ++made_) : known->second.uid;
  claims_[claim.key()] = claim;
  outbox_.emplace_back(engine::StorageUpserted{std::move(claim)});
}

void StorageController::put(model::Volume volume) {
  unlist_reservation(volume.name);
  if (volume.claim) reserved_[volume.claim->claim].insert(volume.name);
  volumes_[volume.name] = volume;
  outbox_.emplace_back(engine::StorageUpserted{std::move(volume)});
}

void StorageController::unlist_reservation(const std::string& volume) {
  const auto at = volumes_.find(volume);
  if (at == volumes_.end() || !at->second.claim) return;
  const auto listed = reserved_.find(at->second.claim->claim);
  listed->second.erase(volume);
  if (listed->second.empty()) reserved_.erase(listed);
}

void StorageController::make_claims(const api::Pod& pod) {
  bool made = false;
  for (const api::ClaimVolume& volume : pod.spec.claim_volumes) {
    if (!volume.made) continue;
    api::PersistentVolumeClaim claim;
    claim.metadata.namespace_name = pod.metadata.namespace_name;
    claim.metadata.name = pod.metadata.name + "-" + volume.name;
    claim.metadata.owners.push_back({"v1", "Pod", pod.metadata.name, pod.metadata.uid, true});
    claim.spec = *volume.made;
    add(claim);
    made = true;
  }
  if (made) reconcile();
}

void StorageController::add(const api::PersistentVolumeClaim& claim) {
  if (!claims_.contains(claim.metadata.namespace_name + "/" + claim.metadata.name)) put(api::Object(claim));
}

void StorageController::forget_claims(const api::Pod& pod) {
  for (const model::ClaimUse& use : bridge::claims_of(pod)) {
    const auto at = claims_.find(use.claim);
    if (!use.ephemeral() || at == claims_.end() || at->second.owner_uid != pod.metadata.uid) continue;
    if (const auto volume = volumes_.find(at->second.volume_name); volume != volumes_.end()) {
      unlist_reservation(volume->first);
      volumes_.erase(volume);  // reclaimed with its claim
      outbox_.emplace_back(engine::StorageDeleted{model::StorageKind::kVolume, at->second.volume_name});
    }
    claims_.erase(at);
    outbox_.emplace_back(engine::StorageDeleted{model::StorageKind::kClaim, use.claim});
  }
}

void StorageController::bind(const std::string& namespace_name, const std::vector<engine::VolumeBinding>& claims,
                             const model::Labels& node) {
  for (const engine::VolumeBinding& binding : claims) {
    const auto at = claims_.find(namespace_name + "/" + binding.claim);
    if (at == claims_.end() || at->second.bound()) continue;
    const model::VolumeClaim claim = at->second;
    bind(claim, binding.volume.empty() ? provision(claim, &node) : binding.volume);
  }
}

void StorageController::reconcile() {
  for (const auto& [key, each] : std::map(claims_)) {
    const model::VolumeClaim& claim = each;
    if (claim.bound() || claim.lost || claim.terminating) continue;
    const auto named = volumes_.find(claim.volume_name);
    if (!claim.volume_name.empty()) {
      if (named != volumes_.end() && (!named->second.claim || named->second.reserved_for(claim)))
        bind(claim, claim.volume_name);
      continue;
    }
    const model::StorageClass* cls = class_of(claim);
    if (const std::string reserved = reserved_for(claim); !reserved.empty()) bind(claim, reserved);
    else if (cls != nullptr && cls->waits_for_consumer) continue;
    else if (const model::Volume* volume = match(claim)) bind(claim, volume->name);
    else if (cls != nullptr && cls->provisions()) bind(claim, provision(claim, nullptr));
  }
}

// The first volume, by name, that waits for this very claim; empty: none.
std::string StorageController::reserved_for(const model::VolumeClaim& claim) const {
  const auto listed = reserved_.find(claim.key());
  if (listed == reserved_.end()) return "";
  for (const std::string& name : listed->second) {
    const model::Volume& volume = volumes_.at(name);
    if (volume.reserved_for(claim) && volume.storage_class == claim.storage_class && serves(volume, claim)) return name;
  }
  return "";
}

void StorageController::relist() const {
  engine::StorageReplaced claims{model::StorageKind::kClaim, {}}, volumes{model::StorageKind::kVolume, {}};
  for (const auto& [key, claim] : claims_) claims.objects.emplace_back(claim);
  for (const auto& [key, volume] : volumes_) volumes.objects.emplace_back(volume);
  outbox_.emplace_back(std::move(claims));
  outbox_.emplace_back(std::move(volumes));
  for (const auto kind : {model::StorageKind::kClass, model::StorageKind::kAttachLimits, model::StorageKind::kDriver,
                          model::StorageKind::kCapacity}) {
    engine::StorageReplaced list{kind, {}};
    for (const auto& [key, object] : others_)
      if (model::kind_of(object) == kind) list.objects.push_back(object);
    outbox_.emplace_back(std::move(list));
  }
}

const model::StorageClass* StorageController::class_of(const model::VolumeClaim& claim) const {
  const auto at = classes_.find(claim.storage_class);
  return at == classes_.end() ? nullptr : &at->second;
}

// The newest of the classes that are marked so, as the API server's admission takes it.
std::string StorageController::default_class() const { return default_classes_.empty() ? "" : default_classes_.back(); }

const model::Volume* StorageController::match(const model::VolumeClaim& claim) const {
  const model::Volume* best = nullptr;
  for (const auto& [name, volume] : volumes_) {
    if (!volume.available || volume.claim || volume.storage_class != claim.storage_class || !serves(volume, claim) ||
        (claim.access_modes & ~volume.access_modes) != 0 || (claim.selector && !claim.selector->matches(volume.labels)))
      continue;
    if (best == nullptr || volume.bytes < best->bytes) best = &volume;
  }
  return best;
}

// Makes a volume for the claim, to be used from `node` if one is given; its name.
std::string StorageController::provision(const model::VolumeClaim& claim, const model::Labels* node) {
  model::Volume volume;
  volume.name = "pvc-" + claim.uid;
  volume.storage_class = claim.storage_class;
  volume.attributes_class = claim.attributes_class;
  volume.bytes = claim.bytes.value_or(0);
  volume.access_modes = claim.access_modes;
  volume.block = claim.block;
  if (const model::StorageClass* cls = class_of(claim)) {
    volume.driver = cls->provisioner;
    volume.handle = volume.name;
    for (const model::NodeSelectorTerm& term : cls->allowed_topologies) {
      if (node != nullptr && !term.matches(*node, "")) continue;
      model::NodeSelectorTerm reachable = term;
      for (auto& requirement : reachable.match_expressions)
        if (node != nullptr) requirement.values = {*node->find(requirement.key)};
      volume.affinity = {std::move(reachable)};
      break;
    }
  }
  std::string name = volume.name;
  put(std::move(volume));
  return name;
}

void StorageController::bind(model::VolumeClaim claim, const std::string& volume) {
  const auto at = volumes_.find(volume);
  if (at == volumes_.end()) return;
  model::Volume bound = at->second;
  bound.available = false;
  bound.claim = {claim.key(), claim.uid};
  claim.volume_name = volume;
  claim.bind_completed = true;
  put(std::move(bound));
  put(std::move(claim));
}

}  // namespace berth::scenario
