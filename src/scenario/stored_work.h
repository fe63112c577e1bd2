// Work that a cluster's queues know already: Workloads as they were written down, each with the object it stands for.
//
// A controller's Workload names it by UID, as what it has made does. Where both are in the input, and a LocalQueue, a
// Job goes on from where its Workload stands; else the Workload stands for itself, with the pods that are its own.
// Finished ones, and their Jobs, have nothing left to do.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/decode.h"
#include "api/document.h"
#include "queueing/seen.h"
#include "scenario/manifests.h"

namespace berth::scenario {

class StoredWork {
 public:
  using Stored = std::shared_ptr<const queueing::SeenWorkload>;

  // Everything that holds is seen first, in any order.
  void see(const api::Object& object, const api::Document& document);
  // Of a Workload, or of a Job that one is for; null: the object is new, or nothing waits here. One that has finished
  // is told by Stored::is("Finished").
  Stored of(const api::Object& object) const;
  bool serves() const { return any_local_queue_; }
  // The Workload is a Job's that is there, and comes with it.
  bool comes_with_its_job(const api::Object& workload) const;

 private:
  std::map<std::string, Stored> by_owner_;  // UID
  std::map<std::string, Stored> by_uid_;
  std::set<std::string> jobs_;  // UIDs
  bool any_local_queue_ = false;
};

// Pods, what makes them and Workloads that a cluster has stored come in the order of their creation; all else stays at
// its place.
void sort_by_creation(std::vector<Manifest>& manifests);

}  // namespace berth::scenario
