#include "io/curl_loop.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "io/system_clock.h"

namespace berth::io {
namespace {

constexpr Duration kExpirySweep = Duration::millis(250);

int64_t real_now_ms() { return SystemClock::instance().monotonic().nanos / 1'000'000; }

Error unsent(const HttpRequest& request, std::string_view why) {
  return Error{ErrorCode::kUnavailable, fmt::format("{} {}: not sent, {}", request.method, request.target, why), 0, 0};
}

}  // namespace

CurlTransport::Loop::Loop(CurlTransportOptions options, Endpoint endpoint)
    : options_(std::move(options)), endpoint_(std::move(endpoint)) {
  if (options_.clock == nullptr) options_.clock = &SystemClock::instance();
  options_.max_in_flight = std::clamp(options_.max_in_flight, 1, 1024);
  if (!endpoint_.connect_to.empty()) connect_to_ = curl_slist_append(nullptr, endpoint_.connect_to.c_str());
}

CurlTransport::Loop::~Loop() {
  stop();
  for (CURL* easy : idle_) curl_easy_cleanup(easy);
  if (multi_ != nullptr) curl_multi_cleanup(multi_);
  curl_slist_free_all(connect_to_);
  if (epoll_ >= 0) close(epoll_);
  if (wakeup_ >= 0) close(wakeup_);
}

Status CurlTransport::Loop::start() {
  multi_ = curl_multi_init();
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wakeup_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (multi_ == nullptr || epoll_ < 0 || wakeup_ < 0)
    return fail(ErrorCode::kInternal, "no epoll or event descriptor is left; raise the limit of open files");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = wakeup_;
  epoll_ctl(epoll_, EPOLL_CTL_ADD, wakeup_, &event);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Loop::on_socket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Loop::on_timer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, static_cast<long>(CURLPIPE_NOTHING));
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_in_flight + 64));
  thread_ = std::thread([this] { run(); });
  return {};
}

// Adds to the inbox under the lock and wakes the loop; false once the loop has ended.
template <typename Add>
bool CurlTransport::Loop::put(Add add) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    wake = inbox_.empty() && std::this_thread::get_id() != loop_thread_.load();
    add(inbox_);
  }
  const uint64_t one = 1;
  if (wake && write(wakeup_, &one, sizeof one) < 0) return true;  // full counter: the loop is awake anyway
  return true;
}

void CurlTransport::Loop::submit(ExchangePtr exchange) {
  exchange->deadline = clock().monotonic() + exchange->request.timeout;
  if (put([&](Inbox& inbox) { inbox.exchanges.push_back(std::move(exchange)); })) return;
  Error error = unsent(exchange->request, "the client has been stopped");
  finish(std::move(exchange), fail(std::move(error)));
}

void CurlTransport::Loop::send(HttpRequest request, ResponseCallback done) {
  if (queued_.load(std::memory_order_relaxed) >= options_.max_queued) {
    done(fail(ErrorCode::kThrottled, fmt::format("{} {}: not sent, {} requests are waiting already; send fewer at once",
                                                 request.method, request.target, options_.max_queued)));
    return;
  }
  auto exchange = std::make_unique<Exchange>();
  exchange->request = std::move(request);
  exchange->done = std::move(done);
  queued_.fetch_add(1, std::memory_order_relaxed);
  submit(std::move(exchange));
}

StreamId CurlTransport::Loop::open_stream(HttpRequest request, StreamCallbacks callbacks) {
  auto exchange = std::make_unique<Exchange>();
  exchange->request = std::move(request);
  exchange->done = std::move(callbacks.done);
  exchange->on_chunk = std::move(callbacks.on_chunk);
  const StreamId id = exchange->stream = next_stream_.fetch_add(1);
  submit(std::move(exchange));
  return id;
}

void CurlTransport::Loop::cancel(StreamId id) {
  put([&](Inbox& inbox) { inbox.cancels.push_back(id); });
}

void CurlTransport::Loop::run_after(Duration delay, std::function<void()> task) {
  const Time due = clock().monotonic() + delay;
  put([&](Inbox& inbox) { inbox.tasks.emplace_back(due, std::move(task)); });
}

void CurlTransport::Loop::stop() {
  put([](Inbox& inbox) { inbox.stop = true; });
  if (std::this_thread::get_id() == loop_thread_.load()) return;
  const std::lock_guard lock(join_mutex_);
  if (thread_.joinable()) thread_.join();
}

TransportStats CurlTransport::Loop::stats() const {
  return {.requests = requests_,
          .failures = failures_,
          .connections = connections_,
          .in_flight = in_flight_,
          .queued = queued_};
}

void CurlTransport::Loop::run() {
  loop_thread_ = std::this_thread::get_id();
  while (!stopping_) {
    take_inbox();
    run_due_tasks();
    start_queued();
    wait();
    collect_finished();
  }
  end_all();
}

