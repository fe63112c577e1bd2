#include "kube/reflector.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <optional>

#include "api/protobuf.h"
#include "base/printable.h"
#include "base/rng.h"
#include "kube/watch_frames.h"

namespace berth::kube {
namespace {

constexpr int kPagesMax = 100'000;  // of one list; at 500 objects a page far beyond what etcd holds
constexpr Duration kWatchAnswered = Duration::seconds(15);  // from opening a watch to its headers
constexpr Duration kPatience = Duration::seconds(30);       // with a server that asks to slow down, until that is told

uint64_t version_number(std::string_view version) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
  return error == std::errc{} && end == version.data() + version.size() ? number : 0;
}

}  // namespace

// Everything but the counters belongs to the transport's thread. `gate_` is held around each turn, so that stop() can
// wait for the running one; it is recursive since a sink may call stop().
class RawReflector::Loop : public std::enable_shared_from_this<Loop> {
 public:
  Loop(Client& client, ReflectorOptions options, Callbacks callbacks)
      : client_(client), options_(std::move(options)), callbacks_(std::move(callbacks)), rng_(options_.seed) {}

  void start() {
    later(Duration{}, [](Loop& loop) { loop.begin_list(); });
  }

  void stop() {
    const std::lock_guard lock(gate_);
    stopped_ = true;
    synced_ = false;
    if (stream_ != 0) client_.transport().cancel(std::exchange(stream_, 0));
  }

  bool synced() const { return synced_; }
  Time last_contact() const { return {last_contact_.load()}; }
  std::string last_error() const {
    const std::lock_guard lock(error_mutex_);
    return last_error_;
  }
  bool refused() const {
    const std::lock_guard lock(error_mutex_);
    return last_status_ == 403 || last_status_ == 404;
  }
  ReflectorStats stats() const { return {lists_, watches_, gone_, bookmarks_, events_, failures_}; }

 private:
  // Runs `turn` on the transport's thread unless stopped by then.
  template <typename Turn>
  void later(Duration delay, Turn turn) {
    client_.transport().run_after(delay, [self = shared_from_this(), turn] { self->guarded(turn); });
  }
  template <typename Turn>
  void guarded(Turn&& turn) {
    const std::lock_guard lock(gate_);
    if (!stopped_) turn(*this);
  }

  std::string target(std::string_view query) const {
    std::string out = options_.resource.collection(options_.name_space) + "?" + std::string(query);
    if (!options_.field_selector.empty()) out += "&fieldSelector=" + io::url_escape(options_.field_selector);
    if (!options_.label_selector.empty()) out += "&labelSelector=" + io::url_escape(options_.label_selector);
    return out;
  }

  // No resourceVersion: a consistent read, so the list cannot be older than what was delivered before.
  void begin_list() {
    ++lists_;
    pages_ = 0;
    callbacks_.list_begin();
    list_page("");
  }

  void list_page(const std::string& continue_token) {
    std::string query = fmt::format("limit={}", options_.page_size);
    if (!continue_token.empty()) query += "&continue=" + io::url_escape(continue_token);
    io::HttpRequest request = options_.protobuf == nullptr
                                  ? client_.request("GET", target(query))
                                  : client_.request("GET", target(query), api::kAcceptProtobuf);
    request.timeout = Duration::seconds(60);
    const std::string what = "GET " + options_.resource.collection(options_.name_space);
    client_.transport().send(
        std::move(request), [self = shared_from_this(), what, continue_token](Result<io::HttpResponse> answer) {
          self->guarded([&](Loop& loop) {
            Result<std::string> body = answer ? body_or_error(std::move(*answer), what) : fail(answer.error());
            if (!body) return loop.list_failed(body.error());
            loop.on_page(std::move(*body), continue_token);
          });
        });
  }

  void on_page(std::string body, const std::string& continue_token) {
    contact();
    Result<ListPage> page = read_page(body);
    if (!page) return list_failed(page.error());
    if (!page->continue_token.empty()) {
      if (page->continue_token == continue_token || ++pages_ >= kPagesMax)
        return list_failed({ErrorCode::kUnavailable,
                            "the server's list has no end; check what stands between here and "
                            "the server"});
      return list_page(page->continue_token);
    }
    const uint64_t number = version_number(page->resource_version);
    const bool went_back = number != 0 && number < version_number(resource_version_);
    resource_version_ = page->resource_version;
    callbacks_.list_end(page->resource_version, went_back);
    callbacks_.batch_end();
    succeeded();
    synced_ = true;
    open_watch();
  }

