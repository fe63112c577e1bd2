// GatherRoom: for a class whose pods want to be together with others, how many of all those that are still to come each
// domain has room for; until the first of them has a place, which says where the others go.
//
// Those to come are the pods without a place that the class's first gathering term sees, whatever their classes: a
// launcher and its workers, say. Of each class as many count as the domain's nodes that fit could take by what they
// request, at most one in each domain of a term that keeps the class's own pods apart; of all together no more than the
// domain has of any resource, and of domains that keep them apart. Each of these alone may be too much: which of them
// would share a node is not asked.
//
// Used by Groups (engine/groups.h). Owner thread only. Cost: nothing while some pod has a place; else, for each
// settle(), the pods to come, and for each node that changed their classes' filters; all nodes where other classes are
// to come.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>
#include <absl/container/flat_hash_map.h>

#include <functional>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "engine/group_shape.h"
#include "engine/policy_set.h"
#include "engine/state.h"

namespace berth::engine {

// How many pods of the class the node could take by what they request, which is one at least: it fits one.
int64_t pods_that_fit(const NodeView& node, const PodClass& cls);

class GatherRoom {
 public:
  static constexpr size_t kClassesMax = 16;  // of further ones, the pods do not count

  explicit GatherRoom(const GroupShape& shape, const State& state, const PodClass& cls);

  // The node changed.
  void mark(NodeSlot slot);
  // The domains for which worth() is another than before. `fits`: whether the class's own pods fit a node by itself.
  std::vector<DomainId> settle(const State& state, const PolicySet& policies, const PodClass& cls,
                               const std::function<bool(NodeSlot)>& fits);
  // For how many of the pods to come it has room; several times that where it has for all, so that no score that is
  // spread over the domains takes the last one's place for little.
  int64_t worth(DomainId domain) const;

 private:
  struct Demand {
    ClassId cls;  // invalid: the class itself
    uint64_t serial = 0, generation = 0;
    int64_t pods = 0;
  };
  struct Sum {
    std::vector<int64_t> pods;  // by demand
    int64_t slots = 0;          // pods of any, as those that are apart count
    std::vector<Int128> free;   // by resource
    int64_t worth = 0;
  };
  // What a node adds to its domains.
  struct Part {
    std::vector<DomainId> domains;
    DomainId apart;
    std::vector<int64_t> pods, free;
  };

  std::vector<Demand> demand_of(const State& state, const PodClass& cls) const;
  void start(const State& state, const PodClass& cls, std::vector<Demand> demand);
  Part part_of(NodeSlot slot, const State& state, const PolicySet& policies, const PodClass& cls, bool own_fits) const;
  void add(const Part& part, int64_t sign, absl::btree_set<DomainId>& changed);
  int64_t worth_of(const Sum& sum) const;

  std::vector<TopologyKeyId> keys_;  // that gather; empty: nothing to do
  TopologyKeyId apart_key_;          // invalid: the class's own pods may share any domain
  bool active_ = false;
  std::vector<Demand> demand_;
  std::vector<std::pair<ResourceId, Int128>> wanted_;  // by all of the demand
  std::vector<Part> parts_;                            // by node slot
  std::vector<NodeSlot> dirty_;
  absl::btree_map<DomainId, Sum> sums_;
  // By domain that keeps pods apart and domain that gathers: pods by demand, then nodes that fit some.
  absl::flat_hash_map<std::pair<DomainId, DomainId>, std::vector<int64_t>> apart_;
};

}  // namespace berth::engine
