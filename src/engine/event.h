// Events: everything that the engine learns. Applied in order, by the owner thread; the same events in the same order,
// with the same run_cycle() calls between them, give the same decisions.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/disruption_budget.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/queues.h"
#include "model/volumes.h"
#include "quota/decision.h"

namespace berth::engine {

struct NodeUpserted {
  model::Node node;
};
struct NodeDeleted {
  std::string name;
};
// A list: what it does not name no longer exists.
struct NodesReplaced {
  std::vector<model::Node> nodes;
};

// The node's GPUs are about to be cut anew, or no longer so. Meanwhile no pod that asks for a GPU is given a place
// there. Of a node that is not there it means nothing, and a node that goes takes it along.
struct NodeRepartitioning {
  std::string name;
  bool under_way = false;
  std::vector<std::string> pods = {};  // it is over, and was for these, by UID: who waits still is nominated for it
};

// GPUs of a node are kept until they are idle and can be cut anew for one who waits (engine/kept_gpus.h): so much of
// the node, beside what is kept there for others; of nothing, they are no longer. What was kept there before counts no
// more.
struct GpusKept {
  std::string node;
  std::string owner;            // UID of the pod or workload; it is over when that waits no more
  model::ResourceList amounts;  // as the node is cut now, and what else is asked for
};

struct PodUpserted {
  model::Pod pod;
};
struct PodDeleted {
  std::string uid;
};
struct PodsReplaced {
  std::vector<model::Pod> pods;
};

// What a namespace says about its pods; deleting one is an upsert with the default.
struct NamespaceUpserted {
  std::string name;
  model::Placement placement = model::Placement::kDefault;
  model::Labels labels = {};   // what namespace selectors see
  bool protects_pods = false;  // its pods may exempt themselves from preemption (model::Pod::preemptible)
};

struct BudgetUpserted {
  model::DisruptionBudget budget;
};
struct BudgetDeleted {
  std::string key;  // DisruptionBudget::key()
};
struct BudgetsReplaced {
  std::vector<model::DisruptionBudget> budgets;
};

// What quota consists of. Pods and Jobs that name no queue are none of its business.
using QueueObject =
    std::variant<model::ResourceFlavor, model::ClusterQueue, model::Cohort, model::LocalQueue, model::AdmissionCheck>;
struct QueueObjectUpserted {
  QueueObject object;
};
struct QueueObjectDeleted {
  QueueObject object;  // its names are looked at
};

// A workload waits in its queue until an Admit decision; by UID. It is an update where the UID is known.
struct WorkloadUpserted {
  model::Workload workload;
};
// A workload that had been admitted before this engine was there, as its object says: it goes on, and its pods keep
// their places. Nothing where the UID is known. See quota::Admission::restore().
struct WorkloadAdmitted {
  model::Workload workload;
  quota::HeldQuota held;
};
struct WorkloadEnded {
  std::string uid;
  bool deleted = false;  // else it has finished
};
// A workload that had to leave has done so: its pods are gone or going, and no more will come.
struct WorkloadReleased {
  std::string uid;
};

// Of a Job: whether it names a queue, so that its pods are not placed without a Workload, and the Workload that counts
// for it, which is the pods' that name none themselves. Of a pod by itself the latter. Pods that await it
// (Pod::awaits_owner) wait no more for that.
struct OwnerQueued {
  std::string uid;
  bool queued = false;
  std::string workload = {};  // "namespace/name"; empty: none
  bool suspended = false;     // so that those of its pods which wait are about to go
};

// Claims, volumes and whatever else storage consists of.
struct StorageUpserted {
  model::StorageObject object;
};
struct StorageDeleted {
  model::StorageKind kind = model::StorageKind::kClaim;
  std::string key;  // model::key_of()
};
struct StorageReplaced {
  model::StorageKind kind = model::StorageKind::kClaim;
  std::vector<model::StorageObject> objects;  // all of that kind
};

// What became of a Bind decision. Until one of the last three, or a PodUpserted with a node name, the place is kept.
enum class BindOutcome : uint8_t {
  kPreBinding,  // preparing
  kSent,        // the Binding is on its way
  kSucceeded,   // the server stored it
  kUnknown,     // no answer: ask the server for the pod, then report a PodUpserted, kFailed or kSucceeded
  kFailed,      // certainly not stored: the place is given back and the pod backs off
};
struct BindProgress {
  std::string uid;
  BindOutcome outcome = BindOutcome::kSent;
};

// An Evict decision that certainly will not be carried out: the server refused it for good. (One that was carried out
// shows in the pod, which is then terminating or gone.)
struct EvictionFailed {
  std::string uid;  // of the victim
};

// Time has passed: what the events after it set off (back-offs) counts from `now`. run_cycle() says the time too; a
// time before the latest is ignored.
struct ClockAdvanced {
  Time now;
};

// Whether all pods that a workload was admitted with are ready; see quota::Admission::pods_ready().
struct WorkloadPodsReady {
  std::string uid;
  bool ready = false;
  Time at;
};

// What a check's controller says of a workload; see quota::Admission::check_state().
struct WorkloadCheckReported {
  std::string uid;
  quota::CheckReport report;
  Time at;
};

using Event =
    std::variant<NodeUpserted, NodeDeleted, NodesReplaced, NodeRepartitioning, GpusKept, PodUpserted, PodDeleted,
                 PodsReplaced, NamespaceUpserted, StorageUpserted, StorageDeleted, StorageReplaced, BudgetUpserted,
                 BudgetDeleted, BudgetsReplaced, QueueObjectUpserted, QueueObjectDeleted, WorkloadUpserted,
                 WorkloadAdmitted, WorkloadEnded, WorkloadReleased, WorkloadPodsReady, WorkloadCheckReported,
                 OwnerQueued, BindProgress, EvictionFailed, ClockAdvanced>;

}  // namespace berth::engine
