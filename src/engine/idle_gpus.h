// Of a node whose GPUs may be cut anew (model::DynamicMig): which of them nobody has, and what is free beside them.
//
// Where an agent tells the devices each is looked at; elsewhere counts are all that is known, and the GPUs are idle
// while no GPU resource of the node is in use. What could be made of them: mig/idle_devices.h. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "engine/node_state.h"
#include "model/device_topology.h"
#include "model/mig.h"

namespace berth::engine {

// Some GPU resource of the node is in use or promised.
bool uses_gpus(const NodeView& node);

// Of the devices that an agent cuts one by one (Node::cut_by_agent, by number), those in order that nobody has, as far
// as the agent has said and Berth knows.
model::DeviceSet idle_devices(const NodeView& node);

// The devices on which the agent's list names pods have as much as all that are there, strangers too, have in use. Else
// somebody has some of the others: a list may name a pod on some of its devices only, or two pods on one.
bool tells_all_in_use(const NodeView& node);

// How much of what is free of the resource lies on devices that are not idle; 0 where no agent tells the devices. Below
// 0 where more is in use or promised than those are, as by pods that run on ill ones: so much the idle ones are to be.
int64_t free_beside_idle(const NodeView& node, ResourceId resource);

// What the agent lists and what kubelet has allocatable is the same; else one of both is out of date, and nothing is
// cut.
bool lists_what_is_there(const NodeView& node);

// What the idle devices are to be so that the pod has all that it asks for, beside what of that is in use or promised.
// A share counts as a whole GPU.
model::ResourceList asked_of_idle(const PodClass& pod, const NodeView& node);

// Whether those that nobody has, in this moment, could be cut so that the pod has all that it asks for; where no agent
// tells the devices, all of the node or none.
bool idle_could_be_cut_for(const PodClass& pod, const NodeView& node);

// How many of the resource a GPU of the model is if it is nothing else; 0: it cannot be that.
int64_t most_on_device(const model::MigModel& model, const std::string& resource);

}  // namespace berth::engine
