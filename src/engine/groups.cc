#include "engine/groups.h"

#include <algorithm>
#include <utility>

#include "base/int128.h"
#include "engine/evaluate.h"

namespace berth::engine {
Groups::Groups(GroupShape shape, const State& state, const PodClass& cls, bool by_pool)
    : shape_(std::move(shape)),
      by_pool_(by_pool),
      room_(shape_, state, cls),
      domains_of_(shape_.keys.size()),
      spread_(cls.peers.spread.size()),
      buckets_(1) {
  size_t constraints = 0;
  for (const GroupShape::Key& key : shape_.keys) {
    first_spread_.push_back(constraints);
    constraints += key.spread.size();
  }
  list_judges(state, cls);
  if (shape_.keys.size() < 2) return;
  for (uint32_t i = 0; i < shape_.keys.size(); ++i) {
    const GroupShape::Key& key = shape_.keys[i];
    const bool other_terms =
        !key.affinity.empty() || !key.anti_affinity.empty() || !key.preferred.empty() || !key.existing.empty();
    const bool required = std::all_of(key.spread.begin(), key.spread.end(),
                                      [&](uint32_t rule) { return cls.peers.spread[rule].rule->required; });
    if (other_terms || !required) continue;
    const auto domains = [&](uint32_t k) { return state.topology().domain_count(shape_.keys[k].key); };
    if (gate_ == UINT32_MAX || domains(i) < domains(gate_)) gate_ = i;
  }
}

void Groups::update(NodeSlot slot, const State& state, const PodClass& cls, bool fits, int64_t score) {
  if (places_.size() <= slot.value) places_.resize(state.node_slots());
  if (domains_.size() < state.topology().domain_slots()) domains_.resize(state.topology().domain_slots());
  room_.mark(slot);
  move(slot, state);
  update_spread(slot, state, cls);
  const GroupId group = places_[slot.value].group;
  if (!group.valid()) return;
  rank(slot, fits, {score, state.node(slot).order, slot});
  for (const DomainId domain : groups_[group.value].domains) mark(domain);
}

// Puts the node into the group of its domains, and of its pool.
void Groups::move(NodeSlot slot, const State& state) {
  const NodeState& node = state.node(slot);
  in_domains_.clear();
  for (const GroupShape::Key& key : shape_.keys) in_domains_.push_back(domain_of(node.domains, key.key));
  const uint32_t pool = by_pool_ ? node.pool : 0;
  Place& place = places_[slot.value];
  if (place.group.valid()) {
    const Group& group = groups_[place.group.value];
    if (node.present && group.domains == in_domains_ && group.pool == pool) return;
    leave_group(slot);
  }
  if (!node.present) return;
  place.group = group_of(in_domains_, pool);
  ++groups_[place.group.value].nodes;
}

GroupId Groups::group_of(const std::vector<DomainId>& domains, uint32_t pool) {
  const auto [at, added] = groups_by_domains_.try_emplace({domains, pool});
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
      if (key == gate_) {
        if (domain.bucket == 0) {
          domain.bucket = static_cast<uint32_t>(buckets_.size());
          buckets_.emplace_back();
        }
        buckets_[domain.bucket].full = false;
      }
    }
    domain.groups.push_back(id);
    if (key == gate_) groups_[id.value].bucket = domain.bucket;
  }
  groups_[id.value].domains = domains;
  groups_[id.value].pool = pool;
  mark(id);
  return id;
}

void Groups::leave_group(NodeSlot slot) {
  if (places_[slot.value].fits) ++version_;  // its new group may have another verdict
  rank(slot, false, {});
  withdraw_spread(slot);
  const GroupId id = std::exchange(places_[slot.value].group, GroupId{});
  Group& group = groups_[id.value];
  for (const DomainId domain : group.domains) mark(domain);
  mark(id);
  if (--group.nodes > 0) return;
  unrate(group);
  if (group.listed.node.valid()) buckets_[group.bucket].ranking.erase(group.listed);
  for (uint32_t key = 0; key < group.domains.size(); ++key) {
    const DomainId domain = group.domains[key];
    if (!domain.valid()) continue;
    std::erase(domains_[domain.value].groups, id);
    if (domains_[domain.value].groups.empty()) std::erase(domains_of_[key], domain);
  }
  groups_by_domains_.erase({group.domains, group.pool});
  group = Group{};
  free_groups_.push_back(id);
}

