// Decisions: what the engine wants done. The daemon, the simulator and the tests carry them out and report back by
// events; nothing else schedules.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "engine/shared_devices.h"
#include "quota/decision.h"

namespace berth::engine {

enum class DecisionKind : uint8_t {
  kBind,           // the pod has a place: bind it, then report BindProgress
  kUnschedulable,  // the pod has none: tell people why (condition and event) and that it is nominated for no node
  kNominate,       // the pod will have node_name once its victims are gone: tell people that, and why it waits
  kEvict,          // the pod is to leave node_name for another: delete it; report only EvictionFailed
};

// An unbound claim of the pod, to be bound before the pod is.
struct VolumeBinding {
  std::string claim;  // name, in the pod's namespace
  std::string claim_uid;
  std::string volume;  // to be bound to; empty: to be provisioned for the pod's node
  friend bool operator==(const VolumeBinding&, const VolumeBinding&) = default;
};

// Devices of a node that a pod has or shares; nothing where they are not known.
struct DeviceNames {
  std::vector<int32_t> numbers = {};    // ascending
  std::vector<std::string> uuids = {};  // theirs, where an agent lists the devices
  std::string_view link = {};   // of several whole ones, the worst way between two: "NVLink", "PCIe switch", …
  std::string_view limit = {};  // model::gpu_limit() of the pod on the node
  friend bool operator==(const DeviceNames&, const DeviceNames&) = default;
};

struct Decision {
  DecisionKind kind = DecisionKind::kBind;
  std::string pod_uid;
  std::string namespace_name;
  std::string pod_name;
  std::string node_name;  // not of kUnschedulable
  // kUnschedulable, kNominate: kube-scheduler's FailedScheduling text, shared by equal pods.
  std::shared_ptr<const std::string> message = {};
  std::vector<VolumeBinding> volumes = {};  // kBind
  std::string preemptor_uid = {};           // kEvict: for whom
  DeviceUse devices = {};                   // kBind: of the node; State::devices_of() has their names
  // kBind, as EngineOptions::list_feasible says: the first by name of the nodes that fit, and how many do.
  std::vector<std::string> feasible = {};
  uint32_t feasible_count = 0;
  friend bool operator==(const Decision& a, const Decision& b) {
    return a.kind == b.kind && a.pod_uid == b.pod_uid && a.node_name == b.node_name && a.volumes == b.volumes &&
           a.preemptor_uid == b.preemptor_uid && a.devices == b.devices &&
           (a.message == b.message || (a.message && b.message && *a.message == *b.message));
  }
};

struct CycleResult {
  std::vector<Decision> decisions;
  std::vector<quota::AdmissionDecision> admissions = {};  // about workloads
  int64_t work_used = 0;                                  // candidates examined
  bool unfinished = false;                                // stopped at its bound, or held; call again
  // A pod or workload would take GPUs of a node that may be cut anew (model::Node::mig), and one before it fits nowhere
  // and may need them cut. The next cycle gives it its place; whoever cuts is to say before which nodes are not to be
  // had (NodeRepartitioning). While that changes anything, pods are held again, so that all are served in their order.
  bool held = false;
  // When time alone could change something (a back-off ends, a verdict may be told again); none: only an event can.
  bool has_wakeup = false;
  Time wakeup;
  // Of all that time could change, nothing but that nodes are kept for who waits long: if no event is to come, nobody
  // starts for it.
  bool only_reserves = false;
};

}  // namespace berth::engine
