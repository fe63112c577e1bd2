#include "apps/scheduler/throttle.h"

#include <algorithm>
#include <utility>

#include "kube/client.h"

namespace berth::apps {
namespace {

constexpr Duration kRepeatMax = Duration::seconds(15);
constexpr Duration kPauseMin = Duration::seconds(1);

}  // namespace

Duration Throttle::wait(const Error& error, Duration& repeat_after, Time now) {
  const Duration own = std::exchange(repeat_after, std::min(repeat_after * 2, kRepeatMax));
  const Duration asked = kube::retry_after(error);
  if (error.code != ErrorCode::kThrottled) return std::max(own, asked);
  closed_until_ = std::max(closed_until_, now + std::max({own, asked, kPauseMin}));
  return closed_until_ - now;
}

}  // namespace berth::apps
