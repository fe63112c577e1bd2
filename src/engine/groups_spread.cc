// The part of Groups that counts pods for topology spread constraints.
#include <algorithm>
#include <utility>

#include "engine/groups.h"

namespace berth::engine {
namespace {

bool untolerated_taint(const PodClass& cls, const model::Node& node) {
  return model::first_untolerated(node.taints, cls.spec->tolerations) < node.taints.size();
}

// kube-scheduler counts no pods for a selector that is empty, rather than all of them.
bool counts_pods(const model::TopologySpreadConstraint& rule) {
  return rule.peers.pods.selects_nothing || !rule.peers.pods.requirements.empty();
}

}  // namespace

// Takes back what the node added to its domains, before it leaves them.
void Groups::withdraw_spread(NodeSlot slot) {
  if (slot.value >= contributions_.size() || contributions_[slot.value].empty()) return;
  const std::vector<int64_t> own = std::exchange(contributions_[slot.value], {});
  const std::vector<DomainId>& domains = groups_[places_[slot.value].group.value].domains;
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    for (size_t i = 0; i < shape_.keys[key].spread.size(); ++i)
      if (const int64_t matching = own[first_spread_[key] + i]; matching >= 0)
        add_spread(key, i, domains[key], -1, -matching);
}

// What the node adds to the domains of each spread constraint: the matching pods that it runs, if it counts at all.
void Groups::update_spread(NodeSlot slot, const State& state, const PodClass& cls) {
  const auto& rules = cls.peers.spread;
  const GroupId group = places_[slot.value].group;
  if (rules.empty() || shape_.keys.empty() || !group.valid()) return;
  if (contributions_.size() <= slot.value) contributions_.resize(state.node_slots());
  const NodeState& node = state.node(slot);
  const std::vector<DomainId>& domains = groups_[group.value].domains;
  // Of all rules that prefer, and of all that require.
  bool has_keys[2] = {!shape_.lacks_spread_key[0], !shape_.lacks_spread_key[1]};
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    for (const uint32_t rule : shape_.keys[key].spread) has_keys[rules[rule].rule->required] &= domains[key].valid();
  std::vector<int64_t>& own = contributions_[slot.value];
  if (!has_keys[0] && !has_keys[1] && own.empty()) return;
  own.resize(first_spread_.back() + shape_.keys.back().spread.size(), -1);
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    for (size_t i = 0; i < shape_.keys[key].spread.size(); ++i) {
      const ClassPeers::Spread& spread = rules[shape_.keys[key].spread[i]];
      int64_t matching = -1;
      if (has_keys[spread.rule->required] && (!spread.rule->honors_affinity || selects(cls, node.node)) &&
          (!spread.rule->honors_taints || !untolerated_taint(cls, node.node))) {
        matching = matching_on(node, spread);
      }
      int64_t& before = own[first_spread_[key] + i];
      if (before == matching) continue;
      add_spread(key, i, domains[key], (matching >= 0) - (before >= 0),
                 std::max<int64_t>(matching, 0) - std::max<int64_t>(before, 0));
      before = matching;
    }
  }
}

// Pods on the node that the constraint counts.
int64_t Groups::matching_on(const NodeState& node, const ClassPeers::Spread& spread) {
  if (!counts_pods(*spread.rule)) return 0;
  const auto at = std::lower_bound(node.seen_by.begin(), node.seen_by.end(), std::pair(spread.selector, INT32_MIN));
  return at != node.seen_by.end() && at->first == spread.selector ? at->second : 0;
}

void Groups::add_spread(uint32_t key, size_t index, DomainId id, int32_t nodes, int64_t matching) {
  if (!id.valid()) return;
  Domain& domain = domains_[id.value];
  SpreadSum& sum = domain.spread[index];
  SpreadRange& range = spread_[shape_.keys[key].spread[index]];
  if (sum.nodes > 0) {
    if (--range.domains[sum.matching] == 0) range.domains.erase(sum.matching);
    --range.count;
  }
  sum.nodes += static_cast<uint32_t>(nodes);
  sum.matching += matching;
  if (sum.nodes > 0) {
    ++range.domains[sum.matching];
    ++range.count;
  }
  domain.spread_changed = true;
  mark(id);
}

// Whether one more pod in the domain would exceed a required constraint; its groups are judged again when that turns.
void Groups::judge_skew(Domain& domain, size_t index, const PodClass& cls) {
  const uint32_t rule = shape_.keys[domain.key].spread[index];
  const ClassPeers::Spread& spread = cls.peers.spread[rule];
  SpreadSum& sum = domain.spread[index];
  const int64_t skew = sum.matching + (spread.matches_self ? 1 : 0) - spread_[rule].fewest;
  const bool exceeds = spread.rule->required && skew > spread.rule->max_skew;
  if (std::exchange(sum.exceeds, exceeds) == exceeds) return;
  if (domain.key != gate_) return mark_groups(domain);
  buckets_[domain.bucket].full =
      std::any_of(domain.spread.begin(), domain.spread.end(), [](const SpreadSum& s) { return s.exceeds; });
  ++version_;
}

// Where the emptiest domain of a constraint has more pods than before, or fewer, every domain is judged again.
void Groups::update_fewest(const PodClass& cls) {
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    for (size_t i = 0; i < shape_.keys[key].spread.size(); ++i) {
      const uint32_t rule = shape_.keys[key].spread[i];
      SpreadRange& range = spread_[rule];
      const bool enough = range.count >= static_cast<uint32_t>(cls.peers.spread[rule].rule->min_domains);
      const int64_t fewest = range.domains.empty() || !enough ? 0 : range.domains.begin()->first;
      const bool counted = std::exchange(range.judged, range.count) == range.count;
      if (std::exchange(range.fewest, fewest) == fewest && (counted || cls.peers.spread[rule].rule->required)) continue;
      for (const DomainId id : domains_of_[key]) {
        judge_skew(domains_[id.value], i, cls);
        if (!cls.peers.spread[rule].rule->required && !counted) mark_groups(domains_[id.value]);
      }
    }
  }
}

}  // namespace berth::engine