void Groups::rank(NodeSlot slot, bool fits, const Ranked& ranked) {
  Place& place = places_[slot.value];
  Group& group = groups_[place.group.value];
  if (place.fits == fits && (!fits || (!(place.ranked < ranked) && !(ranked < place.ranked)))) return;
  if (place.fits) group.fits.erase(place.ranked);
  if (fits) group.fits.insert(ranked);
  count(group, int32_t{fits} - int32_t{place.fits});
  place.fits = fits;
  place.ranked = ranked;
  mark(place.group);
}

void Groups::mark(DomainId domain) {
  if (!domain.valid() || std::exchange(domains_[domain.value].dirty, true)) return;
  dirty_domains_.push_back(domain);
}

void Groups::mark(GroupId group) {
  if (!std::exchange(groups_[group.value].dirty, true)) dirty_groups_.push_back(group);
}

void Groups::mark_groups(const Domain& domain) {
  for (const GroupId group : domain.groups) mark(group);
}

// Whether some pod, somewhere, matches required affinity.
bool Groups::affinity_anywhere(const State& state, const PodClass& cls) {
  return std::any_of(cls.peers.affinity.begin(), cls.peers.affinity.end(),
                     [&](TermId term) { return state.peers().term(term).matching_domains > 0; });
}

// `nodes` more of the group's fit by themselves, or fewer.
void Groups::count(const Group& group, int32_t nodes) {
  buckets_[group.bucket].open.add(group.failure, nodes);
  buckets_[group.bucket].closed.add(group.closed, nodes);
}

size_t Groups::settle(const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets) {
  bounds_.resize(policies.group_scores_of(cls).size());
  std::vector<DomainId> changed = std::exchange(dirty_domains_, {});
  for (const DomainId id : changed) domains_[id.value].dirty = false;
  std::erase_if(changed, [&](DomainId id) { return domains_[id.value].groups.empty(); });
  read_fresh(changed, state);
  for (const DomainId id : changed) {
    Domain& domain = domains_[id.value];
    if (!(fresh_[id.value] == domain.facts)) {
      domain.facts = fresh_[id.value];
      mark_groups(domain);
    }
    if (!std::exchange(domain.spread_changed, false)) continue;
    for (size_t i = 0; i < domain.spread.size(); ++i) {
      judge_skew(domain, i, cls);
      if (!cls.peers.spread[shape_.keys[domain.key].spread[i]].rule->required) mark_groups(domain);
    }
  }
  update_fewest(cls);
  const auto fits = [&](NodeSlot slot) { return slot.value < places_.size() && places_[slot.value].fits; };
  for (const DomainId id : room_.settle(state, policies, cls, fits)) mark_groups(domains_[id.value]);
  const bool anywhere = affinity_anywhere(state, cls);
  if (std::exchange(affinity_anywhere_, anywhere) != anywhere)
    for (uint32_t i = 0; i < groups_.size(); ++i)
      if (groups_[i].nodes > 0) mark(GroupId{i});
  std::vector<GroupId> dirty = std::exchange(dirty_groups_, {});
  for (const GroupId id : dirty) {
    Group& group = groups_[id.value];
    group.dirty = false;
    if (group.nodes > 0) judge(group, state, policies, cls, sets);
  }
  if (update_bounds()) {
    dirty.clear();
    for (uint32_t i = 0; i < groups_.size(); ++i) dirty.push_back(GroupId{i});
  }
  list(dirty, policies, cls);
  return dirty.size();
}

// The range of each score over all groups that fit. True: one has moved.
bool Groups::update_bounds() {
  bool moved = false;
  for (size_t i = 0; i < bounds_.size(); ++i) {
    bool any = false;
    std::pair<int64_t, int64_t> bounds;
    for (const Bucket& bucket : buckets_) {
      if (bucket.shut() || bucket.ranges.size() <= i || bucket.ranges[i].empty()) continue;
      const std::pair own(bucket.ranges[i].begin()->first, bucket.ranges[i].rbegin()->first);
      bounds = any ? std::pair(std::min(bounds.first, own.first), std::max(bounds.second, own.second)) : own;
      any = true;
    }
    moved |= std::exchange(bounds_[i], bounds) != bounds;
  }
  return moved;
}

