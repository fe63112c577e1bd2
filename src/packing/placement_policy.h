// PlacementPolicy: how good a node is for a request, and which of its devices the request gets.
//
// A policy sees one node and one request and nothing else, so that its scores can be kept until the node changes
// (packing/fleet.h does). The node with the highest score wins; of equals the first in the fleet's order, or one that
// is drawn. One file per policy. All but Berth's own (berth, berth-told) are baselines of Weng et al., "Beware of
// Fragmentation", ATC '23, and score as the paper's simulator does: in whole points, cut, not rounded. Immutable but
// for observe(); between two of its calls any thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "packing/fragment.h"
#include "packing/node.h"

namespace berth::packing {

// What a policy has found out about a node as it is; whoever keeps it forgets it when the node changes, or the policy.
struct NodeMemo {
  bool known = false;
  int64_t fragment = 0;
  double stranded = 0;
};

// A node with room for the request.
struct Candidate {
  const Node& node;
  int64_t fragment;          // FragmentMeasure::of(node)
  NodeMemo* memo = nullptr;  // the policy's own; null: nobody keeps one
};

class PlacementPolicy {
 public:
  virtual ~PlacementPolicy() = default;

  // At least 0; higher is better.
  virtual int32_t score(const Candidate& candidate, const Request& request) const = 0;
  // The devices of a request that asks for a share of one, as an index: the fullest device that has room, unless the
  // policy says otherwise. Whole devices are taken from the lowest idle index on.
  virtual int share_device(const Candidate& candidate, const Request& request, Rng& rng) const;
  // Told of every request before its place is looked for. Whether scores given before are no longer true.
  virtual bool observe(const Request& /*request*/) { return false; }
  // Whether one of the best nodes is drawn, instead of taking the first.
  virtual bool draws() const { return false; }
};

// What the nodes with devices have together.
struct FleetSupply {
  std::vector<int64_t> devices = {};  // by model
  int64_t cpu_milli = 0, memory_bytes = 0;

  void add(const Node& node);
};

// What a policy may know of the fleet beforehand.
struct FleetFacts {
  int64_t cpu_milli_max = 0;       // of the largest node
  int64_t device_milli_max = 0;    // of the node with most devices
  const FragmentMeasure& measure;  // outlives the policy
  // The requests that come, for policies that are told; looked at only while the policy is made.
  std::span<const Request> told = {};
  FleetSupply supply = {};
};

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;
  std::unique_ptr<PlacementPolicy> (*make)(const FleetFacts& facts);
};

// Sorted by name.
const std::vector<PolicyEntry>& placement_policies();

std::unique_ptr<PlacementPolicy> make_random(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_best_fit(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_dot_product(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_gpu_packing(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_gpu_clustering(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_berth(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_berth_told(const FleetFacts& facts);
std::unique_ptr<PlacementPolicy> make_fgd(const FleetFacts& facts);

}  // namespace berth::packing
