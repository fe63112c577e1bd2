// TopologyGates: takes the gate kueue.x-k8s.io/topology off pods whose Workload is admitted.
//
// Kueue writes it into the template of a Job for which it chooses nodes itself, and takes it off pod by pod. A Job that
// was running then goes on making such pods, since nobody can change its template while it runs; they would wait for
// ever. What waits for its Workload, too, loses both gates when it is let in (queueing/desk.h).
//
// Owner thread only; deterministic. Source: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "queueing/lane.h"
#include "queueing/write.h"

namespace berth::queueing {

struct GatedPod {
  std::string namespace_name, name, uid, resource_version;
  std::vector<std::string> gates;  // all of them
};

class TopologyGates {
 public:
  // One without the gate is forgotten.
  void see(GatedPod pod);
  void gone(const std::string& uid) { pods_.erase(uid); }

  using IsLetIn = std::function<bool(const std::string& uid)>;
  std::vector<Write> look(const IsLetIn& is_let_in, Time now, size_t room);
  void answered(const Answer& answer, Time now);

 private:
  struct Record {
    GatedPod pod;
    Lane lane;
  };
  std::map<std::string, Record> pods_;  // by UID
};

}  // namespace berth::queueing
