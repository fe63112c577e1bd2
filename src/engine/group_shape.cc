#include "engine/group_shape.h"

namespace berth::engine {
namespace {

GroupShape::Key& key_in(GroupShape& shape, TopologyKeyId key) {
  for (GroupShape::Key& entry : shape.keys)
    if (entry.key == key) return entry;
  shape.keys.push_back({key, {}, {}, {}, {}, {}, false});
  return shape.keys.back();
}

}  // namespace

GroupShape shape_of(const State& state, const PodClass& cls) {
  GroupShape shape;
  const auto nobody_has = [&](TopologyKeyId key) { return state.topology().domain_count(key) == 0; };
  const auto key_of = [&](TermId term) -> GroupShape::Key* {
    const TopologyKeyId key = state.peers().term(term).key;
    if (nobody_has(key)) return nullptr;
    shape.serials.push_back(state.peers().term(term).serial);
    return &key_in(shape, key);
  };
  const ClassPeers& peers = cls.peers;
  for (uint32_t i = 0; i < peers.spread.size(); ++i) {
    const ClassPeers::Spread& spread = peers.spread[i];
    if (nobody_has(spread.key)) shape.lacks_spread_key[spread.rule->required] = true;
    else key_in(shape, spread.key).spread.push_back(i);
  }
  for (const TermId term : peers.affinity) {
    if (GroupShape::Key* key = key_of(term)) key->affinity.push_back(term);
    else shape.lacks_affinity_key = true;
  }
  for (const TermId term : peers.anti_affinity)
    if (GroupShape::Key* key = key_of(term)) key->anti_affinity.push_back(term);
  for (const auto& [term, weight] : peers.preferred)
    if (GroupShape::Key* key = key_of(term)) key->preferred.emplace_back(term, weight);
  for (const TermId term : peers.gathering)
    if (GroupShape::Key* key = key_of(term)) key->gathers = true;
  for (const SelectorId selector : cls.seen_by)
    for (const TermId term : state.peers().selector(selector).terms)
      if (GroupShape::Key* key = key_of(term)) key->existing.push_back(term);
  return shape;
}

}  // namespace berth::engine
