// Groups: a pod class's view of the fleet by topology, for classes that inter-pod terms concern.
//
// Nodes that lie in the same domains of every key that matters to the class form a group: inter-pod affinity,
// anti-affinity and topology spread judge them alike, from counts per domain, so one verdict and one score serve the
// whole group. Within a group the nodes that fit by themselves stand in order of score. A placed pod changes the facts
// of its node's domains; only groups in a domain whose facts changed are judged again, and all of them when the fewest
// pods of a spread constraint, or the range of a score, moved.
//
// A key with few domains that only required spread constraints ask about (zones beside hosts) is a gate: whether its
// domain is too full is not part of a group's verdict but of its bucket, the groups in that domain. A full zone closes,
// and opens again, without a look at its nodes.
//
// Used by Candidates (engine/candidates.h), which tells it of every node that changed and then calls settle().
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <vector>

#include "engine/failure_sets.h"
#include "engine/gather_room.h"
#include "engine/group_shape.h"
#include "engine/policy_set.h"
#include "engine/state.h"

namespace berth::engine {

class Groups {
 public:
  // `by_pool`: a score may weigh otherwise in each pool of nodes, so that no group has nodes of two.
  Groups(GroupShape shape, const State& state, const PodClass& cls, bool by_pool);

  const GroupShape& shape() const { return shape_; }
  // The node changed: whether it fits by itself, and how well. Nodes that do not exist are updated, too.
  void update(NodeSlot slot, const State& state, const PodClass& cls, bool fits, int64_t score);
  // Judges what the updates changed; the number of groups judged.
  size_t settle(const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets);

  // As of the last settle().
  NodeSlot best() const;
  // Why the group of a node that fits by itself does not fit; kFits when it does.
  FailureSetId failure(NodeSlot slot) const;
  // Moves the nodes whose group does not fit from kFits to their reasons.
  void correct(FailureCounts& counts) const;
  // Grows whenever what correct() does may have changed.
  uint64_t version() const { return version_; }
  // The facts that a node's group is judged by.
  GroupFacts facts(NodeSlot slot, const PodClass& cls) const;
  // Pods that are taken for gone from one node, as far as verdicts about it depend on them.
  struct Gone {
    std::vector<std::pair<SelectorId, int32_t>> seen;  // by a selector: how many
    std::vector<std::pair<TermId, int32_t>> carried;   // as required anti-affinity: by how many
  };
  // Counts a pod among the gone, or no more (sign −1). False: no verdict depends on the pod.
  bool count_gone(const PodState& pod, const State& state, int32_t sign, Gone& gone) const;
  // The facts as the state is now, less those that are gone and without `weight`; if since the last settle() nothing
  // changed but this very node.
  void read_live_facts(NodeSlot slot, const State& state, const PodClass& cls, const Gone& gone, GroupFacts& out) const;
  size_t memory_bytes() const;

 private:
  struct Ranked {
    int64_t score;
    uint64_t order;
    NodeSlot node;
    friend bool operator<(const Ranked& a, const Ranked& b) {
      return a.score != b.score ? a.score > b.score : a.order < b.order;
    }
  };
  struct Group {
    std::vector<DomainId> domains;  // by key of the shape; invalid where its nodes lack the label
    uint32_t pool = 0;              // of its nodes, where groups are by pool
    uint32_t nodes = 0;
    absl::btree_set<Ranked> fits;  // its nodes that fit by themselves
    uint32_t bucket = 0;
    FailureSetId failure = kFits;  // while its bucket is open
    FailureSetId closed = kFits;   // and while it is closed
    std::vector<int64_t> raw;      // by group score policy
    Ranked listed{};               // its entry in the bucket's ranking; no node: none
    bool rated = false;            // `raw` is counted in the bucket's ranges
    bool dirty = false;
  };
  // The groups in one domain of the gate; the first one: those in none, which is all of them where there is no gate.
  struct Bucket {
    bool full = false;                                       // the gate's domain exceeds a constraint
    absl::btree_set<Ranked> ranking;                         // the best node of each group that fits while it is open
    std::vector<absl::btree_map<int64_t, uint32_t>> ranges;  // by group score policy: raw scores of those groups
    FailureCounts open, closed;  // of the nodes that fit by themselves: their groups' verdicts
    // Where no filter heeds constraints, a full domain keeps nobody out.
    bool shut() const { return full && (closed.by_set.empty() || closed.by_set[kFits.value] == 0); }
  };
  struct Place {
    GroupId group;
    bool fits = false;
    Ranked ranked{};
  };
  struct SpreadSum {
    uint32_t nodes = 0;  // that count
    int64_t matching = 0;
    bool exceeds = false;
  };
  struct Facts {
    bool affinity = true;  // each affinity term of the key has a pod here
    TermId anti_affinity;  // the first term that forbids the domain
    TermId existing;
    int64_t weight = 0;
    friend bool operator==(const Facts&, const Facts&) = default;
  };
  struct Domain {
    uint32_t key = 0;
    uint32_t bucket = 0;  // of the gate's domains
    std::vector<GroupId> groups;
    Facts facts;
    std::vector<SpreadSum> spread;  // as GroupShape::Key::spread
    bool dirty = false;
    bool spread_changed = false;
  };
  struct SpreadRange {
    absl::btree_map<int64_t, uint32_t> domains;  // by matching pods, how many
    uint32_t count = 0;
    uint32_t judged = 0;  // `count` at the last settle()
    int64_t fewest = 0;
  };

