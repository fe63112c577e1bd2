// QueueWatch: follows Kueue's objects, Jobs, pods that name a queue, priority classes, and what pods are given when
// they are made, for a session. Of Jobs that name no queue their metadata alone are read.
//
// Updates come on the transport's thread. On a cluster without Kueue's definitions, or where they may not be read,
// nothing waits in queues: each such kind counts as listed, empty, and is asked for again and again.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/cluster.h"
#include "api/limits.h"
#include "kube/reflector.h"
#include "queueing/seen.h"

namespace berth::apps {

// In the order in which they are to be heard of where several have come: what others refer to comes first.
enum class QueueKind : uint8_t {
  kResourceFlavor,
  kProvisioningRequestConfig,
  kAdmissionCheck,
  kCohort,
  kClusterQueue,
  kLocalQueue,
  kWorkloadPriorityClass,
  kPriorityClass,
  kLimitRange,
  kRuntimeClass,
  kWorkload,
  kProvisioningRequest,
  kJob,
  kPod,
};
inline constexpr size_t kQueueKinds = 14;

using SeenQueueObject =
    std::variant<queueing::SeenQueue, api::PriorityClass, api::LimitRange, api::RuntimeClass, queueing::SeenWorkload,
                 queueing::SeenJob, queueing::SeenPod, queueing::ProvisioningConfig, queueing::ProvisioningRequest>;

struct QueueUpdates {
  QueueKind kind = QueueKind::kResourceFlavor;
  std::vector<kube::WatchUpdate<SeenQueueObject>> updates;
};

const kube::Resource& resource_of(QueueKind kind);

class QueueWatch {
 public:
  QueueWatch(kube::Client& client, std::function<void(QueueUpdates)> sink);

  void start();
  void stop();
  // Whether the kind is refused to us (403), or the server has no such kind (404).
  bool refused(QueueKind kind) const;
  // Of a list or watch that fails for another reason; empty when all is well.
  std::string last_error() const;
  // By plural.
  std::vector<std::pair<std::string_view, kube::ReflectorStats>> stats() const;

 private:
  std::array<std::unique_ptr<kube::Reflector<SeenQueueObject>>, kQueueKinds> reflectors_;
};

}  // namespace berth::apps
