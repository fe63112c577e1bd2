#include "engine/groups.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"
#include "engine/evaluate.h"

namespace berth::engine {
namespace {

GroupShape::Key& key_in(GroupShape& shape, TopologyKeyId key) {
  for (GroupShape::Key& entry : shape.keys)
    if (entry.key == key) return entry;
  shape.keys.push_back({key, {}, {}, {}, {}, {}});
  return shape.keys.back();
}

bool untolerated_taint(const PodClass& cls, const model::Node& node) {
  return std::any_of(node.taints.begin(), node.taints.end(), [&](const model::Taint& taint) {
    return taint.effect != model::TaintEffect::kPreferNoSchedule && !model::tolerates(cls.spec->tolerations, taint);
  });
}

// kube-scheduler counts no pods for a selector that is empty, rather than all of them.
bool counts_pods(const model::TopologySpreadConstraint& rule) {
  return rule.peers.pods.selects_nothing || !rule.peers.pods.requirements.empty();
}

}  // namespace

GroupShape shape_of(const State& state, const PodClass& cls) {
  GroupShape shape;
  const auto key_of = [&](TermId term) -> GroupShape::Key& {
    shape.serials.push_back(state.peers().term(term).serial);
    return key_in(shape, state.peers().term(term).key);
  };
  const ClassPeers& peers = cls.peers;
  for (uint32_t i = 0; i < peers.spread.size(); ++i) key_in(shape, peers.spread[i].key).spread.push_back(i);
  for (const TermId term : peers.affinity) key_of(term).affinity.push_back(term);
  for (const TermId term : peers.anti_affinity) key_of(term).anti_affinity.push_back(term);
  for (const auto& [term, weight] : peers.preferred) key_of(term).preferred.emplace_back(term, weight);
  for (const SelectorId selector : cls.seen_by)
    for (const TermId term : state.peers().selector(selector).terms) key_of(term).existing.push_back(term);
  return shape;
}

void Groups::update(NodeSlot slot, const State& state, const PodClass& cls, bool fits, int64_t score) {
  if (places_.size() <= slot.value) places_.resize(state.node_slots());
  if (domains_.size() < state.topology().domain_slots()) domains_.resize(state.topology().domain_slots());
  spread_.resize(cls.peers.spread.size());
  move(slot, state);
  update_spread(slot, state, cls);
  const GroupId group = places_[slot.value].group;
  if (!group.valid()) return;
  rank(slot, fits, {score, state.node(slot).order, slot});
  for (const DomainId domain : groups_[group.value].domains) mark(domain);
}

// Puts the node into the group of its domains.
void Groups::move(NodeSlot slot, const State& state) {
  const NodeState& node = state.node(slot);
  in_domains_.clear();
  for (const GroupShape::Key& key : shape_.keys) in_domains_.push_back(domain_of(node.domains, key.key));
  Place& place = places_[slot.value];
  if (place.group.valid()) {
    if (node.present && groups_[place.group.value].domains == in_domains_) return;
    leave_group(slot);
  }
  if (!node.present) return;
  place.group = group_of(in_domains_);
  ++groups_[place.group.value].nodes;
}

GroupId Groups::group_of(const std::vector<DomainId>& domains) {
  const auto [at, added] = groups_by_domains_.try_emplace(domains);
  if (!added) return at->second;
  GroupId id{static_cast<uint32_t>(groups_.size())};
  if (!free_groups_.empty()) {
    id = free_groups_.back();
    free_groups_.pop_back();
  } else {
    groups_.emplace_back();
  }
  at->second = id;
  for (uint32_t key = 0; key < domains.size(); ++key) {
    if (!domains[key].valid()) continue;
    Domain& domain = domains_[domains[key].value];
    if (domain.groups.empty()) {
      domains_of_[key].push_back(domains[key]);
      domain.key = key;
      domain.facts = Facts{};
      domain.spread.assign(shape_.keys[key].spread.size(), {});
    }
    domain.groups.push_back(id);
  }
  groups_[id.value].domains = domains;
  mark(id);
  return id;
}

void Groups::leave_group(NodeSlot slot) {
  rank(slot, false, {});
  withdraw_spread(slot);
  const GroupId id = std::exchange(places_[slot.value].group, GroupId{});
  Group& group = groups_[id.value];
  for (const DomainId domain : group.domains) mark(domain);
  mark(id);
  if (--group.nodes > 0) return;
  unrate(group);
  if (group.listed.node.valid()) ranking_.erase(group.listed);
  for (uint32_t key = 0; key < group.domains.size(); ++key) {
    const DomainId domain = group.domains[key];
    if (!domain.valid()) continue;
    std::erase(domains_[domain.value].groups, id);
    if (domains_[domain.value].groups.empty()) std::erase(domains_of_[key], domain);
  }
  groups_by_domains_.erase(group.domains);
  group = Group{};
  free_groups_.push_back(id);
}

void Groups::rank(NodeSlot slot, bool fits, const Ranked& ranked) {
  Place& place = places_[slot.value];
  Group& group = groups_[place.group.value];
  if (place.fits == fits && (!fits || (!(place.ranked < ranked) && !(ranked < place.ranked)))) return;
  if (place.fits) group.fits.erase(place.ranked);
  if (fits) group.fits.insert(ranked);
  place.fits = fits;
  place.ranked = ranked;
  mark(place.group);
}

// Takes back what the node added to its domains, before it leaves them.
void Groups::withdraw_spread(NodeSlot slot) {
  if (slot.value >= contributions_.size() || contributions_[slot.value].empty()) return;
  const std::vector<int64_t> own = std::exchange(contributions_[slot.value], {});
  const std::vector<DomainId>& domains = groups_[places_[slot.value].group.value].domains;
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    for (size_t i = 0; i < shape_.keys[key].spread.size(); ++i)
      if (const int64_t matching = own[shape_.keys[key].spread[i]]; matching >= 0)
        add_spread(key, i, domains[key], -1, -matching);
}

// What the node adds to the domains of each spread constraint: the matching pods that it runs, if it counts at all.
void Groups::update_spread(NodeSlot slot, const State& state, const PodClass& cls) {
  const auto& rules = cls.peers.spread;
  const GroupId group = places_[slot.value].group;
  if (rules.empty() || !group.valid()) return;
  if (contributions_.size() <= slot.value) contributions_.resize(state.node_slots());
  const NodeState& node = state.node(slot);
  const std::vector<DomainId>& domains = groups_[group.value].domains;
  bool has_keys[2] = {true, true};  // of all rules that prefer, and of all that require
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    for (const uint32_t rule : shape_.keys[key].spread) has_keys[rules[rule].rule->required] &= domains[key].valid();
  std::vector<int64_t>& own = contributions_[slot.value];
  if (!has_keys[0] && !has_keys[1] && own.empty()) return;
  own.resize(rules.size(), -1);
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    for (size_t i = 0; i < shape_.keys[key].spread.size(); ++i) {
      const ClassPeers::Spread& spread = rules[shape_.keys[key].spread[i]];
      int64_t matching = -1;
      if (has_keys[spread.rule->required] && (!spread.rule->honors_affinity || selects(cls, node.node)) &&
          (!spread.rule->honors_taints || !untolerated_taint(cls, node.node))) {
        const auto at =
            std::lower_bound(node.seen_by.begin(), node.seen_by.end(), std::pair(spread.selector, INT32_MIN));
        const bool counts = at != node.seen_by.end() && at->first == spread.selector && counts_pods(*spread.rule);
        matching = counts ? at->second : 0;
      }
      int64_t& before = own[shape_.keys[key].spread[i]];
      if (before == matching) continue;
      add_spread(key, i, domains[key], (matching >= 0) - (before >= 0),
                 std::max<int64_t>(matching, 0) - std::max<int64_t>(before, 0));
      before = matching;
    }
  }
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

void Groups::mark(DomainId domain) {
  if (!domain.valid() || std::exchange(domains_[domain.value].dirty, true)) return;
  dirty_domains_.push_back(domain);
}

void Groups::mark(GroupId group) {
  if (!std::exchange(groups_[group.value].dirty, true)) dirty_groups_.push_back(group);
}

Groups::Facts Groups::facts_of(const GroupShape::Key& key, DomainId domain, const State& state) {
  Facts facts;
  const PeerIndex& peers = state.peers();
  for (const TermId term : key.affinity) facts.affinity &= peers.term(term).at(domain).matching > 0;
  for (const TermId term : key.anti_affinity)
    if (!facts.anti_affinity.valid() && peers.term(term).at(domain).matching > 0) facts.anti_affinity = term;
  for (const auto& [term, weight] : key.preferred)
    facts.weight += int64_t{weight} * peers.term(term).at(domain).matching;
  for (const TermId term : key.existing) {
    const Term::Count count = peers.term(term).at(domain);
    if (!facts.existing.valid() && count.anti_owners > 0) facts.existing = term;
    facts.weight += count.weight;
  }
  return facts;
}

void Groups::read_facts(const Group& group, const PodClass& cls, GroupFacts& out) const {
  out.domains = &group.domains;
  out.affinity_anywhere = affinity_anywhere_;
  out.lacks_affinity_key = false;
  out.affinity = true;
  out.anti_affinity = out.existing = TermId{};
  out.weight = 0;
  out.spread.resize(cls.peers.spread.size());
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    const DomainId id = group.domains[key];
    const GroupShape::Key& asked = shape_.keys[key];
    for (size_t i = 0; i < asked.spread.size(); ++i) {
      const SpreadRange& range = spread_[asked.spread[i]];
      const SpreadSum sum = id.valid() ? domains_[id.value].spread[i] : SpreadSum{};
      out.spread[asked.spread[i]] = {id.valid(), sum.matching, range.fewest, range.count, sum.exceeds};
    }
    if (!id.valid()) {
      out.lacks_affinity_key |= !asked.affinity.empty();
      continue;
    }
    const Facts& facts = domains_[id.value].facts;
    out.affinity &= facts.affinity;
    if (!out.anti_affinity.valid()) out.anti_affinity = facts.anti_affinity;
    if (!out.existing.valid()) out.existing = facts.existing;
    out.weight += facts.weight;
  }
}

