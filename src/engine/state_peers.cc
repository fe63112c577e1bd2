// The part of State that keeps its PeerIndex and Topology: what classes ask is held there while the class lives, and
// every placed pod is counted in the domains of its node.
#include <algorithm>

#include "base/check.h"
#include "engine/state.h"

namespace berth::engine {

void State::join_identity(PodSlot slot, IdentityId id) {
  Identity& identity = peers_.mutable_identity(id);
  PodState& pod = pods_[slot.value];
  if (pod.identity != id) {
    pod.identity = id;
    pod.index_in_identity = static_cast<uint32_t>(identity.pods.size());
    identity.pods.push_back(slot);
  }
  if (classes_[pod.cls.value].seen_by != identity.matches) stale_.insert(id);
}

void State::leave_identity(PodSlot slot) {
  PodState& pod = pods_[slot.value];
  Identity& identity = peers_.mutable_identity(pod.identity);
  const PodSlot moved = identity.pods.back();
  identity.pods[pod.index_in_identity] = moved;
  pods_[moved.value].index_in_identity = pod.index_in_identity;
  identity.pods.pop_back();
  if (identity.pods.empty()) {
    stale_.erase(pod.identity);
    peers_.release_identity(pod.identity);
  }
  pod.identity = IdentityId{};
}

std::vector<PodSlot> State::take_stale() {
  std::vector<PodSlot> out;
  for (const IdentityId id : stale_)
    for (const PodSlot slot : peers_.identity(id).pods)
      if (classes_[pods_[slot.value].cls.value].seen_by != peers_.identity(id).matches) out.push_back(slot);
  stale_.clear();
  std::sort(out.begin(), out.end());
  return out;
}

void State::reclassify(PodSlot slot) {
  PodState& pod = pods_[slot.value];
  const ClassId before = pod.cls;
  pod.cls = intern_class(pod.pod, pod.identity);
  release_class(before);
  pod.pod.spec = classes_[pod.cls.value].spec;
}

// Takes every key that the terms ask about. The nodes are looked through once, since a pod may bring thousands of keys.
std::vector<TopologyKeyId> State::acquire_keys(const model::Peers& asked) {
  std::vector<TopologyKeyId> out;
  bool any_new = false;
  const auto acquire = [&](const std::string& key) {
    const auto [id, is_new] = topology_.acquire_key(key);
    out.push_back(id);
    any_new |= is_new;
  };
  for (const model::PodAffinityTerm& term : asked.affinity) acquire(term.topology_key);
  for (const model::PodAffinityTerm& term : asked.anti_affinity) acquire(term.topology_key);
  for (const model::WeightedPodAffinityTerm& wish : asked.preferred) acquire(wish.term.topology_key);
  for (const model::TopologySpreadConstraint& rule : asked.spread) acquire(rule.topology_key);
  for (uint32_t slot = 0; any_new && slot < nodes_.size(); ++slot)
    if (nodes_[slot].present) set_domains(NodeSlot{slot}, topology_.domains_for(nodes_[slot].node.labels));
  return out;
}

void State::hold_peers(PodClass& cls) {
  const model::Peers& asked = cls.spec->peers;
  const std::vector<TopologyKeyId> keys_held = acquire_keys(asked);
  ClassPeers& out = cls.peers;
  const auto sees_self = [&](SelectorId selector) {
    return std::binary_search(cls.seen_by.begin(), cls.seen_by.end(), selector);
  };
  std::vector<model::PeerSelector> all_of;
  for (const model::PodAffinityTerm& term : asked.affinity) all_of.push_back(term.peers);
  absl::btree_set<std::string> keys;
  for (const model::PodAffinityTerm& term : asked.affinity) {
    if (!keys.insert(term.topology_key).second) continue;
    // Looked up once: comparing a selector of many parts costs as much as it has parts.
    const SelectorId selector = keys.size() == 1 ? hold_selector(all_of) : peers_.term(out.affinity.front()).selector;
    if (keys.size() > 1) peers_.acquire_selector(selector);
    out.affinity.push_back(hold_term(cls, selector, term.topology_key));
  }
  if (!out.affinity.empty()) out.matches_own_affinity = sees_self(peers_.term(out.affinity.front()).selector);
  for (const model::PodAffinityTerm& term : asked.affinity) {  // to others, each is a preference of weight 1
    out.owned.push_back({hold_term(cls, {term.peers}, term.topology_key), 0, 1});
    if (term.gathers) out.gathering.push_back(out.owned.back().term);
  }
  for (const model::PodAffinityTerm& term : asked.anti_affinity) {
    out.anti_affinity.push_back(hold_term(cls, {term.peers}, term.topology_key));
    out.owned.push_back({out.anti_affinity.back(), 1, 0});
  }
  for (const model::WeightedPodAffinityTerm& wish : asked.preferred) {
    out.preferred.emplace_back(hold_term(cls, {wish.term.peers}, wish.term.topology_key), wish.weight);
    out.owned.push_back({out.preferred.back().first, 0, wish.weight});
    if (wish.term.gathers) out.gathering.push_back(out.owned.back().term);
  }
  for (const model::TopologySpreadConstraint& rule : asked.spread) {
    if (rule.by_default && cls.packs) continue;
    const SelectorId selector = hold_selector({rule.peers});
    out.spread.push_back({&rule, selector, topology_.acquire_key(rule.topology_key).key, sees_self(selector)});
    if (rule.required) out.hopes.push_back(selector);
  }
  if (!out.affinity.empty()) out.hopes.push_back(peers_.term(out.affinity.front()).selector);
  std::sort(out.hopes.begin(), out.hopes.end());
  out.hopes.erase(std::unique(out.hopes.begin(), out.hopes.end()), out.hopes.end());
  for (const TopologyKeyId key : keys_held) release_key(key);  // each term holds its own by now
}

void State::release_peers(PodClass& cls) {
  for (const TermId id : cls.peers.held) {
    const SelectorId selector = peers_.term(id).selector;
    const TopologyKeyId key = peers_.term(id).key;
    peers_.release_term(id);
    release_selector(selector);
    release_key(key);
  }
  for (const ClassPeers::Spread& spread : cls.peers.spread) {
    release_selector(spread.selector);
    release_key(spread.key);
  }
}

SelectorId State::hold_selector(const std::vector<model::PeerSelector>& all_of) {
  const auto [selector, is_new] = peers_.acquire_selector(all_of);
  if (!is_new) return selector;
  for (const IdentityId id : peers_.selector(selector).identities) {
    stale_.insert(id);
    count_selector(selector, id, +1);
  }
  return selector;
}

void State::release_selector(SelectorId id) {
  const bool by_node = peers_.selector(id).counts_by_node && peers_.selector(id).users == 1;
  if (by_node)
    for (const IdentityId identity : peers_.selector(id).identities) count_selector(id, identity, -1);
  for (const IdentityId identity : peers_.release_selector(id)) stale_.insert(identity);
}

TermId State::hold_term(PodClass& cls, const std::vector<model::PeerSelector>& all_of, const std::string& key) {
  return hold_term(cls, hold_selector(all_of), key);
}

// The same with a selector that has been acquired for it.
TermId State::hold_term(PodClass& cls, SelectorId selector, const std::string& key) {
  const auto [term, is_new] = peers_.acquire_term(selector, topology_.acquire_key(key).key);
  cls.peers.held.push_back(term);
  if (!is_new) return term;
  for (const IdentityId identity : peers_.selector(selector).identities)
    for (const PodSlot pod : peers_.identity(identity).pods)
      if (holds_room(pods_[pod.value].phase)) peers_.count_term(term, nodes_[pods_[pod.value].node.value].domains, +1);
  return term;
}

void State::release_key(TopologyKeyId key) {
  const bool nobody_has = topology_.domain_count(key) == 0;
  if (!topology_.release_key(key) || nobody_has) return;
  for (NodeState& node : nodes_) {
    const auto at = std::find_if(node.domains.begin(), node.domains.end(), [&](auto& d) { return d.first == key; });
    if (at == node.domains.end()) continue;
    topology_.drop({*at});
    node.domains.erase(at);
  }
}

// Moves a node to other domains, and with it what its pods count for. `domains` has been taken from the topology.
void State::set_domains(NodeSlot slot, NodeDomains domains) {
  NodeState& node = nodes_[slot.value];
  if (node.domains != domains) {
    const auto count_all = [&](int32_t sign) {
      for (const PodSlot pod : node.pods)  // save the one whose facts are being replaced
        if (holds_room(pods_[pod.value].phase)) count_peers(pod, slot, sign);
    };
    count_all(-1);
    std::swap(node.domains, domains);
    count_all(+1);
  }
  topology_.drop(domains);
}

// Counts a pod that is placed on the node, or takes it out (sign −1).
void State::count_peers(PodSlot slot, NodeSlot on, int32_t sign) {
  const PodState& pod = pods_[slot.value];
  NodeState& node = nodes_[on.value];
  for (const SelectorId selector : peers_.identity(pod.identity).matches) {
    peers_.count_match(selector, node.domains, sign);
    if (peers_.selector(selector).counts_by_node) count_seen(node, selector, sign);
  }
  for (const OwnedTerm& owned : classes_[pod.cls.value].peers.owned) peers_.count_owned(owned, node.domains, sign);
}

void State::count_seen(NodeState& node, SelectorId selector, int32_t sign) {
  const auto at = std::lower_bound(node.seen_by.begin(), node.seen_by.end(), std::pair(selector, INT32_MIN));
  if (at != node.seen_by.end() && at->first == selector) {
    at->second += sign;
    if (at->second == 0) node.seen_by.erase(at);
    return;
  }
  check(sign > 0, "a pod is taken out of a count that it was in");
  node.seen_by.insert(at, {selector, sign});
}

// The selector began or ceased to see the pods of an identity.
void State::count_selector(SelectorId selector, IdentityId identity, int32_t sign) {
  for (const PodSlot slot : peers_.identity(identity).pods) {
    const PodState& pod = pods_[slot.value];
    if (!holds_room(pod.phase)) continue;
    NodeState& node = nodes_[pod.node.value];
    peers_.count_match(selector, node.domains, sign);
    if (peers_.selector(selector).counts_by_node) count_seen(node, selector, sign);
    touch(pod.node);
  }
}

void State::set_namespace_labels(const std::string& name, const model::Labels& labels) {
  for (const auto& [identity, selector, matches] : peers_.set_namespace_labels(name, labels)) {
    stale_.insert(identity);
    count_selector(selector, identity, matches ? +1 : -1);
  }
}

}  // namespace berth::engine
