// What an agent's list says of pods, held against what these ask for: which of its names can be theirs, and which MIG
// instances of a node are given to pods that the scheduler does not know there.
#pragma once

#include <map>
#include <string>

#include "model/node.h"
#include "model/pod.h"
#include "model/resources.h"

namespace berth::model {

// Pods of which a list may tell, by "namespace/name", with what they ask for; null: it has ended, and has nothing.
using ListedPods = std::map<std::string, const SchedulingSpec*>;

// Whether the agent says of the pod where all is that it has of the node's GPUs: of as many whole devices, and of as
// many instances of each profile, as it asks for, and of one at least where it has a share or replicas, of which a
// device has several. A whole device is had by who asks for whole ones or for a share, an instance by who asks for its
// profile: else the name is that of an earlier pod. Where the agent names it for a device without saying for which
// instances, that is all of them that it could have there.
bool is_located(const Node& node, const std::string& pod, const SchedulingSpec& spec);

// Whether the agent says of any MIG instance that some pod has it.
bool tells_instances(const Node& node);

// How many instances, by resource, the agent says are given to pods other than those of `known`, or to these though
// they ask for no such. Where it says so of a whole device, that is one instance of each profile on it for each such
// pod, since it could be any; of ill devices none, since they give nothing out.
ResourceList instances_beside(const Node& node, const ListedPods& known);

}  // namespace berth::model