GroupFacts Groups::facts(NodeSlot slot, const PodClass& cls) const {
  GroupFacts out;
  read_facts(groups_[places_[slot.value].group.value], cls, out);
  return out;
}

void Groups::mark_groups(const Domain& domain) {
  for (const GroupId group : domain.groups) mark(group);
}

// Whether one more pod in the domain would exceed a required constraint; its groups are judged again when that turns.
void Groups::judge_skew(Domain& domain, size_t index, const PodClass& cls) {
  const uint32_t rule = shape_.keys[domain.key].spread[index];
  const ClassPeers::Spread& spread = cls.peers.spread[rule];
  SpreadSum& sum = domain.spread[index];
  const int64_t skew = sum.matching + (spread.matches_self ? 1 : 0) - spread_[rule].fewest;
  const bool exceeds = spread.rule->required && skew > spread.rule->max_skew;
  if (std::exchange(sum.exceeds, exceeds) != exceeds) mark_groups(domain);
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

// Some pod, somewhere, began or ceased to match required affinity.
bool Groups::affinity_turned(const State& state, const PodClass& cls) {
  const bool anywhere = std::any_of(cls.peers.affinity.begin(), cls.peers.affinity.end(),
                                    [&](TermId term) { return state.peers().term(term).matching_domains > 0; });
  return std::exchange(affinity_anywhere_, anywhere) != anywhere;
}

size_t Groups::settle(const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets) {
  ranges_.resize(policies.group_scores.size());
  bounds_.resize(policies.group_scores.size());
  spread_.resize(cls.peers.spread.size());
  for (const DomainId id : std::exchange(dirty_domains_, {})) {
    Domain& domain = domains_[id.value];
    domain.dirty = false;
    if (domain.groups.empty()) continue;
    if (const Facts facts = facts_of(shape_.keys[domain.key], id, state); !(facts == domain.facts)) {
      domain.facts = facts;
      mark_groups(domain);
    }
    if (!std::exchange(domain.spread_changed, false)) continue;
    for (size_t i = 0; i < domain.spread.size(); ++i) {
      judge_skew(domain, i, cls);
      if (!cls.peers.spread[shape_.keys[domain.key].spread[i]].rule->required) mark_groups(domain);
    }
  }
  update_fewest(cls);
  if (affinity_turned(state, cls))
    for (uint32_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].nodes > 0) mark(GroupId{i});
  const std::vector<GroupId> dirty = std::exchange(dirty_groups_, {});
  for (const GroupId id : dirty) {
    Group& group = groups_[id.value];
    group.dirty = false;
    if (group.nodes > 0) judge(group, state, policies, cls, sets);
  }
  bool moved = false;
  for (size_t i = 0; i < ranges_.size(); ++i) {
    const auto bounds = ranges_[i].empty() ? std::pair<int64_t, int64_t>()
                                           : std::pair(ranges_[i].begin()->first, ranges_[i].rbegin()->first);
    moved |= std::exchange(bounds_[i], bounds) != bounds;
  }
  if (!moved) {
    for (const GroupId id : dirty) list(id, policies);
    return dirty.size();
  }
  for (uint32_t i = 0; i < groups_.size(); ++i) list(GroupId{i}, policies);
  return groups_.size();
}

