// Places: what admission asks about nodes. Quota says how much a queue may have; a place is where its pods would stand.
//
// Who answers (engine/queued_workloads.h) knows the nodes and keeps the places; without an answerer there is always
// one. Owner thread only.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/queues.h"
#include "quota/decision.h"

namespace berth::quota {

// A place for all pods of a workload, with the flavors that it would get. All of it outlives the call.
struct PlaceRequest {
  WorkloadId id;
  const model::Workload* workload = nullptr;
  const std::vector<PodSetAssignment>* pod_sets = nullptr;
  const std::map<std::string, model::ResourceFlavor, std::less<>>* flavors = nullptr;
  // Workloads that have waited long and for which places are kept: what these are counts as free. Null: none.
  const std::vector<WorkloadId>* over = nullptr;
};

// Whether a workload's pods may be evicted for others.
enum class Leave : uint8_t {
  kFreely,
  kOverBudget,  // that would go beyond a PodDisruptionBudget
  kNever,       // a pod is protected (berth.dev/preemptible)
};

// Whether nodes could have all pods of a workload, whoever is there now.
enum class CouldFit : uint8_t {
  kNever,
  kIfCut,  // if GPUs were cut anew for it
  kYes,
};

// A pod that names a workload; in its namespace.
struct PodOf {
  std::string name, uid;
  bool terminating = false;
};

class Places {
 public:
  virtual ~Places() = default;

  virtual Leave may_leave(WorkloadId id) = 0;

  // Whether all pods had a place if the workloads `gone` had none any more, and the workload itself kept none. Changes
  // nothing. `why`, where it is wanted and they have none: "1 of 4 pods of pod set main have a place in flavor h100:
  // …".
  virtual bool fit(const PlaceRequest& request, const std::vector<WorkloadId>& gone, std::string* why = nullptr) = 0;
  // Those of `gone` that stand on nodes where the pods would be placed then; none where these had no place even so.
  virtual std::vector<WorkloadId> in_the_way(const PlaceRequest& request, const std::vector<WorkloadId>& gone) = 0;
  // As fit(), and keeps the places for the workload instead of those that it had, until release(): nobody else gets
  // them. Where `gone` still stand there, they are kept beside these.
  virtual bool hold(const PlaceRequest& request, const std::vector<WorkloadId>& gone) = 0;
  // Whether it should have no place in this cycle: it would be on GPUs that may be cut anew, perhaps for one of these,
  // which have none, if that one comes before it. Whoever cuts is asked meanwhile.
  virtual bool gives_way(const PlaceRequest& request, const std::set<WorkloadId>& placeless) = 0;
  // Whether nodes are large enough, and otherwise such that they could have all of its pods. They could, too, where
  // only terms between its pods speak against that.
  virtual CouldFit could_fit(const PlaceRequest& request) = 0;
  // Keeps places for the workload, until release(), where it has all of them the soonest when others there have ended,
  // though not before `from`: tells when that is by what they declare; INT64_MAX: nobody knows. None: nowhere, even if
  // all others had ended that are no daemons and for whom nothing is kept itself.
  virtual std::optional<Time> keep(const PlaceRequest& request, Time from) = 0;
  // The same for as many of its pods as could have places while GPUs are cut as they are: tells when these are free.
  // What is kept so stays where it is until it is. None: for none of them.
  virtual std::optional<Time> keep_some(const PlaceRequest& /*request*/, Time /*from*/) { return std::nullopt; }
  // Where places are kept for the workload, and all of its pods could start elsewhere at once, keeps those instead.
  // False: they could not.
  virtual bool move_kept(const PlaceRequest& /*request*/) { return false; }
  // Whether it waits, on nodes that are kept for it, for pods that run until they are deleted.
  virtual bool waits_for_who_runs_on(WorkloadId /*id*/) const { return false; }
  // Whether GPUs are kept to be cut anew for it, or some are being cut.
  virtual bool waits_for_cut(WorkloadId /*id*/) const { return false; }
  // By name, the nodes on which places are kept so; none: no more, not for all of its pods.
  virtual std::vector<std::string> kept_nodes(WorkloadId id) const = 0;
  // Whether a pod that is in no queue, or a workload for which GPUs could be cut, waits that comes before it and may
  // have some of those nodes.
  virtual bool may_lose_kept(WorkloadId /*id*/) const { return false; }
  // Those with fewer places than they were given: nodes were lost, or would not have their pods any more, and no others
  // were found.
  virtual const std::set<WorkloadId>& lacking() const = 0;
  // Whether pods of one that is admitted have run, and it has a place yet: something would be lost with it.
  virtual bool has_begun(WorkloadId id) const = 0;
  // Its pods that are there still, wherever they are.
  virtual std::vector<PodOf> pods(WorkloadId id) const = 0;
  // Lets go of what was kept; pods that have come stay where they are.
  virtual void release(WorkloadId id) = 0;
};

}  // namespace berth::quota