void Groups::judge(Group& group, const State& state, const PolicySet& policies, const PodClass& cls,
                   FailureSets& sets) {
  unrate(group);
  read_facts(group, cls, facts_);
  const auto verdict = [&](bool full) {
    if (gate_ != UINT32_MAX && group.bucket != 0)
      for (const uint32_t rule : shape_.keys[gate_].spread) facts_.spread[rule].exceeds = full;
    reasons_.clear();
    run_group_filters(policies, cls, facts_, reasons_);
    return sets.intern(reasons_, state.resources());
  };
  const FailureSetId closed = group.bucket == 0 ? kFits : verdict(true);
  const FailureSetId open = verdict(false);
  if (group.failure != open || group.closed != closed) {
    const auto nodes = static_cast<int32_t>(group.fits.size());
    count(group, -nodes);
    group.failure = open;
    group.closed = closed;
    count(group, nodes);
    ++version_;
  }
  if (group.failure != kFits || group.fits.empty()) return;
  auto& ranges = buckets_[group.bucket].ranges;
  const std::vector<WeightedScore>& scores = policies.group_scores_of(cls);
  ranges.resize(scores.size());
  group.raw.resize(scores.size());
  for (size_t i = 0; i < group.raw.size(); ++i) {
    group.raw[i] = scores[i].policy->group_score(cls, facts_);
    if (group.raw[i] != kNoGroupScore) ++ranges[i][group.raw[i]];
  }
  group.rated = true;
}

void Groups::unrate(Group& group) {
  if (!std::exchange(group.rated, false)) return;
  auto& ranges = buckets_[group.bucket].ranges;
  for (size_t i = 0; i < group.raw.size(); ++i)
    if (group.raw[i] != kNoGroupScore && --ranges[i][group.raw[i]] == 0) ranges[i].erase(group.raw[i]);
}

// Brings the entries of these groups in their buckets' rankings up to their verdicts. All that is old goes first: a
// node that was the best of one group may now be that of another.
void Groups::list(const std::vector<GroupId>& groups, const PolicySet& policies, const PodClass& cls) {
  std::vector<GroupId> moved;
  for (const GroupId id : groups) {
    Group& group = groups_[id.value];
    const Ranked wanted = entry_of(group, policies, cls);
    if (group.listed.node == wanted.node && group.listed.score == wanted.score) continue;
    if (group.listed.node.valid()) buckets_[group.bucket].ranking.erase(group.listed);
    group.listed = wanted;
    moved.push_back(id);
  }
  for (const GroupId id : moved)
    if (const Group& group = groups_[id.value]; group.listed.node.valid())
      buckets_[group.bucket].ranking.insert(group.listed);
}

// The best node of a group that fits, with the score that it has among all of them; no node of another.
Groups::Ranked Groups::entry_of(const Group& group, const PolicySet& policies, const PodClass& cls) const {
  if (group.nodes == 0 || group.failure != kFits || group.fits.empty()) return {};
  Ranked entry = *group.fits.begin();
  for (size_t i = 0; i < bounds_.size(); ++i) {
    const auto [least, most] = bounds_[i];
    if (group.raw[i] == kNoGroupScore || least == most) continue;
    const auto points = static_cast<int64_t>(Int128{group.raw[i] - least} * kMaxScore / (most - least));
    entry.score += points * policies.group_weight(cls, i, group.pool);
  }
  return entry;
}

NodeSlot Groups::best() const {
  const Ranked* best = nullptr;
  for (const Bucket& bucket : buckets_)
    if (!bucket.shut() && !bucket.ranking.empty() && (best == nullptr || *bucket.ranking.begin() < *best))
      best = &*bucket.ranking.begin();
  return best == nullptr ? NodeSlot{} : best->node;
}

FailureSetId Groups::failure(NodeSlot slot) const {
  const Group& group = groups_[places_[slot.value].group.value];
  return buckets_[group.bucket].shut() ? group.closed : group.failure;
}

void Groups::correct(FailureCounts& counts) const {
  for (const Bucket& bucket : buckets_) {
    const FailureCounts& verdicts = bucket.shut() ? bucket.closed : bucket.open;
    for (uint32_t id = kFits.value + 1; id < verdicts.by_set.size(); ++id) {
      counts.add(kFits, -static_cast<int32_t>(verdicts.by_set[id]));
      counts.add(FailureSetId{id}, static_cast<int32_t>(verdicts.by_set[id]));
    }
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
