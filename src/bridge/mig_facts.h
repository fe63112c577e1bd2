// Whether what a node says of its MIG instances can be: its labels, the instances that kubelet counts, and the devices
// that an agent lists must be of one model, and of a geometry that it has (packing/mig_fit.h). Pure functions.
#pragma once

#include <string>

#include "api/cluster.h"
#include "model/devices.h"
#include "model/mig.h"

namespace berth::bridge {

// Why it cannot be, as a sentence with the way out; empty where it can, where the model is not known, where the node
// has no instances, and while its GPUs are being cut. `told`: what an agent lists; empty without one.
std::string mig_facts_problem(const api::Node& node, const model::NodeDevices& told);

// Why the label nvidia.com/gpu.memory cannot be that of a whole device of the product, with the way out; empty where it
// can, or says nothing of one.
std::string memory_contradiction(const api::Node& node, const model::GpuProduct& product);

}  // namespace berth::bridge
