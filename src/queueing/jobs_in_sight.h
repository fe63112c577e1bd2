// JobsInSight: which Jobs have been seen, so that a pod whose Job has not been waits for it.
//
// Pods and Jobs come by two watches, of which either may be ahead. A pod that is there before its Job would be placed
// like one that names no queue, although the Job may name one: nobody would have counted it. It waits until the Job has
// been seen, and no longer than kComesWithin, since the Job may be gone while its pod is kept.
//
// Owner thread only; deterministic.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::queueing {

class JobsInSight {
 public:
  using Name = std::pair<std::string, std::string>;  // namespace, name
  static constexpr Duration kComesWithin = Duration::seconds(10);

  void see(const Name& name, const std::string& uid);
  void gone(const Name& name);

  // Whether a pod of the Job with this UID is to wait for it. `is_new`: the pod comes for the first time; one that has
  // waited long enough does not begin anew.
  bool awaits(const std::string& uid, bool is_new, Time now);
  // The UIDs, sorted, of the Jobs that nobody is to wait for any more: they have been seen, or will not be.
  std::vector<std::string> take_settled(Time now);

 private:
  std::map<Name, std::string> uids_;
  std::set<std::string, std::less<>> seen_;    // UIDs
  std::map<std::string, Time> awaited_since_;  // by UID
};

}  // namespace berth::queueing
