// Window: a bound on requests in flight for the benches that talk to a server, and the time by which they count.
//
// The thread that sends calls enter() before each request and drain() at the end; answers call leave(), on any thread.
#pragma once

#include <condition_variable>
#include <mutex>

#include "io/system_clock.h"

namespace berth::bench {

inline double now_s() { return static_cast<double>(io::SystemClock::instance().monotonic().nanos) / 1e9; }

// At most `size` between enter() and leave(); the count of those that failed.
class Window {
 public:
  explicit Window(int size) : free_(size), size_(size) {}
  void enter() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void leave(bool ok) {
    const std::lock_guard lock(mutex_);
    ++free_;
    failed_ += ok ? 0 : 1;
    changed_.notify_all();
  }
  int drain() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return free_ == size_; });
    return failed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_;
  const int size_;
  int failed_ = 0;
};

}  // namespace berth::bench
