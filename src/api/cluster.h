// Node, Namespace, PriorityClass and RuntimeClass: what a pod meets in the cluster.
// Source: k8s.io/api/core/v1, scheduling/v1 and node/v1 (1.35).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/meta.h"
#include "model/labels.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::api {

struct ContainerImage {
  std::vector<std::string> names;
  int64_t size_bytes = 0;
  friend bool operator==(const ContainerImage&, const ContainerImage&) = default;
};

struct Node {
  ObjectMeta metadata;
  bool unschedulable = false;
  std::vector<model::Taint> taints;
  std::string provider_id;
  model::ResourceList capacity;
  model::ResourceList allocatable;  // capacity where the status names none, as kubelet's registration defaults it
  std::vector<Condition> conditions;
  std::vector<ContainerImage> images;
  friend bool operator==(const Node&, const Node&) = default;
};

struct Namespace {
  ObjectMeta metadata;
};

struct PriorityClass {
  ObjectMeta metadata;
  int32_t value = 0;
  bool global_default = false;
  std::string preemption_policy = "PreemptLowerPriority";  // or "Never"
};

struct RuntimeClass {
  ObjectMeta metadata;
  model::ResourceList overhead;  // what it adds to each of its pods
  model::Labels node_selector;   // of the nodes that have it
  std::vector<model::Toleration> tolerations;
};

}  // namespace berth::api
