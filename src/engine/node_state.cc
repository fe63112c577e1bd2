#include "engine/node_state.h"

#include <bit>

namespace berth::engine {

// Where more GPUs are used and promised than there are, a share may still join others that stay, as that takes no
// further one: if those that are used are not too many themselves, for then nobody knows which of them is there, and if
// all promises can be kept though the devices of those shares stay open. Whole GPUs may all become free where room is
// kept; for shares that were promised the room of others, no more than these have, since which device they are to lie
// on is not settled before. Room of which it is known when it is enough is lent, to who has ended by then.
bool NodeState::keeps_promises_beside_shares() const {
  const int64_t all = gpus_allocatable();
  const int64_t open = devices.count_open(), strangers = std::popcount(listed.strangers());
  const Int128 whole = promises.promised(share_resource);
  const Int128 later = devices.count_later() + strangers + whole;
  const Int128 stays = gpus_used() - open - strangers - whole - promises.leaving(share_resource);  // whole
  return gpus_used() - gpus_promised() <= all && promises.awaited() == 0 &&
         later + (promises.shares() > 0 ? stays : 0) <= all;
}

int32_t NodeState::best_shared(int64_t units, const SharedDevices& shared) const {
  if (gpus_used() <= gpus_allocatable()) return shared.best_fit(units, listed.given());
  if (!keeps_promises_beside_shares()) return -1;
  const int32_t device = shared.best_fit(units, listed.given(), SharedDevices::Among::kStaying);
  return device < (listed ? listed.size() : node.gpu_devices()) ? device : -1;
}

int64_t NodeState::most_shared() const {
  if (gpus_used() <= gpus_allocatable()) return devices.most_room(listed.given());
  return keeps_promises_beside_shares() ? devices.most_room(listed.given(), SharedDevices::Among::kStaying) : -1;
}

}  // namespace berth::engine
