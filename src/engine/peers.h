// PeerIndex: who is where, as far as inter-pod terms ask: for each selector and topology domain, how many placed pods
// it sees, and how many placed pods ask about it.
//
// An identity is what selectors see of a pod: namespace, labels, whether it is being deleted. Selectors and identities
// are matched once, when either appears; placing a pod then costs the selectors that see it and the terms it carries,
// never a look at another pod. A term is a selector and a topology key, shared by all pods that ask the same.
//
// State drives it (engine/state_peers.cc). Selectors, terms and identities are counted by their users.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/ids.h"
#include "engine/topology.h"
#include "model/peers.h"

namespace berth::engine {

struct Identity {
  std::string namespace_name;
  std::shared_ptr<const model::Labels> labels;  // null: none
  bool terminating = false;
  std::vector<SelectorId> matches;  // sorted
  std::vector<PodSlot> pods;        // all that have it, placed or not; unordered
};

// Pods that match all of some peer selectors.
struct Selector {
  std::vector<model::PeerSelector> all_of;  // not empty
  uint32_t users = 0;
  bool counts_by_node = false;  // topology spread, which leaves out nodes pod by pod
  std::vector<TermId> terms;
  absl::btree_set<IdentityId> identities;  // that it matches
};

struct Term {
  // Of placed pods in one domain.
  struct Count {
    int32_t matching = 0;     // that the selector sees
    int32_t anti_owners = 0;  // that carry the term as required anti-affinity
    int64_t weight = 0;       // sum over those that carry it as a preference; required affinity counts 1
    bool empty() const { return matching == 0 && anti_owners == 0 && weight == 0; }
    friend bool operator==(const Count&, const Count&) = default;
  };
  SelectorId selector;
  TopologyKeyId key;
  uint64_t serial = 0;  // unique over time
  uint32_t users = 0;
  absl::flat_hash_map<DomainId, Count> counts;  // none is empty()
  uint32_t matching_domains = 0;                // with matching > 0

  Count at(DomainId domain) const {
    const auto found = counts.find(domain);
    return found == counts.end() ? Count{} : found->second;
  }
};

// A term that a class's pods carry where others can see it.
struct OwnedTerm {
  TermId term;
  int32_t anti = 0;
  int64_t weight = 0;
};

class PeerIndex {
 public:
  IdentityId acquire_identity(const std::string& namespace_name, const std::shared_ptr<const model::Labels>& labels,
                              bool terminating);
  // Forgets an identity that no pod has any more.
  void release_identity(IdentityId id);
  const Identity& identity(IdentityId id) const { return identities_[id.value]; }
  Identity& mutable_identity(IdentityId id) { return identities_[id.value]; }
  // Those of a namespace's pods.
  const absl::btree_set<IdentityId>& identities_in(const std::string& namespace_name) const;

  struct AcquiredSelector {
    SelectorId selector;
    bool is_new = false;  // the placed pods of its identities are not counted yet
  };
  AcquiredSelector acquire_selector(const std::vector<model::PeerSelector>& all_of);
  void acquire_selector(SelectorId known) { ++selectors_[known.value].users; }
  // The identities that lost a match with the selector's last user; what they counted is gone with it.
  std::vector<IdentityId> release_selector(SelectorId id);
  const Selector& selector(SelectorId id) const { return selectors_[id.value]; }

  struct AcquiredTerm {
    TermId term;
    bool is_new = false;
  };
  // The selector and the key stay the caller's to hold and to release after the term.
  AcquiredTerm acquire_term(SelectorId selector, TopologyKeyId key);
  void release_term(TermId id);
  const Term& term(TermId id) const { return terms_[id.value]; }
  size_t term_slots() const { return terms_.size(); }  // every TermId is below

  // A namespace's labels; the matches that come and go with them.
  struct MatchChange {
    IdentityId identity;
    SelectorId selector;
    bool matches = false;
  };
  std::vector<MatchChange> set_namespace_labels(const std::string& name, const model::Labels& labels);

  // Counts a placed pod, or takes it out again (sign −1), in the domains of its node.
  void count_match(SelectorId selector, const NodeDomains& domains, int32_t sign);
  void count_term(TermId term, const NodeDomains& domains, int32_t sign);
  void count_owned(const OwnedTerm& owned, const NodeDomains& domains, int32_t sign);

  // Grows whenever a term is made or forgotten.
  uint64_t terms_version() const { return terms_version_; }
  const model::Labels& namespace_labels(const std::string& name) const;
  // Of all namespaces that have been told, in no order.
  const absl::flat_hash_map<std::string, model::Labels>& all_namespace_labels() const { return namespace_labels_; }

 private:
  struct IdentityKey {
    std::string namespace_name;
    std::shared_ptr<const model::Labels> labels;
    bool terminating = false;
    bool operator==(const IdentityKey& other) const;
    template <typename H>
    friend H AbslHashValue(H state, const IdentityKey& k) {
      if (k.labels) state = H::combine(std::move(state), *k.labels);
      return H::combine(std::move(state), k.namespace_name, k.terminating);
    }
  };
  using Anchor = std::pair<std::string, std::string>;

  bool matches(const Selector& selector, const Identity& identity) const;
  void set_match(IdentityId identity, SelectorId selector, bool matches);
  // A label that every pod the selector matches has; null when none is certain.
  static const model::NodeSelectorRequirement* anchor_of(const Selector& selector);
  absl::btree_set<SelectorId>& listed_under(const Selector& selector);
  void change(Term& term, DomainId domain, const Term::Count& delta);

  std::vector<Identity> identities_;
  std::vector<IdentityId> free_identities_;
  absl::flat_hash_map<IdentityKey, IdentityId> identities_by_key_;
  absl::btree_map<std::string, absl::btree_set<IdentityId>> identities_by_namespace_;
  std::vector<Selector> selectors_;
  std::vector<SelectorId> free_selectors_;
  absl::flat_hash_map<std::vector<model::PeerSelector>, SelectorId> selectors_by_value_;
  absl::flat_hash_map<Anchor, absl::btree_set<SelectorId>> selectors_by_anchor_;
  absl::btree_set<SelectorId> selectors_without_anchor_;
  std::vector<Term> terms_;
  std::vector<TermId> free_terms_;
  uint64_t terms_version_ = 0;
  absl::flat_hash_map<std::string, model::Labels> namespace_labels_;
};

}  // namespace berth::engine