void CurlTransport::Loop::take_inbox() {
  Inbox taken;
  {
    const std::lock_guard lock(mutex_);
    std::swap(taken, inbox_);
  }
  for (ExchangePtr& exchange : taken.exchanges) {
    if (exchange->stream == 0) {
      queue_.push_back(std::move(exchange));
    } else {
      watch_stream_head(exchange->stream, exchange->deadline);
      begin(std::move(exchange));
    }
  }
  for (const StreamId id : taken.cancels)
    cancel_stream(id, Error{ErrorCode::kUnavailable, "the stream was cancelled", 0, 0});
  for (auto& [due, task] : taken.tasks) tasks_.emplace(due, std::move(task));
  if (taken.stop) stopping_ = true;
}

void CurlTransport::Loop::start_queued() {
  const Time now = clock().monotonic();
  while (!queue_.empty() && in_flight_ < static_cast<uint64_t>(options_.max_in_flight)) {
    ExchangePtr exchange = std::move(queue_.front());
    queue_.pop_front();
    --queued_;
    begin(std::move(exchange));
  }
  if (!queue_.empty() && now >= next_expiry_) expire_queued(now);
}

// Requests whose time is over while they wait; others behind them may have longer, so all are looked at, but seldom.
void CurlTransport::Loop::expire_queued(Time now) {
  next_expiry_ = now + kExpirySweep;
  std::vector<ExchangePtr> expired;
  std::erase_if(queue_, [&](ExchangePtr& exchange) {
    if (exchange->deadline > now) return false;
    expired.push_back(std::move(exchange));
    return true;
  });
  queued_ -= expired.size();
  for (ExchangePtr& exchange : expired) {
    Error error = unsent(exchange->request, "its time was over while it waited for others; send fewer at once");
    finish(std::move(exchange), fail(std::move(error)));
  }
}

void CurlTransport::Loop::begin(ExchangePtr exchange) {
  const Duration left = exchange->deadline - clock().monotonic();
  if (left <= Duration{}) {
    Error error = unsent(exchange->request, "its time was over before it could start");
    return finish(std::move(exchange), fail(std::move(error)));
  }
  if (exchange->request.may_start && !exchange->request.may_start()) {
    Error error = unsent(exchange->request, "its sender no longer wants it");
    return finish(std::move(exchange), fail(std::move(error)));
  }
  if (options_.credential) {
    auto credential = options_.credential();
    if (!credential) return finish(std::move(exchange), fail(credential.error()));
    exchange->credential = std::move(*credential);
  }
  CURL* easy = exchange->easy = idle_handle();
  configure_request(*exchange, options_, endpoint_, left);
  if (exchange->stream != 0) {
    streams_[exchange->stream] = easy;
  } else {
    ++in_flight_;
  }
  active_[easy] = std::move(exchange);
  curl_multi_add_handle(multi_, easy);
}

CURL* CurlTransport::Loop::idle_handle() {
  if (!idle_.empty()) {
    CURL* easy = idle_.back();
    idle_.pop_back();
    return easy;
  }
  CURL* easy = curl_easy_init();
  check(easy != nullptr, "libcurl gives no easy handle: out of memory");
  configure_handle(easy, options_, connect_to_);
  return easy;
}

// Ends one exchange that libcurl no longer has; its handle is free for the next before `done` runs.
void CurlTransport::Loop::finish(ExchangePtr exchange, Result<HttpResponse> result) {
  if (exchange->easy != nullptr) {
    long opened = 0;
    curl_easy_getinfo(exchange->easy, CURLINFO_NUM_CONNECTS, &opened);
    connections_ += static_cast<uint64_t>(opened);
    curl_easy_setopt(exchange->easy, CURLOPT_HTTPHEADER, nullptr);
    idle_.push_back(exchange->easy);
    if (exchange->stream != 0) {
      streams_.erase(exchange->stream);
    } else {
      --in_flight_;
    }
  }
  ++requests_;
  if (!result) ++failures_;
  if (result && result->status == 401 && options_.on_unauthorized) options_.on_unauthorized();
  if (exchange->done) exchange->done(std::move(result));
}

void CurlTransport::Loop::collect_finished() {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURL* easy = message->easy_handle;
    const CURLcode code = message->data.result;
    curl_multi_remove_handle(multi_, easy);  // also frees `message`
    const auto found = active_.find(easy);
    check(found != active_.end(), "libcurl ended a request that was not active");
    ExchangePtr exchange = std::move(found->second);
    active_.erase(found);
    Result<HttpResponse> result = HttpResponse{};
    if (code == CURLE_OK) {
      result = std::move(exchange->response);
    } else {
      result = fail(exchange_error(code, *exchange, options_));
    }
    finish(std::move(exchange), std::move(result));
  }
}

void CurlTransport::Loop::cancel_stream(StreamId id, Error error) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const auto active = active_.find(found->second);
  ExchangePtr exchange = std::move(active->second);
  active_.erase(active);
  curl_multi_remove_handle(multi_, exchange->easy);
  finish(std::move(exchange), fail(std::move(error)));
}

