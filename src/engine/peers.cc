#include "engine/peers.h"

#include <algorithm>

#include "base/check.h"

namespace berth::engine {
namespace {

const model::Labels& no_labels() {
  static const model::Labels none;
  return none;
}

const model::Labels& labels_of(const std::shared_ptr<const model::Labels>& labels) {
  return labels ? *labels : no_labels();
}

template <typename Entry, typename Id>
Id take_slot(std::vector<Entry>& entries, std::vector<Id>& free) {
  Id id{static_cast<uint32_t>(entries.size())};
  if (!free.empty()) {
    id = free.back();
    free.pop_back();
  } else {
    entries.emplace_back();
  }
  return id;
}

}  // namespace

bool PeerIndex::IdentityKey::operator==(const IdentityKey& other) const {
  return terminating == other.terminating && namespace_name == other.namespace_name &&
         (labels == other.labels || (labels && other.labels && *labels == *other.labels));
}

bool PeerIndex::matches(const Selector& selector, const Identity& identity) const {
  const model::Labels& of_namespace = namespace_labels(identity.namespace_name);
  return std::all_of(selector.all_of.begin(), selector.all_of.end(), [&](const model::PeerSelector& part) {
    return part.matches(identity.namespace_name, of_namespace, labels_of(identity.labels), identity.terminating);
  });
}

const model::Labels& PeerIndex::namespace_labels(const std::string& name) const {
  const auto at = namespace_labels_.find(name);
  return at == namespace_labels_.end() ? no_labels() : at->second;
}

void PeerIndex::set_match(IdentityId identity, SelectorId selector, bool matches) {
  std::vector<SelectorId>& all = identities_[identity.value].matches;
  const auto at = std::lower_bound(all.begin(), all.end(), selector);
  if (matches) {
    all.insert(at, selector);
    selectors_[selector.value].identities.insert(identity);
  } else {
    all.erase(at);
    selectors_[selector.value].identities.erase(identity);
  }
}

IdentityId PeerIndex::acquire_identity(const std::string& namespace_name,
                                       const std::shared_ptr<const model::Labels>& labels, bool terminating) {
  const auto shared = labels && labels->empty() ? nullptr : labels;
  const auto [at, added] = identities_by_key_.try_emplace({namespace_name, shared, terminating});
  if (!added) return at->second;
  const IdentityId id = take_slot(identities_, free_identities_);
  at->second = id;
  identities_[id.value] = {namespace_name, shared, terminating, {}, {}};
  identities_by_namespace_[namespace_name].insert(id);
  const auto consider = [&](const absl::btree_set<SelectorId>& selectors) {
    for (const SelectorId selector : selectors)
      if (matches(selectors_[selector.value], identities_[id.value])) set_match(id, selector, true);
  };
  consider(selectors_without_anchor_);
  if (!selectors_by_anchor_.empty())
    for (const auto& label : labels_of(shared))
      if (const auto anchored = selectors_by_anchor_.find(label); anchored != selectors_by_anchor_.end())
        consider(anchored->second);
  return id;
}

void PeerIndex::release_identity(IdentityId id) {
  Identity& identity = identities_[id.value];
  check(identity.pods.empty(), "an identity is kept while a pod has it");
  for (const SelectorId selector : identity.matches) selectors_[selector.value].identities.erase(id);
  const auto of_namespace = identities_by_namespace_.find(identity.namespace_name);
  of_namespace->second.erase(id);
  if (of_namespace->second.empty()) identities_by_namespace_.erase(of_namespace);
  identities_by_key_.erase({identity.namespace_name, identity.labels, identity.terminating});
  identity = Identity{};
  free_identities_.push_back(id);
}

const model::NodeSelectorRequirement* PeerIndex::anchor_of(const Selector& selector) {
  for (const model::PeerSelector& part : selector.all_of)
    for (const model::NodeSelectorRequirement& requirement : part.pods.requirements)
      if (requirement.op == model::NodeSelectorOperator::kIn && requirement.values.size() == 1) return &requirement;
  return nullptr;
}

absl::btree_set<SelectorId>& PeerIndex::listed_under(const Selector& selector) {
  const model::NodeSelectorRequirement* anchor = anchor_of(selector);
  if (anchor == nullptr) return selectors_without_anchor_;
  return selectors_by_anchor_[{anchor->key, anchor->values.front()}];
}

PeerIndex::AcquiredSelector PeerIndex::acquire_selector(const std::vector<model::PeerSelector>& all_of) {
  const auto [at, added] = selectors_by_value_.try_emplace(all_of);
  if (!added) {
    ++selectors_[at->second.value].users;
    return {at->second, false};
  }
  const SelectorId id = take_slot(selectors_, free_selectors_);
  at->second = id;
  Selector& selector = selectors_[id.value];
  selector.all_of = all_of;
  selector.users = 1;
  selector.counts_by_node = all_of.front().skips_terminating;
  listed_under(selector).insert(id);
  const auto consider = [&](const absl::btree_set<IdentityId>& identities) {
    for (const IdentityId identity : identities)
      if (matches(selector, identities_[identity.value])) set_match(identity, id, true);
  };
  if (all_of.front().namespace_selector) {
    for (const auto& [name, identities] : identities_by_namespace_) consider(identities);
  } else {
    for (const std::string& name : all_of.front().namespaces)
      if (const auto found = identities_by_namespace_.find(name); found != identities_by_namespace_.end())
        consider(found->second);
  }
  return {id, true};
}

std::vector<IdentityId> PeerIndex::release_selector(SelectorId id) {
  Selector& selector = selectors_[id.value];
  if (--selector.users > 0) return {};
  check(selector.terms.empty(), "a selector's terms go before it");
  std::vector<IdentityId> matched(selector.identities.begin(), selector.identities.end());
  for (const IdentityId identity : matched) set_match(identity, id, false);
  auto& list = listed_under(selector);
  list.erase(id);
  if (const auto* anchor = anchor_of(selector); anchor != nullptr && list.empty())
    selectors_by_anchor_.erase({anchor->key, anchor->values.front()});
  selectors_by_value_.erase(selector.all_of);
  selector = Selector{};
  free_selectors_.push_back(id);
  return matched;
}

const absl::btree_set<IdentityId>& PeerIndex::identities_in(const std::string& namespace_name) const {
  static const absl::btree_set<IdentityId> none;
  const auto at = identities_by_namespace_.find(namespace_name);
  return at == identities_by_namespace_.end() ? none : at->second;
}

PeerIndex::AcquiredTerm PeerIndex::acquire_term(SelectorId selector, TopologyKeyId key) {
  for (const TermId id : selectors_[selector.value].terms) {
    if (terms_[id.value].key != key) continue;
    ++terms_[id.value].users;
    return {id, false};
  }
  const TermId id = take_slot(terms_, free_terms_);
  terms_[id.value].selector = selector;
  terms_[id.value].key = key;
  terms_[id.value].users = 1;
  selectors_[selector.value].terms.push_back(id);
  terms_[id.value].serial = ++terms_version_;
  return {id, true};
}

void PeerIndex::release_term(TermId id) {
  Term& term = terms_[id.value];
  if (--term.users > 0) return;
  std::erase(selectors_[term.selector.value].terms, id);
  term = Term{};
  free_terms_.push_back(id);
  ++terms_version_;
}

std::vector<PeerIndex::MatchChange> PeerIndex::set_namespace_labels(const std::string& name,
                                                                    const model::Labels& labels) {
  std::vector<MatchChange> changes;
  if (namespace_labels(name) == labels) return changes;
  if (labels.empty()) namespace_labels_.erase(name);
  else namespace_labels_[name] = labels;
  const auto identities = identities_by_namespace_.find(name);
  if (identities == identities_by_namespace_.end()) return changes;
  for (uint32_t i = 0; i < selectors_.size(); ++i) {
    if (selectors_[i].users == 0) continue;
    for (const IdentityId identity : identities->second) {
      const bool now = matches(selectors_[i], identities_[identity.value]);
      if (now == selectors_[i].identities.contains(identity)) continue;
      set_match(identity, SelectorId{i}, now);
      changes.push_back({identity, SelectorId{i}, now});
    }
  }
  return changes;
}

void PeerIndex::change(Term& term, DomainId domain, const Term::Count& delta) {
  if (!domain.valid()) return;
  Term::Count& count = term.counts[domain];
  const bool matched = count.matching > 0;
  count.matching += delta.matching;
  count.anti_owners += delta.anti_owners;
  count.weight += delta.weight;
  check(count.matching >= 0 && count.anti_owners >= 0, "a pod is taken out of a count that it was in");
  term.matching_domains += static_cast<uint32_t>((count.matching > 0) - matched);
  if (count.empty()) term.counts.erase(domain);
}

void PeerIndex::count_term(TermId id, const NodeDomains& domains, int32_t sign) {
  Term& term = terms_[id.value];
  change(term, domain_of(domains, term.key), {.matching = sign});
}

void PeerIndex::count_match(SelectorId selector, const NodeDomains& domains, int32_t sign) {
  for (const TermId id : selectors_[selector.value].terms) count_term(id, domains, sign);
}

void PeerIndex::count_owned(const OwnedTerm& owned, const NodeDomains& domains, int32_t sign) {
  Term& term = terms_[owned.term.value];
  change(term, domain_of(domains, term.key), {.anti_owners = sign * owned.anti, .weight = sign * owned.weight});
}

}  // namespace berth::engine
