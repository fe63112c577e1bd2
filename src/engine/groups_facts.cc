// The part of Groups that reads what a class's terms find in the domains.
#include "engine/groups.h"

namespace berth::engine {

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

// Reads the facts of these domains into `fresh_`.
void Groups::read_fresh(const std::vector<DomainId>& domains, const State& state) {
  fresh_.resize(domains_.size());
  std::vector<size_t> asked(shape_.keys.size());
  for (const DomainId id : domains) ++asked[domains_[id.value].key];
  std::vector<bool> by_term(shape_.keys.size());
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    by_term[key] = asked[key] > 1 && by_term_is_less(shape_.keys[key], asked[key], state);
  for (const DomainId id : domains) {
    const uint32_t key = domains_[id.value].key;
    fresh_[id.value] = by_term[key] ? Facts{} : facts_of(shape_.keys[key], id, state);
    if (by_term[key])
      for (const TermId term : shape_.keys[key].affinity)
        fresh_[id.value].affinity &= state.peers().term(term).at(id).matching > 0;
  }
  for (uint32_t key = 0; key < shape_.keys.size(); ++key)
    if (by_term[key]) read_by_term(shape_.keys[key], state);
}

// Whether the terms have pods in so few domains that reading those is less work than asking each term about `domains`.
bool Groups::by_term_is_less(const GroupShape::Key& key, size_t domains, const State& state) {
  const size_t terms = key.anti_affinity.size() + key.preferred.size() + key.existing.size();
  size_t held = terms;
  const auto add = [&](TermId term) { held += state.peers().term(term).counts.size(); };
  for (const TermId term : key.anti_affinity) add(term);
  for (const TermId term : key.existing) add(term);
  for (const auto& [term, weight] : key.preferred) add(term);
  return held < domains * terms;
}

// What facts_of() says, save affinity, for every domain in which a term of the key has pods. From the last term to the
// first, since the first that forbids a domain is the one named.
void Groups::read_by_term(const GroupShape::Key& key, const State& state) {
  const auto each = [&](TermId term, const auto& act) {
    for (const auto& [domain, count] : state.peers().term(term).counts)
      if (domain.value < fresh_.size()) act(fresh_[domain.value], count);
  };
  for (size_t i = key.anti_affinity.size(); i-- > 0;)
    each(key.anti_affinity[i], [&](Facts& facts, const Term::Count& count) {
      if (count.matching > 0) facts.anti_affinity = key.anti_affinity[i];
    });
  for (const auto& wish : key.preferred)
    each(wish.first,
         [&](Facts& facts, const Term::Count& count) { facts.weight += int64_t{wish.second} * count.matching; });
  for (size_t i = key.existing.size(); i-- > 0;)
    each(key.existing[i], [&](Facts& facts, const Term::Count& count) {
      if (count.anti_owners > 0) facts.existing = key.existing[i];
      facts.weight += count.weight;
    });
}

void Groups::begin(GroupFacts& out, const Group& group, const PodClass& cls) const {
  out.domains = &group.domains;
  out.lacks_affinity_key = shape_.lacks_affinity_key;
  out.affinity = true;
  out.anti_affinity = out.existing = TermId{};
  out.weight = out.room = 0;
  out.spread.resize(cls.peers.spread.size());
}

void Groups::add_facts(const Facts& facts, GroupFacts& out) {
  out.affinity &= facts.affinity;
  if (!out.anti_affinity.valid()) out.anti_affinity = facts.anti_affinity;
  if (!out.existing.valid()) out.existing = facts.existing;
  out.weight += facts.weight;
}

void Groups::read_facts(const Group& group, const PodClass& cls, GroupFacts& out) const {
  begin(out, group, cls);
  out.affinity_anywhere = affinity_anywhere_;
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    const DomainId id = group.domains[key];
    const GroupShape::Key& asked = shape_.keys[key];
    for (size_t i = 0; i < asked.spread.size(); ++i) {
      const SpreadRange& range = spread_[asked.spread[i]];
      const SpreadSum sum = id.valid() ? domains_[id.value].spread[i] : SpreadSum{};
      out.spread[asked.spread[i]] = {id.valid(), sum.matching, range.fewest, range.count, sum.exceeds};
    }
    if (id.valid()) add_facts(domains_[id.value].facts, out);
    else out.lacks_affinity_key |= !asked.affinity.empty();
    if (id.valid()) out.room += room_.worth(id);
  }
}

GroupFacts Groups::facts(NodeSlot slot, const PodClass& cls) const {
  GroupFacts out;
  read_facts(groups_[places_[slot.value].group.value], cls, out);
  return out;
}

}  // namespace berth::engine
