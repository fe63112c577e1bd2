// Objects of the cluster as a session's owner thread needs them: mapped on the transport's thread already.
#pragma once

#include <string>
#include <vector>

#include "api/cluster.h"
#include "apps/scheduler/mig_writer.h"
#include "engine/event.h"
#include "model/node.h"
#include "model/pod.h"

namespace berth::apps {

struct SeenPod {
  model::Pod pod;
  std::string problem;  // with its annotations; empty without one
  std::string told;     // message of its PodScheduled=False condition, if we may have written it
  std::string scheduler_name, resource_version;
  std::vector<std::string> gates = {};  // spec.schedulingGates
  std::string reaches = {};  // for GPUs that it does not request (apps/scheduler/reaching.h); empty: it does not
};

struct SeenNamespace {
  engine::NamespaceUpserted event;
  std::string uid;
  std::string problem;  // with its annotations; empty without one
};

struct SeenNode {
  model::Node node;
  NodeMig mig;
  // Why it is set aside, its MIG instances take no new work, or berth.dev/mig-policy has no effect; empty: none is so.
  std::string problem;
};

// What the node says of how it is cut.
NodeMig mig_of_seen(const api::Node& node);
// Why the node is set aside, or its MIG instances take no new work, or else why berth.dev/mig-policy: dynamic has no
// effect there, which nobody says while the node is being cut: its counts say little then.
std::string node_problem(const api::Node& node, const SeenNode& seen);

}  // namespace berth::apps
