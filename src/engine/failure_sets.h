// FailureSets: each distinct combination of reasons, stored once, so that "why this node does not fit" is one integer.
//
// A fleet of ten thousand nodes gives a pod class a handful of distinct combinations; a class keeps one FailureSetId
// per node and a count per set, and a message is made from the counts alone, whatever the number of nodes.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <map>
#include <string>
#include <vector>

#include "engine/policy.h"

namespace berth::engine {

inline constexpr FailureSetId kFits{0};

class FailureSets {
 public:
  FailureSets() : sets_(1), helped_(1, false) {}

  // The id of the combination; kFits for none.
  FailureSetId intern(const Reasons& reasons, const ResourceTable& resources);
  // Texts of a set, as they stand in a message: "Insufficient nvidia.com/gpu".
  const std::vector<std::string>& texts(FailureSetId id) const { return sets_.at(id.value); }
  // Whether taking pods away from the node could change all of its reasons.
  bool preemption_helps(FailureSetId id) const { return helped_.at(id.value); }
  // Whether the node has room for the pod, or could once others have left; invalid: there is no node.
  bool could_have(FailureSetId id) const { return id.valid() && (id == kFits || preemption_helps(id)); }
  size_t size() const { return sets_.size(); }

 private:
  using Key = std::vector<std::pair<const ReasonInfo*, uint32_t>>;
  absl::flat_hash_map<Key, FailureSetId> ids_;
  std::vector<std::vector<std::string>> sets_;
  std::vector<bool> helped_;
  Key scratch_;
};

// A count of nodes per failure set, as one pod class sees the fleet. `nodes` counts all, the fitting included.
struct FailureCounts {
  std::vector<uint32_t> by_set;  // index FailureSetId
  uint32_t nodes = 0;

  void add(FailureSetId id, int32_t delta) {
    if (id.value >= by_set.size()) by_set.resize(id.value + 1, 0);
    by_set[id.value] += static_cast<uint32_t>(delta);
    nodes += static_cast<uint32_t>(delta);
  }
};

// kube-scheduler's FailedScheduling text: "0/8 nodes are available: 3 Insufficient nvidia.com/gpu, 5 node(s) had
// untolerated taint(s)." Reasons are sorted as strings with their count in front (framework.FitError.Error).
std::string fit_message(const FailureCounts& counts, const FailureSets& sets);
// The same from how many nodes give each reason; texts with no node are left out.
std::string unavailable_message(uint64_t nodes, const std::map<std::string, uint64_t>& by_text);
// The same for a pod that no node can take, whatever it is: "0/8 nodes are available: persistentvolumeclaim "data" not
// found. not found". The last words are kube-scheduler's, which looks for nodes to preempt on and finds none named;
// they are left out after an objection that is a sentence with its full stop, which is Berth's own.
std::string objection_message(const std::string& objection, size_t nodes);

}  // namespace berth::engine
