// The part of Groups that judges a node as it would be without some of its pods.
#include <algorithm>
#include <utility>

#include "engine/groups.h"

namespace berth::engine {
namespace {

template <typename Id>
void sort_unique(std::vector<Id>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

template <typename Id>
void add(std::vector<std::pair<Id, int32_t>>& counts, Id id, int32_t delta) {
  const auto at = std::find_if(counts.begin(), counts.end(), [id](const auto& count) { return count.first == id; });
  if (at == counts.end()) return counts.emplace_back(id, delta), void();
  at->second += delta;
  if (at->second != 0) return;
  *at = counts.back();
  counts.pop_back();
}

template <typename Id>
int32_t count_of(const std::vector<std::pair<Id, int32_t>>& counts, Id id) {
  for (const auto& [counted, count] : counts)
    if (counted == id) return count;
  return 0;
}

}  // namespace

// Whose counts can turn a verdict.
void Groups::list_judges(const State& state, const PodClass& cls) {
  for (const GroupShape::Key& key : shape_.keys) {
    for (const TermId term : key.affinity) judging_selectors_.push_back(state.peers().term(term).selector);
    for (const TermId term : key.anti_affinity) judging_selectors_.push_back(state.peers().term(term).selector);
    for (const uint32_t rule : key.spread)
      if (cls.peers.spread[rule].rule->required) judging_selectors_.push_back(cls.peers.spread[rule].selector);
    judging_terms_.insert(judging_terms_.end(), key.existing.begin(), key.existing.end());
  }
  sort_unique(judging_selectors_);
  sort_unique(judging_terms_);
}

bool Groups::count_gone(const PodState& pod, const State& state, int32_t sign, Gone& gone) const {
  bool depends = false;
  const auto count = [&](auto& counts, auto id, int32_t delta) {
    add(counts, id, delta);
    depends = true;
  };
  const std::vector<SelectorId>& seen_by = state.peers().identity(pod.identity).matches;
  const bool few = judging_selectors_.size() < seen_by.size();
  const std::vector<SelectorId>&fewer = few ? judging_selectors_ : seen_by, &more = few ? seen_by : judging_selectors_;
  for (const SelectorId id : fewer)
    if (std::binary_search(more.begin(), more.end(), id)) count(gone.seen, id, sign);
  if (judging_terms_.empty()) return depends;
  for (const OwnedTerm& owned : state.pod_class(pod.cls).peers.owned)
    if (owned.anti > 0 && std::binary_search(judging_terms_.begin(), judging_terms_.end(), owned.term))
      count(gone.carried, owned.term, sign * owned.anti);
  return depends;
}

Groups::Facts Groups::live_facts_of(const GroupShape::Key& key, DomainId domain, const State& state, const Gone& gone) {
  Facts facts;
  const PeerIndex& peers = state.peers();
  const auto matching = [&](TermId term) {
    return peers.term(term).at(domain).matching - count_of(gone.seen, peers.term(term).selector);
  };
  for (const TermId term : key.affinity) facts.affinity &= matching(term) > 0;
  for (const TermId term : key.anti_affinity)
    if (!facts.anti_affinity.valid() && matching(term) > 0) facts.anti_affinity = term;
  for (const TermId term : key.existing)
    if (!facts.existing.valid() && peers.term(term).at(domain).anti_owners > count_of(gone.carried, term))
      facts.existing = term;
  return facts;
}

void Groups::read_live_facts(NodeSlot slot, const State& state, const PodClass& cls, const Gone& gone,
                             GroupFacts& out) const {
  const Group& group = groups_[places_[slot.value].group.value];
  begin(out, group, cls);
  out.affinity_anywhere = affinity_anywhere_without(gone, slot, state, cls);
  for (uint32_t key = 0; key < shape_.keys.size(); ++key) {
    const DomainId id = group.domains[key];
    const GroupShape::Key& asked = shape_.keys[key];
    for (size_t i = 0; i < asked.spread.size(); ++i)
      out.spread[asked.spread[i]] = live_spread(slot, key, i, state, cls, gone);
    if (id.valid()) add_facts(live_facts_of(asked, id, state, gone), out);
    else out.lacks_affinity_key |= !asked.affinity.empty();
  }
}

bool Groups::affinity_anywhere_without(const Gone& gone, NodeSlot slot, const State& state, const PodClass& cls) {
  const PeerIndex& peers = state.peers();
  return std::any_of(cls.peers.affinity.begin(), cls.peers.affinity.end(), [&](TermId id) {
    const Term& term = peers.term(id);
    const int32_t here = term.at(domain_of(state.node(slot).domains, term.key)).matching;
    const bool last = here > 0 && here <= count_of(gone.seen, term.selector);
    return term.matching_domains > (last ? 1U : 0U);
  });
}

// What a constraint sees of the node's domain without the pods that are gone from the node. No other domain has
// changed, and this one has not become fuller than it was.
GroupFacts::Spread Groups::live_spread(NodeSlot slot, uint32_t key, size_t index, const State& state,
                                       const PodClass& cls, const Gone& gone) const {
  const uint32_t rule = shape_.keys[key].spread[index];
  const ClassPeers::Spread& spread = cls.peers.spread[rule];
  const SpreadRange& range = spread_[rule];
  const DomainId id = groups_[places_[slot.value].group.value].domains[key];
  if (!id.valid()) return {false, 0, range.fewest, range.count, false};
  const SpreadSum& sum = domains_[id.value].spread[index];
  const bool contributes = slot.value < contributions_.size() && !contributions_[slot.value].empty();
  const int64_t own = contributes ? contributions_[slot.value][first_spread_[key] + index] : -1;
  int64_t matching = sum.matching;
  if (own >= 0) {
    const int64_t here = matching_on(state.node(slot), spread);
    matching += std::max<int64_t>(here - count_of(gone.seen, spread.selector), 0) - own;
  }
  const bool enough = range.count >= static_cast<uint32_t>(spread.rule->min_domains);
  const int64_t fewest = sum.nodes > 0 && enough ? std::min(range.fewest, matching) : range.fewest;
  const int64_t skew = matching + (spread.matches_self ? 1 : 0) - fewest;
  return {true, matching, fewest, range.count, spread.rule->required && skew > spread.rule->max_skew};
}

}  // namespace berth::engine
