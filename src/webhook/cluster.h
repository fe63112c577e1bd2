// What of the cluster the webhook may look at, where it watches it: which queues there are, and what LimitRanges and
// ResourceQuotas leave of a namespace.
//
// What is seen may be behind, so it denies only what is certain: a queue that is not there although the API server was
// asked just now. A LocalQueue without its ClusterQueue is a warning, since that may be on its way. So is what quotas
// and ranges would refuse of a Job's pods, in Kubernetes's words; of a plain pod the API server says it itself. No I/O:
// whoever implements Cluster does it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/limits.h"
#include "webhook/review.h"
#include "webhook/rules.h"

namespace berth::webhook {

enum class QueueIs : uint8_t { kThere, kMissing, kUnknown };

// A ResourceQuota and what its status says is used of it.
struct SeenQuota {
  api::ResourceQuota quota;
  model::ResourceList used;
};
// From the API server's JSON.
Result<SeenQuota> decode_quota(std::string_view json);

struct NamespaceSeen {
  std::vector<api::LimitRange> ranges;
  std::vector<SeenQuota> quotas;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  // kMissing only where the API server has just said so.
  virtual QueueIs local_queue(const std::string& namespace_name, const std::string& name) = 0;
  // The ClusterQueue that a LocalQueue names, where there is none; empty: it is there, or nobody knows.
  virtual std::string missing_cluster_queue(const std::string& namespace_name, const std::string& local_queue) = 0;
  // The namespace has a LocalQueue for Jobs that name none, as far as is seen.
  virtual bool has_default_queue(const std::string& namespace_name) = 0;
  virtual NamespaceSeen limits_of(const std::string& namespace_name) = 0;
};

// As mutate(), with the namespace's default queue for a Job that names none and is no part of a whole.
AdmissionAnswer mutate_in(Cluster& cluster, const AdmissionRequest& request, const Rules& rules);

// Adds to what validate() has answered what the cluster has to say about a Job or pod.
AdmissionAnswer validate_in(Cluster& cluster, const AdmissionRequest& request, AdmissionAnswer answer);

}  // namespace berth::webhook
