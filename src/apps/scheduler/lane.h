// Lane: lets requests of one kind out, and slows them down when the server asks for that (429 Too Many Requests).
//
// Open, it lets everything out at once. A 429 closes it for as long as the server says (Retry-After), for a second at
// least, longer each time while nothing is answered well. Then requests go out a few at a time: half as many at once as
// before the 429, one more for each that is answered well, until as many as the connections carry; then it is open
// again. What is held back goes out in the order in which it was; nothing is lost.
//
// Thread-safe. Calls `send` functions from enter() or on the transport's thread, without holding a lock.
//
// Invariants: 1. nothing is let out while closed(); 2. every enter() and again() lets its request out once; each of
// these ends in one of left(), throttled() and again().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "io/transport.h"

namespace berth::apps {

class Lane : public std::enable_shared_from_this<Lane> {
 public:
  using Send = std::function<void()>;

  // `transport` and its callbacks outlive the lane's use; `connections`: requests that it has on the wire at most.
  Lane(io::Transport& transport, int connections) : transport_(transport), connections_(connections) {}

  // Lets the request out, now or when its turn has come.
  void enter(Send send);
  // A request that was let out has ended.
  void left(bool well);
  // It was refused with 429, and the server asked to be left alone for so long: it goes out again when the lane opens.
  void throttled(Duration asked, Send again);
  // It was not sent, since the lane had closed meanwhile.
  void again(Send send);

  // Forgets what is held back; for the end.
  void drop();

  bool closed() const;
  uint64_t throttled_count() const;

 private:
  void close(Duration asked);
  void wait_until_open(Time now);
  void pump();

  io::Transport& transport_;
  const int connections_;
  mutable std::mutex mutex_;
  std::deque<Send> waiting_;
  int64_t out_ = 0;              // let out and not ended
  int64_t window_ = kUnlimited;  // how many may be out
  Time opens_at_;
  bool timer_runs_ = false, pumping_ = false;
  Duration pause_;  // the last one; 0 after an answer that was well
  uint64_t throttled_ = 0;

  static constexpr int64_t kUnlimited = INT64_MAX;
};

}  // namespace berth::apps
