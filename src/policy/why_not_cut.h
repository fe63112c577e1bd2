// What is to be said of a node whose GPUs may be cut anew (model::DynamicMig), and could give a pod what it asks for
// were all of them idle: why they are not cut for it now.
#pragma once

#include <string>

#include "engine/policy.h"

namespace berth::policy {

// "; only GPUs that are idle are cut anew, and none is". Judged by all that the pod asks for at once, and by what is in
// use or promised already and has to be made up for. Empty where the GPUs are not Berth's to cut, or are being cut.
std::string why_not_cut(const engine::PodClass& pod, const engine::NodeView& node);

}  // namespace berth::policy