  void list_judges(const State& state, const PodClass& cls);
  void move(NodeSlot slot, const State& state);
  GroupId group_of(const std::vector<DomainId>& domains, uint32_t pool);
  void leave_group(NodeSlot slot);
  void rank(NodeSlot slot, bool fits, const Ranked& ranked);
  void withdraw_spread(NodeSlot slot);
  void update_spread(NodeSlot slot, const State& state, const PodClass& cls);
  void add_spread(uint32_t key, size_t index, DomainId domain, int32_t nodes, int64_t matching);
  void mark(DomainId domain);
  void mark(GroupId group);
  static Facts facts_of(const GroupShape::Key& key, DomainId domain, const State& state);
  void read_fresh(const std::vector<DomainId>& domains, const State& state);
  static bool by_term_is_less(const GroupShape::Key& key, size_t domains, const State& state);
  void read_by_term(const GroupShape::Key& key, const State& state);
  void begin(GroupFacts& out, const Group& group, const PodClass& cls) const;
  static Facts live_facts_of(const GroupShape::Key& key, DomainId domain, const State& state, const Gone& gone);
  static void add_facts(const Facts& facts, GroupFacts& out);
  void read_facts(const Group& group, const PodClass& cls, GroupFacts& out) const;
  void mark_groups(const Domain& domain);
  void judge_skew(Domain& domain, size_t index, const PodClass& cls);
  void count(const Group& group, int32_t nodes);
  bool update_bounds();
  void update_fewest(const PodClass& cls);
  static int64_t matching_on(const NodeState& node, const ClassPeers::Spread& spread);
  GroupFacts::Spread live_spread(NodeSlot slot, uint32_t key, size_t index, const State& state, const PodClass& cls,
                                 const Gone& gone) const;
  static bool affinity_anywhere(const State& state, const PodClass& cls);
  static bool affinity_anywhere_without(const Gone& gone, NodeSlot slot, const State& state, const PodClass& cls);
  void judge(Group& group, const State& state, const PolicySet& policies, const PodClass& cls, FailureSets& sets);
  void unrate(Group& group);
  void list(const std::vector<GroupId>& groups, const PolicySet& policies, const PodClass& cls);
  Ranked entry_of(const Group& group, const PolicySet& policies, const PodClass& cls) const;

  GroupShape shape_;
  bool by_pool_ = false;
  std::vector<SelectorId> judging_selectors_;  // of required terms and constraints; sorted
  std::vector<TermId> judging_terms_;          // of others that see the class's pods; sorted
  uint32_t gate_ = UINT32_MAX;                 // index into the shape's keys; UINT32_MAX: none
  std::vector<Group> groups_;
  std::vector<GroupId> free_groups_;
  absl::flat_hash_map<std::pair<std::vector<DomainId>, uint32_t>, GroupId> groups_by_domains_;  // and pool
  std::vector<Place> places_;                                                                   // by node slot
  // By node slot: matching pods by spread constraint of the shape's keys, in their order; −1: left out.
  std::vector<std::vector<int64_t>> contributions_;
  GatherRoom room_;
  std::vector<size_t> first_spread_;               // by key of the shape: its first constraint there
  std::vector<Domain> domains_;                    // by DomainId
  std::vector<std::vector<DomainId>> domains_of_;  // by key of the shape: those with groups
  std::vector<DomainId> dirty_domains_;
  std::vector<GroupId> dirty_groups_;
  std::vector<SpreadRange> spread_;  // by spread constraint
  std::vector<Bucket> buckets_;
  std::vector<std::pair<int64_t, int64_t>> bounds_;  // of the open buckets' ranges, as the rankings know them
  bool affinity_anywhere_ = false;
  uint64_t version_ = 0;
  GroupFacts facts_;                  // scratch
  Reasons reasons_;                   // scratch
  std::vector<DomainId> in_domains_;  // scratch
  std::vector<Facts> fresh_;          // scratch, by DomainId
};

}  // namespace berth::engine
