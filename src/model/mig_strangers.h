// MIG instances of a node that pods have which the scheduler does not know there, as an agent tells of them.
#pragma once

#include <set>
#include <string>

#include "model/node.h"
#include "model/resources.h"

namespace berth::model {

// Whether the agent says of any MIG instance that some pod has it.
bool tells_instances(const Node& node);

// How many instances, by resource, the agent says are given to pods other than those of `known` ("namespace/name").
// Where it says so of a whole device, that is one instance of each profile on it for each such pod, since it could be
// any; of ill devices none, since they give nothing out.
ResourceList instances_beside(const Node& node, const std::set<std::string>& known);

}  // namespace berth::model
