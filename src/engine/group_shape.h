// GroupShape: the topology keys that matter to a pod class, and the terms that ask about each. A key that no node has
// is left out: all nodes are alike in it, however many such keys a pod brings.
#pragma once

#include <utility>
#include <vector>

#include "engine/state.h"

namespace berth::engine {

struct GroupShape {
  struct Key {
    TopologyKeyId key;
    std::vector<TermId> affinity;                       // of the class itself
    std::vector<TermId> anti_affinity;                  //
    std::vector<std::pair<TermId, int32_t>> preferred;  //
    std::vector<TermId> existing;                       // of others, that see the class's pods
    std::vector<uint32_t> spread;                       // indexes into ClassPeers::spread
    bool gathers = false;                               // some of ClassPeers::gathering
    friend bool operator==(const Key&, const Key&) = default;
  };
  std::vector<Key> keys;
  std::vector<uint64_t> serials;    // of their terms: ids are reused, these are not
  bool lacks_affinity_key = false;  // a key that was left out is one of required affinity
  bool lacks_spread_key[2] = {};    // or of a spread constraint that prefers, of one that requires
  bool concerns_nobody() const { return keys.empty() && !lacks_affinity_key && !lacks_spread_key[1]; }
  friend bool operator==(const GroupShape&, const GroupShape&) = default;
};
GroupShape shape_of(const State& state, const PodClass& cls);

}  // namespace berth::engine
