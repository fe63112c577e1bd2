// Trial: what a node would look like to a pod class without some of its pods.
//
// Takes pods of one node for gone on the live state, as far as the filters of nodes see it for the class: what the pods
// request, their devices where some are shared, and their host ports and claims where the class asks for any. Shares
// that are promised lie as they will with these gone (engine/promised_shares.h). Nothing else changes, neither lists of
// pods nor counts of peers nor the change log, and everything is back when the Trial ends. It costs what the pods that
// are moved ask for, and what is promised there, never the size of the cluster. Owner thread only; at most one is open
// at a time, and whoever opens one looks at no Candidates meanwhile.
//
// Invariant: State::hash() after the Trial equals that before it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/state.h"

namespace berth::engine {

class Trial {
 public:
  Trial(State& state, NodeSlot node, const PodClass& cls);
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial();

  // `requests` is that of the pod's class.
  void take_out(PodSlot pod, std::span<const ResourceAmount> requests);
  void put_back(PodSlot pod, std::span<const ResourceAmount> requests);

 private:
  // A pod with claims that is out, and what was chosen for them.
  struct Claimant {
    PodSlot pod;
    std::vector<std::pair<std::string, ClaimChoice>> choices;
  };
  // A share that is promised to a pod, and where it lies now.
  struct Promised {
    PodSlot pod;
    DeviceUse use;
    bool out = false;
  };
  void return_claims(const Claimant& claimant);
  void find_promised();
  void move_devices(PodSlot pod, int sign);
  void lift_promised();
  void lay_promised();

  State& state_;
  const NodeSlot slot_;
  NodeState& node_;
  const bool ports_, claims_;  // the class asks for some
  const bool shares_;          // some pods of the node may share its GPUs
  std::vector<Claimant> claimants_;
  std::vector<Promised> promised_;  // the largest first
  int64_t asked_ = 0;               // units of a device, by the class
};

}  // namespace berth::engine
