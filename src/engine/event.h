// Events: everything that the engine learns. Applied in order, by the owner thread; the same events in the same order,
// with the same run_cycle() calls between them, give the same decisions.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/time.h"
#include "model/node.h"
#include "model/pod.h"
#include "model/volumes.h"

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
  model::Labels labels = {};  // what namespace selectors see
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

// Time has passed: what the events after it set off (back-offs) counts from `now`. run_cycle() says the time too; a
// time before the latest is ignored.
struct ClockAdvanced {
  Time now;
};

using Event =
    std::variant<NodeUpserted, NodeDeleted, NodesReplaced, PodUpserted, PodDeleted, PodsReplaced, NamespaceUpserted,
                 StorageUpserted, StorageDeleted, StorageReplaced, BindProgress, ClockAdvanced>;

}  // namespace berth::engine
