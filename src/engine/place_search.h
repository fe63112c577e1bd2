// PlaceSearch: places for pods of a workload that have none, tried out on the live state, and all of it undone again.
//
// Set by set, each pod gets the best node that is left. That may lead into a domain too small for all that have to be
// together there (required topology), which scores know little of; so where it comes to nothing, the domains are tried
// one after the other, and for pods that are cut into slices from the start: the one with the least room that is
// enough for all, else the one with the most. Of equal pods that ask of each other nothing else some way is found if
// there is one; else at most kDomainsMax domains are tried for those that several sets share.
//
// Owner thread only; no Txn is open meanwhile.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/stand_ins.h"
#include "engine/txn.h"

namespace berth::engine {

class PlaceSearch {
 public:
  static constexpr int kDomainsMax = 32;

  // Equal pods, by their numbers in the pod set, of which there may be others that follow.
  struct Set {
    size_t index = 0;
    PodLooks looks;
    std::vector<int32_t> numbers;                     // of those that want a place; ascending
    std::vector<std::pair<int32_t, NodeSlot>> there;  // of those that have one, where the set has slices; ascending
  };
  struct Place {
    size_t set = 0;
    NodeSlot node;
    int32_t number = 0;
  };
  // Of the first set that came to nothing.
  struct Failure {
    size_t set = 0;
    size_t placed = 0;  // of its pods
    std::string why;    // that no node has a place for one more, or no domain for all
  };

  // `explains`: failure() is asked for.
  PlaceSearch(const PlacementContext& context, StandIns& stand_ins, const model::Workload& workload, bool explains)
      : context_(context), stand_ins_(stand_ins), workload_(workload), explains_(explains), txn_(context.state) {}
  PlaceSearch(const PlaceSearch&) = delete;
  PlaceSearch& operator=(const PlaceSearch&) = delete;
  ~PlaceSearch();

  // What the pod has counts as free. Before run().
  void evict(PodSlot pod);
  // Whether all pods of the sets have a place; where not, and `partly`, as many as are found one after the other.
  bool run(const std::vector<Set>& sets, bool partly);
  const std::vector<Place>& found() const { return found_; }
  const Failure& failure() const { return failure_; }

 private:
  struct Domain {
    std::string_view value;
    std::vector<Domain> parts;    // of the next layer
    std::vector<NodeSlot> nodes;  // of the last
  };
  // A set that is placed by domains.
  struct Plan {
    const Set* set = nullptr;
    const std::vector<PodSlot>* pods = nullptr;  // as Set::numbers
    std::vector<model::SliceLayer> layers;       // those that all pods share first
    size_t shared = 0;                           // so many layers are
    std::vector<int64_t> room;                   // pods, by node slot
    bool chooses = false;                        // its first layer may be told to avoid domains
  };

  bool attempt(const std::vector<Set>& sets, bool by_domain, bool partly);
  bool place_one_by_one(const Set& set, const std::vector<PodSlot>& pods);
  bool place_by_domain(const Set& set, const std::vector<PodSlot>& pods, bool partly);
  std::vector<Domain> domains_of(Plan& plan, const Candidates& candidates) const;
  void count(Plan& plan, NodeSlot node, const Candidates& candidates) const;
  static int64_t room(const Plan& plan, size_t layer, const Domain& domain);
  bool place_slices(Plan& plan, size_t layer, int32_t begin, int32_t end, const std::vector<Domain>& domains,
                    bool partly);
  bool place_slice(Plan& plan, size_t layer, std::pair<int32_t, int32_t> range, int64_t rest,
                   const std::vector<Domain>& domains, bool partly);
  bool place_pods(Plan& plan, int32_t begin, int32_t end, const Domain& domain);
  void undo_to(Plan& plan, size_t mark);
  void fail(size_t set, PodSlot pod, std::string why);
  size_t placed(size_t set) const;

  PlacementContext context_;
  StandIns& stand_ins_;
  const model::Workload& workload_;
  const bool explains_;
  Txn txn_;
  size_t evicted_ = 0;                      // the mark behind what counts as free
  std::vector<std::vector<PodSlot>> pods_;  // by set that was asked for
  std::vector<Place> found_;
  Failure failure_;
  std::string note_;           // why the last slice came to nothing
  const Set* last_ = nullptr;  // the set that did
  // Of sets that share a domain, the first one's choice, and those that the others came to nothing with.
  const Set* chooser_ = nullptr;
  std::string chosen_;
  std::set<std::string, std::less<>> avoided_;
};

}  // namespace berth::engine