// libcurl's own timeout would end the whole stream; this one only ends a stream whose headers do not come.
void CurlTransport::Loop::watch_stream_head(StreamId id, Time deadline) {
  tasks_.emplace(deadline, [this, id] {
    const auto found = streams_.find(id);
    if (found == streams_.end() || active_.at(found->second)->response.status != 0) return;
    cancel_stream(id, Error{ErrorCode::kTimeout, "no response to the watch in time; it is opened again", 0, 0});
  });
}

void CurlTransport::Loop::run_due_tasks() {
  const Time now = clock().monotonic();
  while (!tasks_.empty() && tasks_.begin()->first <= now) {
    auto task = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    task();
  }
}

int CurlTransport::Loop::wait_ms() const {
  int64_t wait = 10'000;
  if (!tasks_.empty()) {
    const int64_t nanos = (tasks_.begin()->first - clock().monotonic()).nanos;
    wait = std::min(wait, (nanos + 999'999) / 1'000'000);
  }
  if (!queue_.empty()) wait = std::min<int64_t>(wait, kExpirySweep.nanos / 1'000'000);
  if (curl_due_ms_ >= 0) wait = std::min(wait, curl_due_ms_ - real_now_ms());
  return static_cast<int>(std::max<int64_t>(0, wait));
}

void CurlTransport::Loop::wait() {
  bool inbox_waits = false;
  {
    const std::lock_guard lock(mutex_);
    inbox_waits = !inbox_.empty();
  }
  std::array<epoll_event, 128> events;
  const int count =
      epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), inbox_waits || stopping_ ? 0 : wait_ms());
  int running = 0;
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<size_t>(i)];
    if (event.data.fd == wakeup_) {
      uint64_t drained = 0;
      if (read(wakeup_, &drained, sizeof drained) < 0) continue;
      continue;
    }
    int what = 0;
    if ((event.events & EPOLLIN) != 0) what |= CURL_CSELECT_IN;
    if ((event.events & EPOLLOUT) != 0) what |= CURL_CSELECT_OUT;
    if ((event.events & (EPOLLERR | EPOLLHUP)) != 0) what |= CURL_CSELECT_ERR;
    curl_multi_socket_action(multi_, event.data.fd, what, &running);
  }
  if (curl_due_ms_ >= 0 && real_now_ms() >= curl_due_ms_) {
    curl_due_ms_ = -1;
    curl_multi_socket_action(multi_, CURL_SOCKET_TIMEOUT, 0, &running);
  }
}

// Invariant 1: whatever is queued, in flight or still in the inbox gets its one answer.
void CurlTransport::Loop::end_all() {
  Inbox rest;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    std::swap(rest, inbox_);
  }
  for (auto& [easy, exchange] : std::exchange(active_, {})) {
    curl_multi_remove_handle(multi_, easy);
    const bool unknown = exchange->stream == 0 && may_have_been_sent(*exchange);
    Error error = unknown ? Error{ErrorCode::kTimeout,
                                  "the client was stopped before the answer came; the server may have acted", 0, 0}
                          : unsent(exchange->request, "the client was stopped");
    finish(std::move(exchange), fail(std::move(error)));
  }
  std::deque<ExchangePtr> unstarted = std::exchange(queue_, {});
  for (ExchangePtr& exchange : rest.exchanges) unstarted.push_back(std::move(exchange));
  for (ExchangePtr& exchange : unstarted) {
    Error error = unsent(exchange->request, "the client was stopped");
    finish(std::move(exchange), fail(std::move(error)));
  }
  queued_ = 0;
  tasks_.clear();
}

int CurlTransport::Loop::on_socket(CURL*, curl_socket_t socket, int what, void* self, void* known) {
  auto& loop = *static_cast<Loop*>(self);
  if (what == CURL_POLL_REMOVE) {
    epoll_ctl(loop.epoll_, EPOLL_CTL_DEL, socket, nullptr);
    return 0;
  }
  epoll_event event{};
  event.data.fd = socket;
  if (what != CURL_POLL_OUT) event.events |= EPOLLIN;
  if (what != CURL_POLL_IN) event.events |= EPOLLOUT;
  if (known == nullptr) {
    epoll_ctl(loop.epoll_, EPOLL_CTL_ADD, socket, &event);
    curl_multi_assign(loop.multi_, socket, self);
  } else {
    epoll_ctl(loop.epoll_, EPOLL_CTL_MOD, socket, &event);
  }
  return 0;
}

int CurlTransport::Loop::on_timer(CURLM*, long timeout_ms, void* self) {
  static_cast<Loop*>(self)->curl_due_ms_ = timeout_ms < 0 ? -1 : real_now_ms() + timeout_ms;
  return 0;
}

}  // namespace berth::io
