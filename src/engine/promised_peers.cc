#include "engine/promised_peers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/evaluate.h"

namespace berth::engine {

void PromisedPeers::add(PodSlot pod, NodeSlot node) { count(pod, node, 1); }

void PromisedPeers::leave(PodSlot pod) { count(pod, state_->pod(pod).node, -1); }

void PromisedPeers::count(PodSlot pod, NodeSlot node, int32_t by) {
  const NodeDomains& domains = state_->node(node).domains;
  const auto count_at = [&](TermId term) -> Count* {
    const DomainId domain = domain_of(domains, state_->peers().term(term).key);
    return domain.valid() ? &counts_[{term, domain}] : nullptr;
  };
  for (const SelectorId selector : state_->peers().identity(state_->pod(pod).identity).matches) {
    (by > 0 ? seen_ : unseen_)[selector].push_back(node);
    for (const TermId term : state_->peers().selector(selector).terms)
      if (Count* count = count_at(term); count != nullptr) count->matching += by;
  }
  for (const OwnedTerm& owned : state_->pod_class(state_->pod(pod).cls).peers.owned)
    if (Count* count = owned.anti > 0 ? count_at(owned.term) : nullptr; count != nullptr)
      count->anti_owners += by * owned.anti;
}

const GroupShape& PromisedPeers::shape(ClassId cls) {
  const auto [at, fresh] = shapes_.try_emplace(cls);
  if (fresh) at->second = shape_of(*state_, state_->pod_class(cls));
  return at->second;
}

PromisedPeers::Count PromisedPeers::at(TermId term, DomainId domain) const {
  const Term::Count placed = state_->peers().term(term).at(domain);
  const auto promised = counts_.find({term, domain});
  Count out{placed.matching, placed.anti_owners};
  if (promised == counts_.end()) return out;
  return {out.matching + promised->second.matching, out.anti_owners + promised->second.anti_owners};
}

// Whether some pod, somewhere, matches.
bool PromisedPeers::anywhere(const std::vector<TermId>& terms) const {
  return std::ranges::any_of(terms, [&](TermId id) {
    const Term& term = state_->peers().term(id);
    if (seen_.contains(term.selector)) return true;
    const auto is_left_empty = [&](const auto& each) {
      const auto& [of, count] = each;
      const int32_t placed = of.first == id ? term.at(of.second).matching : 0;
      return placed > 0 && placed + count.matching <= 0;
    };
    return std::cmp_greater(term.matching_domains,
                            unseen_.contains(term.selector) ? std::ranges::count_if(counts_, is_left_empty) : 0);
  });
}

// How many more pods the rule sees there than are placed.
int64_t PromisedPeers::change_in(const ClassPeers::Spread& rule, DomainId domain) const {
  const auto count = [&](const auto& all) -> int64_t {
    const auto at = all.find(rule.selector);
    if (at == all.end()) return 0;
    return std::ranges::count_if(
        at->second, [&](NodeSlot other) { return domain_of(state_->node(other).domains, rule.key) == domain; });
  };
  return count(seen_) - count(unseen_);
}

GroupFacts::Spread PromisedPeers::spread(const PodClass& cls, size_t rule, const Groups& groups, NodeSlot node) const {
  const ClassPeers::Spread& asked = cls.peers.spread[rule];
  GroupFacts::Spread known = groups.facts(node, cls).spread[rule];
  if (!known.in_domain || (!seen_.contains(asked.selector) && !unseen_.contains(asked.selector))) return known;
  known.matching += change_in(asked, domain_of(state_->node(node).domains, asked.key));
  const auto exceeds = [&] {
    return asked.rule->required && known.matching + (asked.matches_self ? 1 : 0) - known.fewest > asked.rule->max_skew;
  };
  if (exceeds() && known.domains >= asked.rule->min_domains) {
    std::map<DomainId, int64_t> matching;
    for (const auto& [name, slot] : state_->nodes_by_name())
      if (const GroupFacts::Spread there = groups.facts(slot, cls).spread[rule]; there.in_domain)
        matching.try_emplace(domain_of(state_->node(slot).domains, asked.key), there.matching);
    std::optional<int64_t> fewest;
    for (const auto& [domain, placed] : matching)
      fewest = std::min(fewest.value_or(INT64_MAX), placed + change_in(asked, domain));
    known.fewest = fewest.value_or(known.fewest);
  }
  known.exceeds = exceeds();
  return known;
}

bool PromisedPeers::admit(const PolicySet& policies, ClassId id, const Groups* groups, NodeSlot node) {
  const GroupShape& shape = this->shape(id);
  if (shape.concerns_nobody()) return true;
  const PodClass& cls = state_->pod_class(id);
  GroupFacts facts;
  if (std::ranges::any_of(cls.peers.spread, [](const auto& spread) { return spread.rule->required; })) {
    if (groups == nullptr) return false;
    for (size_t i = 0; i < cls.peers.spread.size(); ++i) facts.spread.push_back(spread(cls, i, *groups, node));
  }
  facts.lacks_affinity_key = shape.lacks_affinity_key;
  facts.affinity_anywhere = anywhere(cls.peers.affinity);
  std::vector<DomainId> domains;
  for (const GroupShape::Key& key : shape.keys) {
    const DomainId domain = domain_of(state_->node(node).domains, key.key);
    domains.push_back(domain);
    if (!domain.valid()) {
      facts.lacks_affinity_key |= !key.affinity.empty();
      continue;
    }
    for (const TermId term : key.affinity) facts.affinity &= at(term, domain).matching > 0;
    for (const TermId term : key.anti_affinity)
      if (!facts.anti_affinity.valid() && at(term, domain).matching > 0) facts.anti_affinity = term;
    for (const TermId term : key.existing)
      if (!facts.existing.valid() && at(term, domain).anti_owners > 0) facts.existing = term;
  }
  facts.domains = &domains;
  Reasons reasons;
  run_group_filters(policies, cls, facts, reasons);
  return reasons.empty();
}

DomainId PromisedPeers::gathers_in(ClassId id, NodeSlot node) {
  const std::vector<TermId>& terms = state_->pod_class(id).peers.gathering;
  if (terms.empty() || anywhere(terms)) return {};
  return domain_of(state_->node(node).domains, state_->peers().term(terms.front()).key);
}

}  // namespace berth::engine
