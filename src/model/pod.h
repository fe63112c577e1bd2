// Pod: what the engine needs to know of a Kubernetes pod, as a plain value.
//
// src/bridge makes it from an api::Pod: requests are already the effective ones (init containers, overhead, resizes).
// SchedulingSpec is everything that decides where a pod fits and how nodes score for it: pods with equal specs form one
// pod class in the engine and share all work.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/gpu.h"
#include "model/labels.h"
#include "model/node_affinity.h"
#include "model/peers.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::model {

enum class Protocol : uint8_t { kTcp, kUdp, kSctp };

struct HostPort {
  std::string ip = "0.0.0.0";  // 0.0.0.0 clashes with every address
  Protocol protocol = Protocol::kTcp;
  int32_t port = 0;

  bool clashes_with(const HostPort& other) const {
    return port == other.port && protocol == other.protocol &&
           (ip == other.ip || ip == "0.0.0.0" || other.ip == "0.0.0.0");
  }
  friend bool operator==(const HostPort&, const HostPort&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const HostPort& p) {
    return H::combine(std::move(state), p.ip, p.protocol, p.port);
  }
};

// The annotation berth.dev/placement: of the pod, else of its namespace; kDefault: pods with GPUs pack, others spread.
enum class Placement : uint8_t { kDefault, kPack, kSpread };

// A claim that one of the pod's volumes stands for.
struct ClaimUse {
  std::string claim;  // "namespace/name"
  // Of an ephemeral volume: the pod, whose controller makes the claim; empty: the pod names an existing claim.
  std::string made_for;  // "namespace/name"
  std::string made_for_uid;

  bool ephemeral() const { return !made_for.empty(); }
  friend bool operator==(const ClaimUse&, const ClaimUse&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ClaimUse& c) {
    return H::combine(std::move(state), c.claim, c.made_for, c.made_for_uid);
  }
};

struct SchedulingSpec {
  ResourceList requests;  // effective, including "pods": 1
  GpuShare gpu_share;     // beside the requests
  Labels node_selector;
  NodeAffinity affinity;
  std::vector<Toleration> tolerations;
  std::vector<HostPort> host_ports;
  Peers peers;
  std::vector<std::string> images;  // of all containers, sorted, with tag or digest: "docker.io/library/nginx:1.27"
  std::vector<ClaimUse> claims;     // in the order of the pod's volumes, each once
  bool resource_claims = false;     // it has ResourceClaims (DRA), of whatever kind
  Placement placement = Placement::kDefault;  // resolved by the engine from the pod's and its namespace's wish

  friend bool operator==(const SchedulingSpec&, const SchedulingSpec&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const SchedulingSpec& s) {
    return H::combine(std::move(state), s.requests, s.gpu_share, s.node_selector, s.affinity, s.tolerations,
                      s.host_ports, s.peers, s.images, s.claims, s.resource_claims, s.placement);
  }
};

struct Pod {
  std::string uid;  // unique over time; the engine's key
  std::string namespace_name;
  std::string name;
  std::shared_ptr<const Labels> labels;  // null: none; what the selectors of other pods see
  int64_t generation = 0;                // metadata.generation, which conditions name as observedGeneration
  int32_t priority = 0;
  bool preempts = true;     // preemptionPolicy is not Never
  bool gave_up = false;     // the engine's own: it preempts nobody now, since that came to nothing too often
  bool preemptible = true;  // false: berth.dev/preemptible says so, which holds where its namespace allows it
  Time created;
  Time started;                                // status.startTime; 0: not yet
  std::optional<Duration> runtime;             // at most, as it declares itself (api/runtime_estimate.h)
  bool restarts = false;                       // restartPolicy is Always
  std::shared_ptr<const SchedulingSpec> spec;  // never null
  Placement placement = Placement::kDefault;   // its own annotation
  std::string node_name;                       // where it is bound; empty while pending
  std::vector<std::string> gpu_devices;        // of its node that it has or shares: UUIDs or numbers; empty: not known
  std::string nominated_node;                  // status.nominatedNodeName
  bool ours = true;                            // its schedulerName is one that we serve; others only take up room
  bool gated = false;                          // spec.schedulingGates is not empty
  bool terminating = false;  // has a deletionTimestamp: not scheduled; if bound it holds its room until terminal
  bool terminal = false;     // phase Succeeded or Failed: holds nothing
  bool rejected_by_kubelet = false;  // terminal because the kubelet refused it (OutOf…, UnexpectedAdmissionError)
  bool daemon = false;               // runs wherever its node does: a DaemonSet's, or a static pod's mirror
  std::string owner_uid;             // controller's UID; empty for a bare pod
  bool of_job = false;               // that controller is a Job
  bool queued = false;               // the engine's own: its Job names a queue; without a Workload it waits
  bool awaits_owner = false;         // nobody has seen its Job yet, which may name a queue; without a Workload it waits
  std::string workload;              // "namespace/name" of the Workload that it belongs to; empty: none
  bool in_group = false;             // which its label calls so, too
  std::string pod_set;               // of the workload; empty: its only one
  std::optional<int32_t> index;      // its number in the pod set, from 0; none: one is like the other
  bool stand_in = false;             // the engine's own: keeps a place for a pod of a workload that has not come yet
  std::string keeps_gpus_for;        // a stand-in for GPUs that are to be cut: for whom, as people are told; else empty
  bool keeps_class = false;          // a stand-in that stands for nobody: what is known of its class is kept with it

  // "namespace/name".
  std::string full_name() const { return namespace_name + "/" + name; }
  // It runs until it is deleted, as far as anybody has said.
  bool runs_on() const { return restarts && !runtime; }
};

}  // namespace berth::model
