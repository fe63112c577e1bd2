// ReplicaShares: the shares of GPUs on a node that advertises each of its devices as several replicas, each by how many
// replicas it takes.
//
// A share is one of a single device. kubelet chooses the replicas and tells nobody, so which device a share lies on is
// not known; what is known is whether all of them could lie so that none needs two devices. Only that is asked here.
// Replicas that pods request by themselves may lie anywhere, and fill what the shares leave: for them the sum suffices.
// A plain value; what it answers depends on the shares alone, not on the order in which they came.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace berth::engine {

class ReplicaShares {
 public:
  bool empty() const { return sizes_.empty(); }
  void add(int64_t replicas);
  void remove(int64_t replicas);  // such a share is there
  // How many shares take so many replicas.
  int64_t count(int64_t replicas) const;

  // Whether a share of `more` replicas fits beside these, each on one device, where `all` replicas are advertised and
  // each device is `each` of them (the last one fewer, where that does not come out). Bin packing: best fit, the
  // largest first, finds nearly all; where it does not, a search of bounded work, beyond which the answer is no.
  bool fits(int64_t more, int64_t each, int64_t all) const;

 private:
  std::vector<std::pair<int64_t, int64_t>> sizes_;  // replicas of a share, and how many shares; descending
};

}  // namespace berth::engine
