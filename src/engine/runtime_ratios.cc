#include "engine/runtime_ratios.h"

#include <algorithm>

#include "base/int128.h"

namespace berth::engine {

void RuntimeRatios::settle(Time now) {
  for (const auto& [began, declared] : ended_) {
    const Int128 ratio = Int128{std::max<int64_t>(0, (now - began).nanos)} * kWhole / declared.nanos;
    ratios_.push_back(static_cast<int64_t>(std::min<Int128>(ratio, kWhole)));
    if (ratios_.size() > kWindow) ratios_.pop_front();
  }
  ended_.clear();
}

int64_t RuntimeRatios::median() const {
  if (ratios_.empty()) return kWhole;
  std::vector<int64_t> sorted(ratios_.begin(), ratios_.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() - 1) / 2];
}

}  // namespace berth::engine
