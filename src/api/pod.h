// Pod: a Kubernetes pod as Berth reads it, from the API server or from a file.
//
// A plain value that keeps what scheduling and its explanations need, under the API's own names. requests.h turns it
// into amounts, src/bridge into the engine's model::Pod. Resource amounts are in canonical units (model/quantity.h),
// with requests already defaulted from limits as the API server does. Source: k8s.io/api/core/v1 (1.35).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/meta.h"
#include "api/peers.h"
#include "api/volumes.h"
#include "model/node_affinity.h"
#include "model/pod.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::api {

struct ResourceRequirements {
  model::ResourceList requests;
  model::ResourceList limits;
  friend bool operator==(const ResourceRequirements&, const ResourceRequirements&) = default;
};

struct ContainerPort {
  int32_t container_port = 0;
  int32_t host_port = 0;  // 0: none; defaulted to the container's port under hostNetwork
  std::string host_ip;
  model::Protocol protocol = model::Protocol::kTcp;
  friend bool operator==(const ContainerPort&, const ContainerPort&) = default;
};

struct Container {
  std::string name;
  std::string image;
  ResourceRequirements resources;
  std::vector<ContainerPort> ports;
  bool restart_always = false;  // on an init container: a sidecar
  friend bool operator==(const Container&, const Container&) = default;
};

// A volume that a claim stands for.
struct ClaimVolume {
  std::string name;               // of the volume
  std::string claim_name;         // of the claim that exists; empty for ephemeral ones
  std::optional<ClaimSpec> made;  // ephemeral: the claim "<pod>-<volume>" is made with the pod
  friend bool operator==(const ClaimVolume&, const ClaimVolume&) = default;
};

struct PodSpec {
  std::string node_name;
  std::string scheduler_name = "default-scheduler";
  std::string restart_policy = "Always";
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  bool host_network = false;
  model::Labels node_selector;
  model::NodeAffinity node_affinity;
  PodAffinity pod_affinity;
  PodAffinity pod_anti_affinity;
  std::vector<TopologySpreadConstraint> topology_spread;
  bool has_resource_claims = false;  // resourceClaims (DRA)
  std::vector<model::Toleration> tolerations;
  model::ResourceList overhead;
  std::optional<ResourceRequirements> resources;  // pod-level resources
  std::optional<int32_t> priority;
  std::string priority_class_name;
  std::string runtime_class_name;
  std::string preemption_policy = "PreemptLowerPriority";  // or "Never"
  std::vector<std::string> scheduling_gates;
  std::optional<int64_t> active_deadline_s;
  std::optional<int64_t> termination_grace_s;
  std::vector<ClaimVolume> claim_volumes;  // in the order of its volumes
  friend bool operator==(const PodSpec&, const PodSpec&) = default;
};

struct ContainerStatus {
  std::string name;
  model::ResourceList allocated;                  // allocatedResources
  std::optional<ResourceRequirements> resources;  // what is in force on the node
  friend bool operator==(const ContainerStatus&, const ContainerStatus&) = default;
};

struct PodStatus {
  std::string phase;  // "Pending", "Running", "Succeeded", "Failed", "Unknown", or empty
  std::string reason;
  std::string message;
  std::string nominated_node_name;
  std::optional<Time> start_time;
  std::vector<Condition> conditions;
  std::vector<ContainerStatus> containers;
  std::vector<ContainerStatus> init_containers;
  model::ResourceList allocated;                  // of pod-level resources
  std::optional<ResourceRequirements> resources;  // of pod-level resources

  // The condition of `type`; null without it.
  const Condition* condition(std::string_view type) const;
  friend bool operator==(const PodStatus&, const PodStatus&) = default;
};

struct Pod {
  ObjectMeta metadata;
  PodSpec spec;
  PodStatus status;

  // Succeeded or Failed: it holds nothing on its node.
  bool terminal() const { return status.phase == "Succeeded" || status.phase == "Failed"; }
  friend bool operator==(const Pod&, const Pod&) = default;
};

struct PodTemplate {
  ObjectMeta metadata;
  PodSpec spec;
};

}  // namespace berth::api