  // As what came: a server or proxy may answer JSON, whatever it was asked for.
  Result<ListPage> read_page(std::string& body) {
    Result<ListPage> page =
        options_.protobuf != nullptr && api::is_protobuf(body)
            ? read_protobuf_page(body, *options_.protobuf, callbacks_.list_item)
            : read_list_page(body, [&](std::string_view json) { callbacks_.list_item(json, Status{}); });
    const std::string wanted = std::string(options_.resource.kind) + "List";
    if (page && page->kind != wanted)
      return fail(not_kubernetes("list", fmt::format("its kind is '{}', not {}", printable(page->kind, 100), wanted)));
    return page;
  }

  // 410 amid the pages: the continue token has expired, and a new list is the answer, as client-go does.
  void list_failed(const Error& error) {
    if (error.code == ErrorCode::kGone) ++gone_;
    failed(error);
    later(backoff(error), [](Loop& loop) { loop.begin_list(); });
  }

  void open_watch() {
    ++watches_;
    frames_ = WatchFrames();
    saw_event_ = false;
    stale_bookmarks_ = 0;
    relist_ = silent_ = false;
    const int64_t seconds = rng_.between(options_.watch_min.nanos, 2 * options_.watch_min.nanos) / 1'000'000'000;
    io::HttpRequest request = client_.request(
        "GET", target(fmt::format("watch=true&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
                                  io::url_escape(resource_version_), std::max<int64_t>(1, seconds))));
    request.timeout = kWatchAnswered;
    contact();
    const uint64_t turn = ++watch_turn_;
    auto self = shared_from_this();
    stream_ = client_.transport().open_stream(std::move(request), {.on_chunk =
                                                                       [self, turn](std::string_view chunk) {
                                                                         self->guarded([&](Loop& loop) {
                                                                           if (turn == loop.watch_turn_)
                                                                             loop.on_chunk(chunk);
                                                                         });
                                                                       },
                                                                   .done =
                                                                       [self, turn](Result<io::HttpResponse> end) {
                                                                         self->guarded([&](Loop& loop) {
                                                                           if (turn == loop.watch_turn_)
                                                                             loop.on_watch_end(std::move(end));
                                                                         });
                                                                       }});
    check_idle(turn);
    // A watch of what does not change is silent; but one that is older than its time-out has been answered.
    later(kWatchAnswered + Duration::seconds(1), [turn](Loop& loop) {
      if (turn == loop.watch_turn_ && loop.stream_ != 0 && loop.watch_error_.empty()) loop.succeeded();
    });
  }

  void on_chunk(std::string_view chunk) {
    contact();
    frames_.append(chunk);
    while (const auto line = frames_.next()) on_frame(*line);
    callbacks_.batch_end();
    if (frames_.too_long()) relist_ = true, watch_error_ = "an event of the watch is too long";
    if (relist_ && stream_ != 0) client_.transport().cancel(stream_);
    if (watch_error_.empty()) clear_error();
  }

  void on_frame(std::string_view line) {
    if (relist_ || line.empty()) return;
    const Result<WatchFrame> frame = read_watch_frame(line);
    if (!frame) {
      // Not a frame at all: what it was about is lost, so only a list can be trusted.
      relist_ = true;
      watch_error_ = frame.error().message;
      return;
    }
    if (frame->kind == WatchFrame::Kind::kError) return on_error_event(frame->object);
    const bool bookmark = frame->kind == WatchFrame::Kind::kBookmark;
    if (!advance(frame->resource_version) && (!bookmark || ++stale_bookmarks_ > 1)) {
      relist_ = true;
      watch_error_ =
          fmt::format("the server went back from version {} to {}", resource_version_, frame->resource_version);
      return;
    }
    if (bookmark) {
      ++bookmarks_;
      return;
    }
    ++events_;
    saw_event_ = true;
    callbacks_.changed(frame->object, frame->kind == WatchFrame::Kind::kDeleted);
  }

  // An ERROR event: 410 means list again; anything else ends the watch, which then goes on from where it was.
  void on_error_event(std::string_view object) {
    const Error error = status_error(200, object, "watch");
    watch_error_ = error.message;
    watch_retry_after_s_ = error.retry_after_s;
    if (error.code == ErrorCode::kGone) relist_ = watch_gone_ = true, ++gone_;
    if (stream_ != 0) client_.transport().cancel(stream_);
  }

  // Never backwards. A watch sends only what is newer than its start; something older means that the store has lost
  // writes, and then a watch from a version that is yet to come would be silent for long. One old bookmark is no proof:
  // a replica of the server whose cache lags sends such too.
  bool advance(std::string_view version) {
    const uint64_t seen = version_number(version);
    if (!version.empty() && seen < version_number(resource_version_)) return false;
    if (!version.empty()) resource_version_ = version;
    return true;
  }

