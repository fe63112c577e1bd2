// Decoding: JSON becomes typed objects, through one decoder for the daemon, the local server, the simulator and tests.
//
// From the API server (decode_pod and its siblings) reading is lenient: unknown fields pass, since newer servers have
// them, and values were validated there; what cannot be understood at all (wrong type, bad quantity, unknown operator)
// is an Error, and the caller quarantines that object alone. From files (decode) it is strict: unknown fields are
// Problems with a suggestion, and what the API server would refuse is refused here, in its words where they are known.
// Defaults of the API server are applied in both. Thread-safe; no I/O. Cost: about the size of the JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "api/cluster.h"
#include "api/controllers.h"
#include "api/disruption_budget.h"
#include "api/document.h"
#include "api/kueue.h"
#include "api/limits.h"
#include "api/pod.h"
#include "api/reader.h"
#include "api/volumes.h"
#include "base/result.h"

namespace berth::api {

// An object of a kind that Berth does not use: other built-in kinds and custom resources.
struct Unknown {
  std::string api_version;
  std::string kind;
  ObjectMeta metadata;
};

using Object =
    std::variant<Pod, Node, Namespace, PriorityClass, Job, CronJob, Deployment, ReplicaSet, StatefulSet, DaemonSet,
                 PersistentVolumeClaim, PersistentVolume, StorageClass, CsiNode, CsiDriver, CsiStorageCapacity,
                 PodDisruptionBudget, RuntimeClass, ResourceFlavor, ClusterQueue, Cohort, LocalQueue, AdmissionCheck,
                 Workload, WorkloadPriorityClass, ResourceQuota, LimitRange, Unknown>;

// Strict. Or nothing: it had problems, which are appended (at most 1,000), or bad bytes, of which its text has told.
std::optional<Object> decode(const Document& document, Problems& problems);

// The same for checks that look further and tell all that is wrong in one go: the object with what could be read of
// it, whatever the sink tells of; Reader::sound says which parts hold. Nothing where no kind can be made out.
std::optional<Object> decode_what_holds(const Document& document, ProblemSink& sink);

// "Pod", "Job", …; for Unknown its own kind. And the object's metadata, whatever its kind.
std::string_view kind_of(const Object& object);
const ObjectMeta& metadata_of(const Object& object);

// Lenient, from the API server's JSON. Instantiated for Pod, Node, Namespace, PriorityClass,
// PodDisruptionBudget and storage. Lists and watch streams are taken apart by kube/watch_frames.h.
template <typename T>
Result<T> decode_json(std::string_view json);
inline Result<Pod> decode_pod(std::string_view json) { return decode_json<Pod>(json); }
inline Result<Node> decode_node(std::string_view json) { return decode_json<Node>(json); }

}  // namespace berth::api
