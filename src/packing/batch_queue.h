// BatchQueue: requests that wait, in the order in which they came, and are planned in batches.
//
// A batch sees the first `window` requests of the queue that fit when it begins; those that fit nowhere keep their turn
// without taking up the window. The head of the queue never starves: as long as it fits when a batch begins, it is
// placed at the latest in its batch number kPassedOverMax + 1. One thread; deterministic.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "packing/batch.h"

namespace berth::packing {

class BatchQueue {
 public:
  struct Placed {
    uint64_t ticket = 0;
    Placement placement;
  };

  // `window` is at least 1.
  explicit BatchQueue(size_t window, BatchOptions options = {});

  // Appends a request; the ticket is how many came before it.
  uint64_t add(const Request& request);
  size_t waiting() const { return queue_.size(); }
  // One batch. What it placed is taken in the fleet and leaves the queue; told in the order of the queue.
  std::vector<Placed> run(Fleet& fleet);

 private:
  struct Entry {
    uint64_t ticket = 0;
    WaitingRequest waiting;
  };

  size_t window_;
  BatchOptions options_;
  std::deque<Entry> queue_;
  uint64_t added_ = 0;
};

}  // namespace berth::packing
