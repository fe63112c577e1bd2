// InTheWay: who keeps a workload or pod from starting, for those who tell people and for forecasts
// (engine/forecast.h). Looks at the engine as it is, and changes nothing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/forecast.h"
#include "engine/ids.h"
#include "engine/pending_queue.h"
#include "engine/pod_class.h"
#include "engine/policy_set.h"
#include "quota/decision.h"

namespace berth::model {
struct Workload;
}

namespace berth::quota {
class Admission;
}

namespace berth::engine {

class Engine;

// Whether GPUs of the node that nobody has may be cut anew so that a pod of the class which does not fit there does.
// Room that is kept there for workloads which come after `rank` is not in the way. Whether the moment is right, so soon
// after another change, is not asked, nor what terms between pods say.
bool may_be_cut_for(const Engine& engine, const PodClass& cls, const QueueRank& rank, NodeSlot node);

// Whether GPUs of the node might be cut anew so that a pod of the class does, once nobody has any, and it would not fit
// there as they are cut.
bool might_be_cut_when_left(const Engine& engine, const PodClass& cls, NodeSlot node);
// How many pods of the class, of `enough` that are wanted, the node might have so at once, each of them asking for the
// same.
int64_t most_if_cut(const PolicySet& policies, const State& state, const PodClass& cls, NodeSlot node, int64_t enough);

bool waits_behind_others(const quota::Admission& admission, const std::string& uid);  // a workload, in its queue

// Of one moment: the engine outlives it, and nothing is applied to it meanwhile.
class InTheWay {
 public:
  // `refused`: ForecastLimits::refused.
  InTheWay(const Engine& engine, Time now, std::set<std::string> refused = {});

  // Of a workload that waits for a place alone: the pods on nodes that could have some of its pods with one of its
  // choices of flavors, if nobody were there; daemons and its own are left out. O(nodes), once for those that are
  // alike.
  const std::vector<PodSlot>& of_place(quota::WorkloadId id);

  // Counts those that are in the way, or says in Forecast::unknown why it does not matter.
  void count(const PodClass& cls, Forecast& out) const;
  void count(quota::WorkloadId id, Forecast& out);

  // Whether some node whose GPUs are, or may be, cut anew could have a pod that waits, or one of a workload's that asks
  // for GPUs, if nobody were there and they were cut for it. No node is cut for workloads of which slices are to stand
  // together.
  bool might_be_cut_for(const std::string& uid);

 private:
  using Options = std::shared_ptr<const std::vector<quota::PlaceOption>>;
  // Of the workload's pods with each of its choices of flavors.
  std::vector<PodClass> classes_of(const model::Workload& workload, const Options& options,
                                   ResourceTable& resources) const;
  bool might_be_cut_for(std::span<const PodClass> classes, const ResourceTable& resources) const;
  std::vector<PodSlot> on_nodes_for(quota::WorkloadId id, const Options& options) const;
  void count_users(quota::WorkloadId id, Forecast& out) const;
  void count_holder(quota::WorkloadId holder, Forecast& out) const;
  void count(const std::optional<Time>& end, Forecast& out) const;
  void count_pod(PodSlot slot, Forecast& out) const;

  const Engine& engine_;
  const Time now_;
  const std::set<std::string> refused_;
  std::map<quota::WorkloadId, Options> options_;
  std::map<const void*, std::vector<PodSlot>> known_;  // by options
  std::map<uint32_t, bool> might_;                     // of a class
  std::map<const void*, bool> might_with_;             // by options
};

}  // namespace berth::engine
