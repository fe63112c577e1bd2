// Fleet: nodes that a policy fills, one request after the other.
//
// Equal requests are one class, which keeps the score of every node and looks again only at nodes that changed since it
// last looked. Once kept_scores_max scores are kept, further classes look at every node each time, which decides the
// same. Totals (free, fragment) follow every placement. One thread.
//
// Invariants: 1. a kept score is what the policy says of the node as it was at the class's last look, or is not
// used; 2. a node changes its generation with every placement; 3. the totals are the sums over the nodes.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "base/rng.h"
#include "packing/placement_policy.h"

namespace berth::packing {

struct Placement {
  uint32_t node = 0;  // by its place in the fleet's order
  DeviceMask devices = 0;
  friend bool operator==(const Placement&, const Placement&) = default;
};

// Of four bytes each.
inline constexpr size_t kKeptScoresMax = size_t{64} << 20;

class Fleet {
 public:
  // `policy` and `measure` must outlive it. `seed` is for policies that draw.
  Fleet(std::vector<Node> nodes, PlacementPolicy& policy, const FragmentMeasure& measure, uint64_t seed,
        size_t kept_scores_max = kKeptScoresMax);

  // The best place for the request, which is taken; none if it fits nowhere. Costs the number of nodes (a scan of
  // integers), and a judgement of each that changed since an equal request came.
  std::optional<Placement> place(const Request& request);
  // The two halves of place(): the policy is told of a request; a place for one that it was told of.
  void observe(const Request& request);
  std::optional<Placement> place_observed(const Request& request);
  // Whether some node has room. Costs as place() does.
  bool fits(const Request& request);
  // Takes a place that is free for the request, or gives back one that it took.
  void take(const Request& request, const Placement& placement);
  void give_back(const Request& request, const Placement& placement);

  const std::vector<Node>& nodes() const { return nodes_; }
  int64_t capacity_milli() const { return capacity_milli_; }
  int64_t free_milli() const { return free_milli_; }
  // Of all nodes; see FragmentMeasure::unit().
  int64_t fragment() const { return fragment_; }

 private:
  struct RequestClass {
    std::vector<int32_t> scores;  // by node; kNoRoom where it does not fit
    uint64_t seen = 0;            // the generation up to which they are true
  };
  static constexpr int32_t kNoRoom = -1;

  RequestClass& class_of(const Request& request);
  void refresh(RequestClass& of, const Request& request) const;
  std::optional<uint32_t> best(const RequestClass& of);
  void changed(uint32_t node);

  std::vector<Node> nodes_;
  std::vector<int64_t> fragments_;       // by node
  std::vector<uint64_t> generations_;    // by node
  mutable std::vector<NodeMemo> memos_;  // by node
  PlacementPolicy& policy_;
  const FragmentMeasure& measure_;
  Rng rng_;
  size_t kept_scores_max_;
  absl::flat_hash_map<Request, RequestClass> classes_;
  RequestClass not_kept_;
  uint64_t generation_ = 1;
  uint64_t scores_since_ = 0;  // scores of earlier generations are no longer what the policy says
  int64_t capacity_milli_ = 0;
  int64_t free_milli_ = 0;
  int64_t fragment_ = 0;
};

}  // namespace berth::packing
