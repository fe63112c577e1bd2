// Rules: what an administrator has decided about the webhook. Everything in them is known for certain; the webhook
// keeps no cache of the cluster, so that it never refuses something because of what it has not heard of yet.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

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

// Kueue's names: https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/.
inline constexpr std::string_view kQueueLabel = "kueue.x-k8s.io/queue-name";
inline constexpr std::string_view kManagedLabel = "kueue.x-k8s.io/managed";  // and the finalizer
inline constexpr std::string_view kAdmissionGate = "kueue.x-k8s.io/admission";
inline constexpr std::string_view kGroupLabel = "kueue.x-k8s.io/pod-group-name";
inline constexpr std::string_view kGroupCountAnnotation = "kueue.x-k8s.io/pod-group-total-count";

}  // namespace berth::webhook
