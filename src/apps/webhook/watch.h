// ClusterWatch: what `berth webhook --watch` has seen of LocalQueues, ClusterQueues, ResourceQuotas and LimitRanges.
//
// A LocalQueue that is not in what was seen is asked for once, with a short timeout. Requests are answered on one
// thread, so after a question that failed or took long none is asked for a while: an API server that is slow or away
// holds nobody up. Nothing waits for the first lists; until they are there nothing is known. Thread-safe.
#pragma once

#include <memory>

#include "kube/kubeconfig.h"
#include "webhook/cluster.h"

namespace berth::apps {

class ClusterWatch : public webhook::Cluster {
 public:
  // Errors: a server or credentials that cannot be used.
  static Result<std::unique_ptr<ClusterWatch>> start(const kube::ClusterAccess& access);
  ~ClusterWatch() override;

  webhook::QueueIs local_queue(const std::string& namespace_name, const std::string& name) override;
  std::string missing_cluster_queue(const std::string& namespace_name, const std::string& local_queue) override;
  bool has_default_queue(const std::string& namespace_name) override;
  webhook::NamespaceSeen limits_of(const std::string& namespace_name) override;

  // Of each kind, by plural: whether all of it has been seen and is being followed.
  std::vector<std::pair<std::string_view, bool>> synced() const;

 private:
  struct State;
  explicit ClusterWatch(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace berth::apps
