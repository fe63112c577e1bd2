// RuntimeRatios: how long work really takes, as a part of what it declares.
//
// A window of the latest pods that ended by themselves, in the order in which they did. People declare what a job will
// not exceed, and most take much less (Mu'alem and Feitelson, IEEE TPDS 2001), so that the middle of what has been seen
// tells more of when room becomes free than the declared ends do. Owner thread only.
#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::engine {

class RuntimeRatios {
 public:
  static constexpr size_t kWindow = 256;
  static constexpr int64_t kWhole = 1000;

  // A pod that ran since `began` has ended, at a time that the next settle() says; `declared` is above 0.
  void note(Time began, Duration declared) { ended_.emplace_back(began, declared); }
  void settle(Time now);
  // The median in thousandths, at most kWhole, which it is while nothing has been seen. O(kWindow).
  int64_t median() const;
  size_t seen() const { return ratios_.size(); }  // in the window

 private:
  std::vector<std::pair<Time, Duration>> ended_;  // since settle(): when they began, and what they declared
  std::deque<int64_t> ratios_;                    // in thousandths
};

}  // namespace berth::engine
