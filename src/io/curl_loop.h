// The thread of a CurlTransport: an epoll loop around curl_multi_socket_action.
//
// Other threads only put things into the inbox and wake the loop; the queue, the timers, the easy handles and all of
// libcurl belong to the loop's thread.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "io/curl_exchange.h"

namespace berth::io {

class CurlTransport::Loop {
 public:
  Loop(CurlTransportOptions options, Endpoint endpoint);
  ~Loop();

  Status start();
  void send(HttpRequest request, ResponseCallback done);
  StreamId open_stream(HttpRequest request, StreamCallbacks callbacks);
  void cancel(StreamId id);
  void run_after(Duration delay, std::function<void()> task);
  const Clock& clock() const { return *options_.clock; }
  void stop();
  TransportStats stats() const;

 private:
  using ExchangePtr = std::unique_ptr<Exchange>;
  struct Inbox {
    std::vector<ExchangePtr> exchanges;
    std::vector<StreamId> cancels;
    std::vector<std::pair<Time, std::function<void()>>> tasks;
    bool stop = false;
    bool empty() const { return exchanges.empty() && cancels.empty() && tasks.empty() && !stop; }
  };

  // Any thread.
  template <typename Add>
  bool put(Add add);
  void submit(ExchangePtr exchange);

  // The loop's thread.
  void run();
  void take_inbox();
  void start_queued();
  void begin(ExchangePtr exchange);
  void finish(ExchangePtr exchange, Result<HttpResponse> result);
  void collect_finished();
  void cancel_stream(StreamId id, Error error);
  void watch_stream_head(StreamId id, Time deadline);
  void expire_queued(Time now);
  void run_due_tasks();
  int wait_ms() const;
  void wait();
  void end_all();
  CURL* idle_handle();
  static int on_socket(CURL* easy, curl_socket_t socket, int what, void* self, void* known);
  static int on_timer(CURLM* multi, long timeout_ms, void* self);

  CurlTransportOptions options_;
  const Endpoint endpoint_;
  curl_slist* connect_to_ = nullptr;

  std::mutex mutex_;
  Inbox inbox_;          // under mutex_
  bool closed_ = false;  // under mutex_: the loop has ended
  std::atomic<StreamId> next_stream_{1};
  std::atomic<uint64_t> requests_{0}, failures_{0}, connections_{0}, in_flight_{0}, queued_{0};

  CURLM* multi_ = nullptr;
  int epoll_ = -1;
  int wakeup_ = -1;  // eventfd
  bool stopping_ = false;
  std::deque<ExchangePtr> queue_;
  std::unordered_map<CURL*, ExchangePtr> active_;
  std::unordered_map<StreamId, CURL*> streams_;
  std::vector<CURL*> idle_;
  std::multimap<Time, std::function<void()>> tasks_;
  int64_t curl_due_ms_ = -1;  // real monotonic milliseconds; -1: no timer
  Time next_expiry_{};
  std::atomic<std::thread::id> loop_thread_{};
  std::mutex join_mutex_;
  std::thread thread_;
};

}  // namespace berth::io