void Groups::judge(Group& group, const State& state, const PolicySet& policies, const PodClass& cls,
                   FailureSets& sets) {
  unrate(group);
  read_facts(group, cls, facts_);
  reasons_.clear();
  run_group_filters(policies, cls, facts_, reasons_);
  const FailureSetId failure = sets.intern(reasons_, state.resources());
  version_ += std::exchange(group.failure, failure) != failure;
  if (group.failure != kFits || group.fits.empty()) return;
  group.raw.resize(policies.group_scores.size());
  for (size_t i = 0; i < group.raw.size(); ++i) {
    group.raw[i] = policies.group_scores[i].policy->group_score(cls, facts_);
    if (group.raw[i] != kNoGroupScore) ++ranges_[i][group.raw[i]];
  }
  group.rated = true;
}

void Groups::unrate(Group& group) {
  if (!std::exchange(group.rated, false)) return;
  for (size_t i = 0; i < group.raw.size(); ++i)
    if (group.raw[i] != kNoGroupScore && --ranges_[i][group.raw[i]] == 0) ranges_[i].erase(group.raw[i]);
}

// Brings the group's entry in the ranking up to its verdict.
void Groups::list(GroupId id, const PolicySet& policies) {
  Group& group = groups_[id.value];
  Ranked wanted{};
  if (group.nodes > 0 && group.failure == kFits && !group.fits.empty()) {
    wanted = *group.fits.begin();
    for (size_t i = 0; i < bounds_.size(); ++i) {
      const auto [least, most] = bounds_[i];
      if (group.raw[i] == kNoGroupScore || least == most) continue;
      const auto points = static_cast<int64_t>(Int128{group.raw[i] - least} * kMaxScore / (most - least));
      wanted.score += points * policies.group_scores[i].weight;
    }
  }
  if (group.listed.node == wanted.node && group.listed.score == wanted.score) return;
  if (group.listed.node.valid()) ranking_.erase(group.listed);
  if (wanted.node.valid()) ranking_.insert(wanted);
  group.listed = wanted;
}

void Groups::correct(FailureCounts& counts) const {
  for (const Group& group : groups_) {
    if (group.nodes == 0 || group.failure == kFits) continue;
    const auto nodes = static_cast<int32_t>(group.fits.size());
    counts.add(kFits, -nodes);
    counts.add(group.failure, nodes);
  }
}

size_t Groups::memory_bytes() const {
  size_t total = groups_.capacity() * sizeof(Group) + places_.capacity() * sizeof(Place) +
                 domains_.capacity() * sizeof(Domain) + contributions_.capacity() * sizeof(std::vector<int64_t>);
  for (const Group& group : groups_)
    total += group.domains.capacity() * sizeof(DomainId) + group.fits.size() * sizeof(Ranked);
  return total;
}

}  // namespace berth::engine
