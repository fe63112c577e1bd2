// FakeTransport: a Transport in virtual time for tests; answers come from a script, faults from the test.
//
// Single-threaded: nothing happens until the test calls run_for() or run_until_idle(), and all callbacks run inside.
//
//   FakeTransport transport;
//   transport.on_request([](const HttpRequest& r) { return FakeReply::json(200, "{}"); });
//   client.get("/api/v1/nodes/a", done);
//   transport.run_for(Duration::seconds(1));
#pragma once

#include <atomic>
#include <map>
#include <optional>

#include "io/transport.h"

namespace berth::io {

class FakeClock final : public Clock {
 public:
  Time wall() const override { return {wall_.load()}; }
  Time monotonic() const override { return {mono_.load()}; }
  void advance(Duration by) { mono_ += by.nanos, wall_ += by.nanos; }
  // Moves only the wall clock, as NTP or an operator may.
  void jump_wall(Duration by) { wall_ += by.nanos; }

 private:
  std::atomic<int64_t> wall_{1'767'225'600'000'000'000};  // 2026-01-01T00:00:00Z
  std::atomic<int64_t> mono_{1'000'000'000};
};

// What the script answers to one request: a response or an error, after `delay`. A request whose timeout is shorter
// than the delay gets kTimeout at its timeout, and the script's side effects stay: applied, but answered too late.
struct FakeReply {
  Result<HttpResponse> result = HttpResponse{};
  Duration delay{};

  static FakeReply json(int status, std::string body, Duration delay = {});
  static FakeReply error(ErrorCode code, std::string message, Duration delay = {});
  FakeReply with_header(std::string name, std::string value) &&;
};

class FakeTransport final : public Transport {
 public:
  using Script = std::function<FakeReply(const HttpRequest&)>;
  struct OpenStream {
    StreamId id = 0;
    HttpRequest request{};
    StreamCallbacks callbacks{};
  };

  // Answers every send() from now on; without a script all fail with kUnavailable.
  void on_request(Script script) { script_ = std::move(script); }
  // Asked for each open_stream(): a reply ends the stream with it, nullopt (the default) keeps it open for push().
  void on_stream(std::function<std::optional<FakeReply>(const HttpRequest&)> script) {
    stream_script_ = std::move(script);
  }

  // Streams that are open, by id; the newest last.
  const std::map<StreamId, OpenStream>& streams() const { return streams_; }
  // Delivers a chunk on the newest open stream whose target contains `target_part`; false without one.
  bool push(std::string_view target_part, std::string_view chunk);
  // Ends that stream in order (status 200), or with an error.
  bool finish(std::string_view target_part,
              Result<HttpResponse> result = HttpResponse{.status = 200, .headers = {}, .body = {}});

  // Advances both clocks, running what falls due in order of time.
  void run_for(Duration by);
  // Runs what is due now, without advancing.
  void run_until_idle() { run_for(Duration{}); }

  const std::vector<HttpRequest>& requests() const { return requests_; }  // every request so far, streams included
  FakeClock& fake_clock() { return clock_; }

  void send(HttpRequest request, ResponseCallback done) override;
  StreamId open_stream(HttpRequest request, StreamCallbacks callbacks) override;
  void cancel(StreamId id) override;
  void run_after(Duration delay, std::function<void()> task) override;
  const Clock& clock() const override { return clock_; }
  void stop() override;
  Result<HttpResponse> call(HttpRequest request) override;  // pumps virtual time until the answer is there

 private:
  bool step(Time limit);
  void end_stream(StreamId id, Result<HttpResponse> result);

  FakeClock clock_;
  Script script_;
  std::function<std::optional<FakeReply>(const HttpRequest&)> stream_script_;
  std::map<StreamId, OpenStream> streams_;
  std::multimap<Time, std::function<void()>> tasks_;
  std::vector<HttpRequest> requests_;
  StreamId next_stream_ = 1;
  bool stopped_ = false;
};

}  // namespace berth::io
