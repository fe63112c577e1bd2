#include "apps/scheduler/lane.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace berth::apps {
namespace {

constexpr Duration kPauseMin = Duration::seconds(1);
constexpr Duration kPauseMax = Duration::seconds(15);  // without a Retry-After that is longer

}  // namespace

void Lane::enter(Send send) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(send));
  }
  pump();
}

void Lane::left(bool well) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
    if (well) pause_ = {};
    if (well && window_ != kUnlimited && ++window_ >= connections_) window_ = kUnlimited;
  }
  pump();
}

void Lane::throttled(Duration asked, Send again) {
  const std::lock_guard lock(mutex_);
  --out_;
  ++throttled_;
  waiting_.push_back(std::move(again));
  close(asked);
}

void Lane::again(Send send) {
  {
    const std::lock_guard lock(mutex_);
    --out_;
    waiting_.push_back(std::move(send));
  }
  pump();
}

void Lane::drop() {
  std::deque<Send> dropped;  // which may own the lane: destroyed without the lock
  const std::lock_guard lock(mutex_);
  dropped.swap(waiting_);
}

bool Lane::closed() const {
  const std::lock_guard lock(mutex_);
  return transport_.clock().monotonic() < opens_at_;
}

uint64_t Lane::throttled_count() const {
  const std::lock_guard lock(mutex_);
  return throttled_;
}

// Requests that were under way when the lane closed may be refused, too: they say nothing new, unless they name a
// longer wait.
void Lane::close(Duration asked) {
  const Time now = transport_.clock().monotonic();
  if (now >= opens_at_) {
    pause_ = pause_.nanos == 0 ? kPauseMin : std::min(pause_ * 2, kPauseMax);
    window_ = std::max<int64_t>(std::min<int64_t>(window_, connections_) / 2, 1);
  }
  opens_at_ = std::max(opens_at_, now + std::max(pause_, asked));
  if (!std::exchange(timer_runs_, true)) wait_until_open(now);
}

void Lane::wait_until_open(Time now) {
  transport_.run_after(opens_at_ - now, [self = shared_from_this()] {
    {
      const std::lock_guard lock(self->mutex_);
      const Time later = self->transport_.clock().monotonic();
      if (later < self->opens_at_) return self->wait_until_open(later);
      self->timer_runs_ = false;
    }
    self->pump();
  });
}

// One caller at a time, so that requests that end at once (the transport has stopped) do not nest. Whoever comes
// meanwhile leaves it to that caller, who looks again before it goes.
void Lane::pump() {
  std::vector<Send> ready;
  for (bool first = true; first || !ready.empty(); first = false) {
    for (const Send& send : std::exchange(ready, {})) send();
    const std::lock_guard lock(mutex_);
    if (first && std::exchange(pumping_, true)) return;
    const bool open = transport_.clock().monotonic() >= opens_at_;
    for (; open && !waiting_.empty() && out_ < window_; ++out_) {
      ready.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    pumping_ = !ready.empty();
  }
}

}  // namespace berth::apps
