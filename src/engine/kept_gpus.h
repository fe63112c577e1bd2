// KeptGpus: GPUs of nodes that are kept for one who has waited long, until they are idle and can be cut anew for it.
//
// As they are cut now they are of no use to it, so that it cannot be nominated for the node itself: a stand-in is,
// which has its turn in the queue and asks for what the GPUs are advertised as now, and for what else is asked for
// there. So it is with room that is kept for anybody (engine/engine_reserve.h): what becomes free goes to nobody who
// comes after, and who comes before may take it. Whoever cuts chooses the node (mig/repartitioner.h), and looks through
// the stand-in (engine/node_without.h). Owner thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/event.h"
#include "engine/ids.h"
#include "engine/state.h"

namespace berth::engine {

// Pods that have waited as long as those for whom nodes are kept, those that have one among them, in the queue's order:
// of each queue, which has a number, so many are to have nodes or GPUs kept, the first for whom there are some.
struct DuePods {
  int32_t per_queue = 0;
  std::vector<std::pair<PodSlot, size_t>> pods = {};
};

class KeptGpus {
 public:
  struct Kept {
    std::string owner;  // UID of a pod or workload
    PodSlot stand_in;
  };

  explicit KeptGpus(State& state) : state_(state) {}

  // Nothing is kept on the node. `stand_in` has the names, the priority and the age of who waits, and
  // says for whom it is (model::Pod::keeps_gpus_for).
  void keep(NodeSlot node, const GpusKept& event, model::Pod stand_in);
  void give_back(NodeSlot node);
  // Its owner has what it waited for: what is kept for it would count twice.
  void give_back_of(const std::string& owner);
  // The node is to be cut anew: what is kept beside the GPUs, if anything, stays so until that is over.
  void begin_cut(NodeSlot node);
  // Where it is over for the owner, or the node is gone, or is not to be cut any more.
  void tidy(const std::function<bool(const std::string& owner)>& waits);

  const std::map<NodeSlot, Kept>& all() const { return kept_; }
  bool keeps_for(const std::string& owner) const;
  // UIDs of those for whom something is kept, or is not any more, since the last call.
  std::vector<std::string> take_news() { return std::exchange(news_, {}); }

 private:
  void give_back_where(const std::function<bool(NodeSlot node, const Kept& kept)>& is_over);

  State& state_;
  std::map<NodeSlot, Kept> kept_;
  std::vector<std::string> news_;
};

}  // namespace berth::engine
