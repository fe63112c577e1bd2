// MadePods: which controllers of the input come with what they made, as a cluster lists them. These make nothing more.
//
// What was made names its controller by UID. A Deployment's pods name a ReplicaSet, which a dump may leave out: such a
// pod has the label pod-template-hash, and its ReplicaSet is called <deployment>-<hash>. A StatefulSet's pods have the
// only names that it gives, so that those are its own whatever its UID.
#pragma once

#include <set>
#include <string>

#include "api/decode.h"

namespace berth::scenario {

class MadePods {
 public:
  void see(const api::Object& object);
  bool made_by(const api::Object& controller) const;

 private:
  std::set<std::string> uids_;
  std::set<std::string> deployments_, statefulsets_;  // "namespace/name"
};

}  // namespace berth::scenario
