// Promises: what of a node's use is only promised, to pods that are nominated for it (PodPhase::kNominated), and what
// they wait for: what those have who leave. Both without the shares of GPUs among it, which lie on devices
// (SharedDevices). Owner thread only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/int128.h"
#include "base/time.h"
#include "engine/ids.h"
#include "engine/pod_state.h"
#include "engine/resource_table.h"

namespace berth::engine {

class Promises {
 public:
  // A pod of the node comes (+1) or goes (-1); `requests`: of its class.
  void count(const PodState& pod, std::span<const ResourceAmount> requests, int sign) {
    const ShareHolder holder = holder_of(pod);
    if (holder == ShareHolder::kStays) return;
    std::vector<Int128>& amounts = holder == ShareHolder::kPromised ? promised_ : leaving_;
    for (const ResourceAmount& request : requests) {
      if (amounts.size() <= request.id.value) amounts.resize(request.id.value + 1, 0);
      amounts[request.id.value] += Int128{sign} * request.amount;
    }
    if (holder != ShareHolder::kPromised) return;
    if (pod.free_by < Time{INT64_MAX}) awaited_ += sign;
    if (!pod.node_kept && pod.pod.spec->gpu_share.asked()) shares_ += sign;
  }

  Int128 promised(ResourceId id) const { return at(promised_, id); }
  Int128 leaving(ResourceId id) const { return at(leaving_, id); }
  // For how many pods room is kept of which it is known when it is enough.
  int64_t awaited() const { return awaited_; }
  // How many have the promise of a share of a GPU for which others leave.
  int64_t shares() const { return shares_; }

 private:
  static Int128 at(const std::vector<Int128>& amounts, ResourceId id) {
    return id.value < amounts.size() ? amounts[id.value] : 0;
  }
  std::vector<Int128> promised_, leaving_;  // by ResourceId
  int64_t awaited_ = 0, shares_ = 0;
};

}  // namespace berth::engine
