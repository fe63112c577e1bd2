// Where the pods of one owner want to be with regard to one another: the annotation berth.dev/topology, in terms of a
// tree of domains that node labels name, from zones down to hosts.
//
//   berth.dev/topology: "required=zone,preferred=rack"    all in one zone, in one rack where that is possible
//   berth.dev/topology: "required=rack,apart-required=host"    in one rack, on a host each
//
// A wish becomes an ordinary inter-pod term whose selector sees the pods of the same controller; these carry its UID as
// a label that no object of Kubernetes can have. Pods without the annotation carry and ask nothing, and are not seen.
// Pure functions; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/meta.h"
#include "base/result.h"
#include "model/labels.h"
#include "model/peers.h"

namespace berth::bridge {

// A comma-separated list of required=LEVEL, preferred=LEVEL, apart-required=LEVEL and apart-preferred=LEVEL.
inline constexpr std::string_view kTopologyAnnotation = "berth.dev/topology";
// The key under which a pod's controller is seen. A label's key has no space.
inline constexpr std::string_view kOwnerLabel = "owner UID";

struct TopologyLevel {
  std::string name;  // as annotations call it: "rack"
  std::string key;   // of the node label whose values are the domains
  friend bool operator==(const TopologyLevel&, const TopologyLevel&) = default;
};
using TopologyLevels = std::vector<TopologyLevel>;  // the widest first; names and keys are unique

// zone, block, rack and host. There is no standard for the keys of block and rack; these are the ones that the manuals
// of Kueue and KAI-Scheduler use.
const TopologyLevels& default_topology_levels();

// What is wrong with the annotation's value, and the way out; empty: nothing.
std::string topology_annotation_problem(const std::string& value, const TopologyLevels& levels);

// The slices of a set of `count` pods with such metadata; berth.dev/topology comes first, and knows none. An error is a
// sentence for Peers::problem.
Result<std::vector<model::SliceLayer>> slices_of(const api::ObjectMeta& pod, int32_t count);

// Adds to `labels` and `peers` what the pod's annotation asks for; nothing without it, or without a controller: a pod
// by itself is together with all of its owner's. A value that makes no sense becomes `peers.problem`.
void add_topology(const api::ObjectMeta& pod, const TopologyLevels& levels, model::Labels& labels, model::Peers& peers);

}  // namespace berth::bridge
