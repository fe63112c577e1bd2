// PodOwners: which pods belong to a Workload without saying so, by their Job, or as the pod that it was made for.
//
// Pods are a Workload's by their annotation kueue.x-k8s.io/workload, which they are given when they are let in. A Job
// that was started by somebody else, before anyone could suspend it, has pods without one, and so has what ran under
// Kueue with an older template. They count for their Job's Workload, and wait where it has none yet, and until their
// Job has been seen at all, which may come later than they do.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/event.h"
#include "model/pod.h"

namespace berth::engine {

class PodOwners {
 public:
  // The pods, by UID, that are to be told anew what they belong to; sorted.
  std::vector<std::string> learn(const OwnerQueued& owner);

  // The pod itself says whose it is.
  bool says_itself(const model::Pod& pod) const;
  // Says in the pod what is known of its owner, where it says nothing itself.
  void complete(model::Pod& pod);
  void forget(const model::Pod& pod);

 private:
  struct Owner {
    bool queued = false, suspended = false, awaited = false;
    std::string workload;
    std::map<std::string, bool> pods = {};  // that say nothing themselves, or wait; whether they say it
  };
  std::map<std::string, Owner, std::less<>> owners_;  // by UID
};

}  // namespace berth::engine
