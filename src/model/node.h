// Node: what the engine needs to know of a Kubernetes node, as a plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/gpu.h"
#include "model/labels.h"
#include "model/resources.h"
#include "model/taint.h"

namespace berth::model {

struct Node {
  std::string name;  // unique; the engine's key
  std::string uid;
  Labels labels;
  std::vector<Taint> taints;
  bool unschedulable = false;  // spec.unschedulable, "cordoned"
  ResourceList capacity;
  ResourceList allocatable;
  NodeGpus gpus;
  std::vector<std::pair<std::string, int64_t>> images;  // status.images: every name, with its size in bytes; sorted
  // How many devices shares are a part of: those that are not healthy now are numbered, too.
  int64_t gpu_devices() const { return std::max(capacity.get(gpus.resource), allocatable.get(gpus.resource)); }
  friend bool operator==(const Node&, const Node&) = default;
};

}  // namespace berth::model
