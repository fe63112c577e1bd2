// Inbox: what other threads have for the owner thread, in the order in which it came.
//
// push() from any thread, take() from one. Messages are taken in batches, so that a burst costs one wake-up.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/time.h"

namespace berth::apps {

template <typename Message>
class Inbox {
 public:
  void push(Message message) {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
    if (messages_.size() == 1) wake_.notify_one();
  }

  // Everything that has come; waits up to `limit` for the first message.
  std::vector<Message> take(Duration limit) {
    std::unique_lock lock(mutex_);
    if (messages_.empty() && limit.nanos > 0)
      wake_.wait_for(lock, std::chrono::nanoseconds(limit.nanos), [this] { return !messages_.empty(); });
    return std::exchange(messages_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Message> messages_;
};

}  // namespace berth::apps
