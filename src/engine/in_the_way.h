// InTheWay: who keeps a workload or pod from starting, for those who tell people and for forecasts
// (engine/forecast.h). Looks at the engine as it is, and changes nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/forecast.h"
#include "engine/ids.h"
#include "engine/pod_class.h"
#include "quota/decision.h"

namespace berth::quota {
class Admission;
}

namespace berth::engine {

class Engine;

// Whether GPUs of the node that nobody has may be cut anew so that a pod of the class which does not fit there does.
// Whether the moment is right, so soon after another change, is not asked, nor what terms between pods say.
bool may_be_cut_for(const Engine& engine, const PodClass& cls, NodeSlot node);

bool asks_for_gpus(const Engine& engine, const std::string& uid);                     // a pod or workload that waits
bool waits_behind_others(const quota::Admission& admission, const std::string& uid);  // a workload, in its queue

// Of one moment: the engine outlives it, and nothing is applied to it meanwhile.
class InTheWay {
 public:
  InTheWay(const Engine& engine, Time now);

  // Of a workload that waits for a place alone: the pods on nodes that could have some of its pods with one of its
  // choices of flavors, if nobody were there; daemons and its own are left out. O(nodes), once for those that are
  // alike.
  const std::vector<PodSlot>& of_place(quota::WorkloadId id);

  // Counts those that are in the way, or says in Forecast::unknown why it does not matter.
  void count(const PodClass& cls, Forecast& out) const;
  void count(quota::WorkloadId id, Forecast& out);

 private:
  using Options = std::shared_ptr<const std::vector<quota::PlaceOption>>;
  std::vector<PodSlot> on_nodes_for(quota::WorkloadId id, const Options& options) const;
  void count_users(quota::WorkloadId id, Forecast& out) const;
  void count_holder(quota::WorkloadId holder, Forecast& out) const;
  void count(const std::optional<Time>& end, Forecast& out) const;

  const Engine& engine_;
  const Time now_;
  std::map<quota::WorkloadId, Options> options_;
  std::map<const void*, std::vector<PodSlot>> known_;  // by options
};

}  // namespace berth::engine
