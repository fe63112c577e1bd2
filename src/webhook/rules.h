// Rules: what an administrator has decided about the webhook. Everything in them is known for certain; what is only
// seen of the cluster is apart (webhook/cluster.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "api/kueue_names.h"

namespace berth::webhook {

// What becomes of a container that names GPUs in NVIDIA_VISIBLE_DEVICES and requests none.
enum class UnrequestedGpus : uint8_t { kIgnore, kWarn, kDeny };

struct Rules {
  std::string scheduler_name = "berth";  // given to what names a queue and no other scheduler
  UnrequestedGpus unrequested_gpus = UnrequestedGpus::kWarn;
  // Where the pool of nodes is fixed: the most of a GPU resource that any node has. A resource that is not here may
  // come with a larger node.
  std::map<std::string, int64_t> node_max{};
  // Whether pods that name a queue get Kueue's finalizer, as they do from Kueue. Only a controller can take it off.
  bool pod_finalizer = false;
};

using api::kAdmissionGate;
using api::kGroupCountAnnotation;
using api::kGroupLabel;
using api::kManagedLabel;
using api::kMaxExecutionLabel;
using api::kQueueLabel;

}  // namespace berth::webhook
