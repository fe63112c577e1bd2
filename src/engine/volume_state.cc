#include "engine/volume_state.h"

#include <algorithm>
#include <set>

#include "base/check.h"

namespace berth::engine {
namespace {

using model::StorageKind;

constexpr std::string_view kHostname = "kubernetes.io/hostname";

// Free to be matched, as far as the volume's own object says.
bool is_free(const model::Volume& volume) { return volume.available && !volume.claim && !volume.terminating; }

// The hosts that every term of the affinity names; none when some term leaves the host open.
std::optional<std::set<std::string>> hosts_of(const model::Volume& volume) {
  if (!volume.affinity) return std::nullopt;
  std::set<std::string> hosts;
  for (const model::NodeSelectorTerm& term : *volume.affinity) {
    const auto at = std::find_if(term.match_expressions.begin(), term.match_expressions.end(), [](const auto& r) {
      return r.key == kHostname && r.op == model::NodeSelectorOperator::kIn;
    });
    if (at == term.match_expressions.end()) return std::nullopt;
    hosts.insert(at->values.begin(), at->values.end());
  }
  return hosts;
}

// Removes objects[key]; false when there is none.
template <typename Map>
bool erase_from(Map& objects, const std::string& key) {
  return objects.erase(key) > 0;
}

// Stores the object; false when it was there as it is.
template <typename Object>
bool store(std::map<std::string, Object>& objects, const std::string& key, Object object) {
  const auto [at, added] = objects.try_emplace(key, object);
  if (!added && at->second == object) return false;
  at->second = std::move(object);
  return true;
}

template <typename Map>
std::vector<std::string> names_of(const Map& objects) {
  std::vector<std::string> out;
  for (const auto& [key, object] : objects) out.push_back(key);
  return out;
}

template <typename Index>
void take_out(Index& index, const std::string& group, const std::string& key) {
  const auto at = index.find(group);
  if (at == index.end()) return;
  at->second.erase(key);
  if (at->second.empty()) index.erase(at);
}

}  // namespace

// ---- facts ----------------------------------------------------------------------------------------------------------

void VolumeState::upsert(model::StorageObject object, Touched& touched) {
  std::visit([&](auto& o) { set(std::move(o), touched); }, object);
}

void VolumeState::remove(StorageKind kind, const std::string& key, Touched& touched) {
  switch (kind) {
    case StorageKind::kClaim: {
      const auto at = claims_.find(key);
      if (at == claims_.end() || !at->second->object) return;
      unindex(*at->second);
      at->second->object.reset();
      settle_choice(*at->second, touched);
      touch(*at->second, touched);
      return drop_if_unused(*at->second);
    }
    case StorageKind::kVolume: return remove_volume(key, touched);
    case StorageKind::kClass:
      if (erase_from(classes_, key)) touch_class(key, touched);
      return;
    case StorageKind::kAttachLimits:
      if (erase_from(limits_, key)) touched.node_names.push_back(key);
      return;
    case StorageKind::kDriver:
      if (erase_from(drivers_, key)) touch_all_unbound(touched);
      return;
    case StorageKind::kCapacity: {
      const auto at = capacities_.find(key);
      if (at == capacities_.end()) return;
      touch_unbound(at->second.storage_class, touched);
      capacities_.erase(at);
      return;
    }
  }
}

std::vector<model::StorageObject> VolumeState::objects() const {
  std::vector<model::StorageObject> out;
  for (const auto& [key, claim] : claims_)
    if (claim->object) out.emplace_back(*claim->object);
  const auto add = [&](const auto& objects) {
    for (const auto& [key, object] : objects) out.emplace_back(object);
  };
  add(volumes_);
  add(classes_);
  add(limits_);
  add(drivers_);
  add(capacities_);
  return out;
}

std::vector<std::string> VolumeState::keys(StorageKind kind) const {
  switch (kind) {
    case StorageKind::kClaim: {
      std::vector<std::string> out;
      for (const auto& [key, claim] : claims_)
        if (claim->object) out.push_back(key);
      return out;
    }
    case StorageKind::kVolume: return names_of(volumes_);
    case StorageKind::kClass: return names_of(classes_);
    case StorageKind::kAttachLimits: return names_of(limits_);
    case StorageKind::kDriver: return names_of(drivers_);
    case StorageKind::kCapacity: return names_of(capacities_);
  }
  return {};
}

void VolumeState::set(model::VolumeClaim object, Touched& touched) {
  ClaimRecord& claim = record(object.key());
  if (claim.object && *claim.object == object) return;
  const auto attached = attachment(claim);
  unindex(claim);
  claim.object = std::move(object);
  index(claim);
  settle_choice(claim, touched);
  touch(claim, touched);
  if (attachment(claim) != attached)
    for (const auto& [node, pods] : claim.used_on) touched.nodes.insert(node);
}

void VolumeState::set(model::Volume object, Touched& touched) {
  const std::string name = object.name;
  if (const model::Volume* old = volume(name)) {
    if (*old == object) return;
    touch_volume(*old, touched);
    unindex(*old);
  }
  const model::Volume& stored = volumes_[name] = std::move(object);
  index(stored);
  touch_volume(stored, touched);
  if (const auto at = chosen_.find(name); at != chosen_.end()) settle_choice(*at->second, touched);
}

void VolumeState::remove_volume(const std::string& name, Touched& touched) {
  const auto at = volumes_.find(name);
  if (at == volumes_.end()) return;
  touch_volume(at->second, touched);
  unindex(at->second);
  volumes_.erase(at);
  if (const auto chosen = chosen_.find(name); chosen != chosen_.end()) settle_choice(*chosen->second, touched);
}

void VolumeState::set(model::StorageClass object, Touched& touched) {
  const std::string key = object.name;
  if (store(classes_, key, std::move(object))) touch_class(key, touched);
}

void VolumeState::set(model::AttachLimits object, Touched& touched) {
  const std::string key = object.node;
  if (store(limits_, key, std::move(object))) touched.node_names.push_back(key);
}

void VolumeState::set(model::StorageDriver object, Touched& touched) {
  const std::string key = object.name;
  if (store(drivers_, key, std::move(object))) touch_all_unbound(touched);
}

void VolumeState::set(model::StorageCapacity object, Touched& touched) {
  const std::string key = object.name, storage_class = object.storage_class;
  if (store(capacities_, key, std::move(object))) touch_unbound(storage_class, touched);
}

// ---- indexes --------------------------------------------------------------------------------------------------------

ClaimRecord& VolumeState::record(const std::string& key) {
  std::unique_ptr<ClaimRecord>& entry = claims_[key];
  if (entry == nullptr) {
    entry = std::make_unique<ClaimRecord>();
    entry->key = key;
  }
  return *entry;
}

void VolumeState::drop_if_unused(ClaimRecord& claim) {
  if (!claim.object && claim.classes.empty() && claim.used_on.empty()) claims_.erase(std::string(claim.key));
}

void VolumeState::index(ClaimRecord& claim) {
  const model::VolumeClaim& object = *claim.object;
  if (!object.volume_name.empty()) bound_[object.volume_name].emplace(claim.key, &claim);
  if (!object.bound()) unbound_[object.storage_class].emplace(claim.key, &claim);
}

void VolumeState::unindex(ClaimRecord& claim) {
  if (!claim.object) return;
  take_out(bound_, claim.object->volume_name, claim.key);
  take_out(unbound_, claim.object->storage_class, claim.key);
}

void VolumeState::index(const model::Volume& volume) {
  if (volume.claim) reserved_[volume.claim->claim].insert(volume.name);
  if (!is_free(volume)) return;
  Pool& pool = pools_[volume.storage_class];
  const std::pair key(volume.bytes, volume.name);
  const auto hosts = hosts_of(volume);
  if (!hosts) pool.anywhere.emplace(key, &volume);
  else
    for (const std::string& host : *hosts) pool.on_host[host].emplace(key, &volume);
}

void VolumeState::unindex(const model::Volume& volume) {
  if (volume.claim) take_out(reserved_, volume.claim->claim, volume.name);
  const auto at = pools_.find(volume.storage_class);
  if (!is_free(volume) || at == pools_.end()) return;
  const std::pair key(volume.bytes, volume.name);
  at->second.anywhere.erase(key);
  for (const std::string& host : hosts_of(volume).value_or(std::set<std::string>{})) {
    const auto on_host = at->second.on_host.find(host);
    on_host->second.erase(key);
    if (on_host->second.empty()) at->second.on_host.erase(on_host);
  }
  if (at->second.anywhere.empty() && at->second.on_host.empty()) pools_.erase(at);
}

// ---- who has to look again ------------------------------------------------------------------------------------------

void VolumeState::touch(const ClaimRecord& claim, Touched& touched) const {
  touched.classes.insert(claim.classes.begin(), claim.classes.end());
}

void VolumeState::touch_unbound(const std::string& storage_class, Touched& touched) const {
  const auto at = unbound_.find(storage_class);
  if (at == unbound_.end()) return;
  for (const auto& [key, claim] : at->second) touch(*claim, touched);
}

// The class itself changed: what its claims attach to the nodes that use them may have, too.
void VolumeState::touch_class(const std::string& storage_class, Touched& touched) const {
  touch_unbound(storage_class, touched);
  const auto at = unbound_.find(storage_class);
  if (at == unbound_.end()) return;
  for (const auto& [key, claim] : at->second)
    for (const auto& [node, pods] : claim->used_on) touched.nodes.insert(node);
}

void VolumeState::touch_all_unbound(Touched& touched) const {
  for (const auto& [key, claim] : claims_)
    if (claim->object && !claim->object->bound()) touch(*claim, touched);
}

void VolumeState::touch_volume(const model::Volume& volume, Touched& touched) const {
  if (is_free(volume)) touch_unbound(volume.storage_class, touched);
  if (volume.claim)
    if (const auto at = claims_.find(volume.claim->claim); at != claims_.end()) touch(*at->second, touched);
  const auto at = bound_.find(volume.name);
  if (at == bound_.end()) return;
  for (const auto& [key, claim] : at->second) {
    touch(*claim, touched);
    for (const auto& [node, pods] : claim->used_on) touched.nodes.insert(node);
  }
}

// ---- use and choices ------------------------------------------------------------------------------------------------

std::vector<ClaimRecord*> VolumeState::join(ClassId cls, const std::vector<model::ClaimUse>& claims) {
  std::vector<ClaimRecord*> out;
  for (const model::ClaimUse& use : claims) {
    out.push_back(&record(use.claim));
    out.back()->classes.insert(cls);
  }
  return out;
}

void VolumeState::leave(ClassId cls, const std::vector<ClaimRecord*>& claims) {
  for (ClaimRecord* claim : claims) {
    claim->classes.erase(cls);
    drop_if_unused(*claim);
  }
}

// A choice serves the pods that are on their way to be bound. With the last of them it goes, even where a pod that was
// bound before, or by others, uses the claim as well.
void VolumeState::use(const std::vector<ClaimRecord*>& claims, NodeSlot node, int sign, bool bound, Touched& touched) {
  for (ClaimRecord* claim : claims) {
    if (!bound) claim->on_their_way += static_cast<uint32_t>(sign);
    if (sign < 0 && claim->on_their_way == 0 && claim->choice && !claim->choice->carried_out)
      drop_choice(*claim, touched);
    const bool used = !claim->used_on.empty();
    uint32_t& pods = claim->used_on[node];
    pods += static_cast<uint32_t>(sign);
    if (pods == 0) claim->used_on.erase(node);
    if (claim->used_on.empty() == !used) continue;
    if (used) drop_choice(*claim, touched);
    if (claim->object && claim->object->one_pod_only()) touch(*claim, touched);
  }
}

void VolumeState::arrive(const std::vector<ClaimRecord*>& claims) {
  for (ClaimRecord* claim : claims) {
    --claim->on_their_way;
    if (claim->choice) claim->choice->carried_out = true;
  }
}

void VolumeState::choose(ClaimRecord& claim, ClaimChoice choice, Touched& touched) {
  check(!claim.used_on.empty(), "only a claim in use has a choice");
  if (claim.choice) return;
  if (!choice.volume.empty()) {
    const bool first = chosen_.emplace(choice.volume, &claim).second;
    check(first, "a volume is chosen for one claim");
    touch_unbound(volume(choice.volume)->storage_class, touched);
  }
  claim.choice = std::move(choice);
  touch(claim, touched);
}

void VolumeState::drop_choice(ClaimRecord& claim, Touched& touched) {
  if (!claim.choice) return;
  const std::string name = claim.choice->volume;
  claim.choice.reset();
  chosen_.erase(name);
  touch(claim, touched);
  const model::Volume* freed = volume(name);
  if (freed != nullptr && is_free(*freed)) touch_unbound(freed->storage_class, touched);
}

// Forgets a choice that the API server shows by now, or that has come to nothing. The claim and its volume come by two
// watches: a chosen volume is not free before both have shown what became of it.
void VolumeState::settle_choice(ClaimRecord& claim, Touched& touched) {
  if (!claim.choice) return;
  const ClaimChoice& choice = *claim.choice;
  if (!claim.object || claim.object->uid != choice.claim_uid) return drop_choice(claim, touched);
  const model::VolumeClaim& object = *claim.object;
  if (choice.volume.empty()) {
    if (!object.volume_name.empty() || !object.selected_node.empty()) drop_choice(claim, touched);
    return;
  }
  const model::Volume* chosen = volume(choice.volume);
  const bool lost = chosen == nullptr || (chosen->claim && !chosen->reserved_for(object));
  if (lost || (object.bound() && (object.volume_name != choice.volume || chosen->claim))) drop_choice(claim, touched);
}

const model::Volume* VolumeState::volume(const std::string& name) const {
  const auto at = volumes_.find(name);
  return at == volumes_.end() ? nullptr : &at->second;
}

const model::Volume* VolumeState::volume_of(const ClaimRecord& claim) const {
  return claim.object && !claim.object->volume_name.empty() ? volume(claim.object->volume_name) : nullptr;
}

const model::StorageClass* VolumeState::class_of(const model::VolumeClaim& claim) const {
  const auto at = claim.storage_class.empty() ? classes_.end() : classes_.find(claim.storage_class);
  return at == classes_.end() ? nullptr : &at->second;
}

std::pair<std::string, std::string> VolumeState::attachment(const ClaimRecord& claim) const {
  if (!claim.object) return {};
  if (const model::Volume* bound = volume_of(claim)) return {bound->driver, bound->handle};
  const model::StorageClass* cls = class_of(*claim.object);
  return cls == nullptr ? std::pair<std::string, std::string>() : std::pair(cls->provisioner, "claim " + claim.key);
}

const model::AttachLimits* VolumeState::attach_limits(const std::string& node) const {
  const auto at = limits_.find(node);
  return at == limits_.end() ? nullptr : &at->second;
}

}  // namespace berth::engine
