#include <algorithm>

#include "base/check.h"
#include "engine/state.h"

namespace berth::engine {

void State::touch(const VolumeState::Touched& touched) {
  if (in_trial_) return;
  for (const ClassId cls : touched.classes) ++classes_[cls.value].generation;
  for (const NodeSlot node : touched.nodes) touch(node);
  for (const std::string& name : touched.node_names)
    if (const NodeSlot node = find_node(name); node.valid()) touch(node);
}

void State::upsert_storage(model::StorageObject object) {
  VolumeState::Touched touched;
  volumes_.upsert(std::move(object), touched);
  touch(touched);
}

void State::remove_storage(model::StorageKind kind, const std::string& key) {
  VolumeState::Touched touched;
  volumes_.remove(kind, key, touched);
  touch(touched);
}

void State::replace_storage(model::StorageKind kind, const std::vector<model::StorageObject>& objects) {
  VolumeState::Touched touched;
  absl::btree_set<std::string> listed;
  for (const model::StorageObject& object : objects) {
    listed.insert(model::key_of(object));
    volumes_.upsert(object, touched);
  }
  for (const std::string& key : volumes_.keys(kind))
    if (!listed.contains(key)) volumes_.remove(kind, key, touched);
  touch(touched);
}

void State::use_claims(NodeSlot slot, const PodClass& cls, PodPhase phase, int sign) {
  if (cls.claims.empty()) return;
  auto& listed = nodes_[slot.value].claims;
  for (ClaimRecord* claim : cls.claims) {
    auto at = std::find_if(listed.begin(), listed.end(), [&](const auto& entry) { return entry.first == claim; });
    if (at == listed.end()) at = listed.insert(at, {claim, 0});
    at->second += static_cast<uint32_t>(sign);
    if (at->second > 0) continue;
    *at = listed.back();
    listed.pop_back();
  }
  VolumeState::Touched touched;
  volumes_.use(cls.claims, slot, sign, phase == PodPhase::kBound, touched);
  touch(touched);
}

void State::choose_volumes(PodSlot pod) {
  const PodState& state = pods_[pod.value];
  const std::vector<ClaimRecord*>& claims = classes_[state.cls.value].claims;
  if (claims.empty()) return;
  VolumeState::Touched touched;
  for (const auto& [claim, choice] : volumes_.fit(claims, nodes_[state.node.value].node).choices)
    volumes_.choose(*claim, choice, touched);
  touch(touched);
}

std::vector<std::pair<std::string, ClaimChoice>> State::volume_choices(PodSlot pod) const {
  std::vector<std::pair<std::string, ClaimChoice>> out;
  for (const ClaimRecord* claim : classes_[pods_[pod.value].cls.value].claims)
    if (claim->choice) out.emplace_back(claim->key, *claim->choice);
  return out;
}

void State::restore_choices(const std::vector<std::pair<std::string, ClaimChoice>>& choices) {
  VolumeState::Touched touched;
  for (const auto& [key, choice] : choices) {
    const auto at = volumes_.claims().find(key);
    check(at != volumes_.claims().end(), "a claim in use is known");
    volumes_.choose(*at->second, choice, touched);
  }
  touch(touched);
}

std::vector<VolumeBinding> State::volumes_to_bind(PodSlot pod) const {
  const PodState& state = pods_[pod.value];
  std::vector<VolumeBinding> out;
  for (const ClaimRecord* claim : classes_[state.cls.value].claims) {
    if (!claim->object || claim->object->bound()) continue;
    out.push_back({claim->object->name, claim->object->uid, claim->choice ? claim->choice->volume : ""});
  }
  return out;
}

}  // namespace berth::engine
