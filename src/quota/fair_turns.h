// FairTurns: whose turn it is of those that claim quota, by fair shares.
//
//   FairTurns turns(tree, {{queue, &usage, &key}, ...});
//   while (!turns.empty()) take(turns.next());
//
// The tournament of Kueue's fair sharing: at every Cohort the child goes on that would have the least share with what
// its first claims (QuotaTree::share_with), then the one of higher priority, then the older; of a queue, the claims
// come in the order that is given. Trees have their turns by their first claims. Before all that, those that something
// has been promised have theirs, whatever the shares.
//
// Between two turns what is in use may change in the queue whose turn was the last, and nowhere else. O(log of the
// children) shares and comparisons for each Cohort above it.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "quota/quota_tree.h"
#include "quota/waiting.h"

namespace berth::quota {

class FairTurns {
 public:
  struct Claim {
    QuotaNode queue;
    const Amounts* usage;  // both outlive the turns
    const OrderKey* key;
    int round = kByShares;  // less is earlier, in the order that is given
  };
  static constexpr int kByShares = 2;

  FairTurns(QuotaTree& tree, std::vector<Claim> claims);

  bool empty() const { return left_ == 0; }
  // The index of the claim whose turn it is, which has had it then.
  size_t next();

 private:
  struct Child {  // of a Cohort, with the claim that is the first below it
    QuotaTree::Share share;
    const OrderKey* key;
    size_t claim;
    QuotaNode node;
  };
  struct Earlier {
    bool operator()(const Child& a, const Child& b) const;
  };
  using Contest = std::set<Child, Earlier>;
  struct Line {  // a queue's claims, by index
    std::vector<size_t> claims = {};
    size_t done = 0;
  };

  size_t first_below(QuotaNode node) const;
  void look_at(QuotaNode queue);

  static constexpr size_t kNone = ~size_t{0};
  QuotaTree& tree_;
  std::vector<Claim> claims_;
  std::vector<size_t> promised_;  // by index
  std::vector<bool> done_;
  size_t left_ = 0, had_promised_ = 0, first_ = 0;  // first_: the least index of those left
  absl::flat_hash_map<uint32_t, Line> lines_;
  absl::flat_hash_map<uint32_t, Contest> contests_;
  absl::flat_hash_map<uint32_t, Contest::iterator> in_contest_;  // by the child
  QuotaNode last_ = {};                                          // whose turn it was
};

}  // namespace berth::quota