  void on_watch_end(Result<io::HttpResponse> end) {
    stream_ = 0;
    Error error{std::exchange(watch_gone_, false) ? ErrorCode::kGone : ErrorCode::kUnavailable,
                std::exchange(watch_error_, {}), 0, std::exchange(watch_retry_after_s_, 0)};
    const bool in_order = end && end->status / 100 == 2 && error.message.empty();
    if (end && end->status / 100 != 2) {
      error = body_or_error(std::move(*end), "watch " + options_.resource.collection(options_.name_space)).error();
      if (error.code == ErrorCode::kGone) relist_ = true, ++gone_;
      if (error.code == ErrorCode::kTimeout) relist_ = true;  // "Too large resource version": the store has gone back
    } else if (!end && error.message.empty()) {
      error = end.error();
    }
    if (relist_) {
      synced_ = false;
      if (error.code != ErrorCode::kGone) failed(error);  // nothing is wrong: a list is what a 410 asks for
      return later(backoff(error), [](Loop& loop) { loop.begin_list(); });
    }
    if (in_order && saw_event_) {
      succeeded();
      return open_watch();
    }
    // Nothing need be wrong: a resource without any change may have no bookmarks. A server that is gone will show now.
    if (silent_) return open_watch();
    if (!in_order) failed(error);
    later(backoff(error), [](Loop& loop) { loop.open_watch(); });
  }

  void check_idle(uint64_t turn) {
    later(options_.idle_limit, [turn](Loop& loop) {
      if (turn != loop.watch_turn_ || loop.stream_ == 0) return;
      const Duration silent = loop.client_.transport().clock().monotonic() - loop.last_contact();
      if (silent < loop.options_.idle_limit) return loop.check_idle(turn);
      loop.silent_ = true;
      loop.client_.transport().cancel(loop.stream_);
    });
  }

  void contact() { last_contact_ = client_.transport().clock().monotonic().nanos; }

  void failed(const Error& error) {
    ++failures_;
    const Time now = client_.transport().clock().monotonic();
    asked_to_wait_ = error.code == ErrorCode::kThrottled ? asked_to_wait_.value_or(now) : std::optional<Time>{};
    // Nothing is wrong yet: a kube-apiserver answers so for a moment whenever a definition has changed.
    if (asked_to_wait_ && now - *asked_to_wait_ < kPatience) return;
    const std::lock_guard lock(error_mutex_);
    last_error_ = error.message;
    last_status_ = error.http_status;
  }

  void succeeded() {
    backoff_ = {};
    asked_to_wait_.reset();
    clear_error();
  }

  void clear_error() {
    const std::lock_guard lock(error_mutex_);
    last_error_.clear();
    last_status_ = 0;
  }

  // Doubles to the limit; the wait is drawn from [half, whole] so that clients spread. Retry-After is a lower bound.
  Duration backoff(const Error& error) {
    backoff_ = backoff_.nanos == 0 ? options_.backoff_min : std::min(backoff_ * 2, options_.backoff_max);
    const Duration wait{rng_.between(backoff_.nanos / 2, backoff_.nanos)};
    return std::max(wait, Duration::seconds(std::min<int64_t>(error.retry_after_s, 300)));
  }

  Client& client_;
  const ReflectorOptions options_;
  const Callbacks callbacks_;
  Rng rng_;
  std::recursive_mutex gate_;
  bool stopped_ = false;

  WatchFrames frames_;
  std::string resource_version_;
  int pages_ = 0;  // of the list that is being read
  io::StreamId stream_ = 0;
  uint64_t watch_turn_ = 0;
  bool saw_event_ = false;  // on this watch
  int stale_bookmarks_ = 0;
  bool relist_ = false;
  bool silent_ = false;  // it was ended since nothing came for long
  std::string watch_error_;
  bool watch_gone_ = false;  // it is a 410
  int64_t watch_retry_after_s_ = 0;
  Duration backoff_{};
  std::optional<Time> asked_to_wait_;  // since when the server has answered with nothing but 429

  std::atomic<bool> synced_{false};
  std::atomic<int64_t> last_contact_{0};
  std::atomic<uint64_t> lists_{0}, watches_{0}, gone_{0}, bookmarks_{0}, events_{0}, failures_{0};
  mutable std::mutex error_mutex_;
  std::string last_error_;
  int last_status_ = 0;  // of that answer; 0: there was none
};

RawReflector::RawReflector(Client& client, ReflectorOptions options, Callbacks callbacks)
    : loop_(std::make_shared<Loop>(client, std::move(options), std::move(callbacks))) {}
RawReflector::~RawReflector() { stop(); }
void RawReflector::start() { loop_->start(); }
void RawReflector::stop() { loop_->stop(); }
bool RawReflector::synced() const { return loop_->synced(); }
std::string RawReflector::last_error() const { return loop_->last_error(); }
bool RawReflector::refused() const { return loop_->refused(); }
ReflectorStats RawReflector::stats() const { return loop_->stats(); }
Time RawReflector::last_contact() const { return loop_->last_contact(); }

}  // namespace berth::kube
