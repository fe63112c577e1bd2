// QuotaTree: how much of each flavor and resource every ClusterQueue and Cohort has, uses, lends and may still take.
//
// Cohorts form a forest, ClusterQueues are leaves. A node keeps what it does not lend (its local quota) and puts the
// rest into its parent; usage fills the local quota first, and what is above it counts in the parent, too. Source:
// Kueue, https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ and /cohort/, and what its controller was seen to do.
//
// Invariants: 1. the subtree's quota of a Cohort is its own nominal quota and what its children lend; 2. its usage is
// the sum of what its children use above their local quota; 3. both hold after every call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/int128.h"
#include "base/strong_id.h"
#include "model/queues.h"

namespace berth::quota {

using QuotaNode = StrongId<struct QuotaNodeTag>;
using FlavorResource = StrongId<struct FlavorResourceTag>;

// Amounts by flavor and resource, by id, in the units of quota. No id twice.
using Amounts = std::vector<std::pair<FlavorResource, int64_t>>;

// Dominant resource share: by how much a node is above its own quota, as a part of what its parent has to lend, in
// thousandths, for the resource where that is most; and its weight.
struct FairShare {
  double unweighted = 0;  // 0: borrows nothing
  int64_t weight = model::kFairWeightUnit;

  bool borrows() const { return unweighted > 0; }
  double weighted() const;  // infinite where a node of weight 0 borrows
  int64_t told() const;     // that, as objects tell it: rounded up, the greatest int64 for all that is beyond it
  // Shares of nodes without weight are more than any other, and compared without their weight.
  friend bool operator<(const FairShare& a, const FairShare& b);
};

class QuotaTree {
 public:
  using Queues = std::map<std::string, model::ClusterQueue, std::less<>>;
  using Cohorts = std::map<std::string, model::Cohort, std::less<>>;

  QuotaTree() = default;
  // Without usage. Cohorts that are only named exist without quota of their own.
  QuotaTree(const Queues& queues, const Cohorts& cohorts);

  QuotaNode queue(std::string_view name) const;
  QuotaNode cohort(std::string_view name) const;
  // Invalid: no node has quota of it.
  FlavorResource find(std::string_view flavor, std::string_view resource) const;
  const std::string& flavor(FlavorResource fr) const { return flavor_resources_[fr.value].first; }
  const std::string& resource(FlavorResource fr) const { return flavor_resources_[fr.value].second; }
  size_t flavor_resources() const { return flavor_resources_.size(); }
  size_t nodes() const { return nodes_.size(); }

  const std::string& name(QuotaNode node) const { return at(node).name; }
  std::string path(QuotaNode node) const;  // "/org/team/queue"
  bool is_queue(QuotaNode node) const { return at(node).is_queue; }
  QuotaNode parent(QuotaNode node) const { return at(node).parent; }
  bool has_parent(QuotaNode node) const { return at(node).parent.valid(); }
  QuotaNode root(QuotaNode node) const;
  const std::vector<QuotaNode>& children(QuotaNode node) const { return at(node).children; }  // by name, queues first
  // All ClusterQueues below it, or itself.
  std::vector<QuotaNode> queues_below(QuotaNode node) const;
  // Its Cohorts' parents form a cycle: nothing below it can be judged.
  bool in_cycle(QuotaNode node) const { return at(node).in_cycle; }

  const model::ResourceQuota& quota(QuotaNode node, FlavorResource fr) const { return at(node).quotas[fr.value]; }
  // Sums beyond int64 are kept exactly, and told as the nearest int64.
  int64_t subtree_quota(QuotaNode node, FlavorResource fr) const { return narrow(at(node).subtree[fr.value]); }
  int64_t usage(QuotaNode node, FlavorResource fr) const { return narrow(at(node).usage[fr.value]); }
  // Quota that nobody else may use.
  int64_t local_quota(QuotaNode node, FlavorResource fr) const { return narrow(wide_local_quota(node, fr)); }
  // Of that, what is not in use.
  int64_t local_available(QuotaNode node, FlavorResource fr) const { return narrow(wide_local_available(node, fr)); }
  // What may still be taken now; below 0 where others have taken more than there is. And if nothing were in use.
  int64_t available(QuotaNode node, FlavorResource fr) const { return narrow(wide_available(node, fr)); }
  int64_t potential(QuotaNode node, FlavorResource fr) const { return narrow(wide_potential(node, fr)); }
  bool has_room(QuotaNode node, const Amounts& usage) const;  // all of it is available
  // More than its subtree's own quota would be in use with so much more.
  bool borrows_with(QuotaNode node, FlavorResource fr, int64_t amount) const;
  // That amount is in use already for none of these.
  bool within_nominal(QuotaNode node, const std::vector<FlavorResource>& resources) const;

  struct Subtree {
    int height = 0;           // of the lowest subtree around the queue whose own quota holds so much more
    bool has_parent = false;  // and it is not the whole tree
  };
  Subtree lowest_subtree_that_fits(QuotaNode queue, FlavorResource fr, int64_t amount) const;

  void add_usage(QuotaNode queue, const Amounts& amounts);
  void remove_usage(QuotaNode queue, const Amounts& amounts);

  FairShare share(QuotaNode node) const;
  // What it would be with so much more in use by the queue, which is the node or below it. Less is earlier: who borrows
  // none of what is asked for is before who does.
  using Share = std::pair<bool, FairShare>;
  Share share_with(QuotaNode node, QuotaNode queue, const Amounts& amounts);

 private:
  struct Node {
    std::string name;
    bool is_queue = false;
    bool in_cycle = false;
    QuotaNode parent;
    std::vector<QuotaNode> children;
    int64_t fair_weight = model::kFairWeightUnit;
    int height = 0;
    // by FlavorResource
    std::vector<model::ResourceQuota> quotas;
    std::vector<Int128> subtree, usage;  // sums of any number of int64
    std::vector<double> lendable;        // of a Cohort with children, by resource (resource_of_), of all flavors
  };

  static int64_t narrow(Int128 amount);
  const Node& at(QuotaNode node) const { return nodes_[node.value]; }
  Int128 wide_local_quota(QuotaNode node, FlavorResource fr) const;
  Int128 wide_local_available(QuotaNode node, FlavorResource fr) const;
  Int128 wide_available(QuotaNode node, FlavorResource fr) const;
  Int128 wide_potential(QuotaNode node, FlavorResource fr) const;
  QuotaNode add_node(const std::string& name, bool is_queue, int64_t weight);
  QuotaNode cohort_node(const std::string& name, const Cohorts& cohorts);
  void learn(const std::vector<model::ResourceGroup>& groups);
  void set_quotas(QuotaNode node, const std::vector<model::ResourceGroup>& groups);
  void cut_cycles();
  void sum_up(QuotaNode node);
  void add(QuotaNode node, FlavorResource fr, Int128 amount);
  void remove(QuotaNode node, FlavorResource fr, Int128 amount);

  std::vector<Node> nodes_;
  std::map<std::string, QuotaNode, std::less<>> queues_, cohorts_;
  std::vector<std::pair<std::string, std::string>> flavor_resources_;
  std::vector<size_t> resource_of_;  // by FlavorResource: which of all resources it is of, counted from 0
  std::map<std::pair<std::string, std::string>, FlavorResource, std::less<>> ids_;
};

// Sums that stay within int64.
int64_t saturating_add(int64_t a, int64_t b);

}  // namespace berth::quota
