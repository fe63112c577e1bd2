// Binds before a server that has too much to do: what is sent when, and that nothing is lost.
#include "apps/scheduler/binder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "io/fake_transport.h"

namespace berth::apps {
namespace {

using io::FakeReply;
using testing::Each;
using testing::IsEmpty;
using testing::SizeIs;

// As CurlTransport: a few requests on the wire, the others in order behind them.
class FewConnections final : public io::Transport {
 public:
  FewConnections(io::FakeTransport& wire, size_t connections) : wire_(wire), free_(connections) {}
  void send(io::HttpRequest request, io::ResponseCallback done) override {
    queue_.emplace_back(std::move(request), std::move(done));
    start();
  }
  io::StreamId open_stream(io::HttpRequest request, io::StreamCallbacks callbacks) override {
    return wire_.open_stream(std::move(request), std::move(callbacks));
  }
  void cancel(io::StreamId id) override { wire_.cancel(id); }
  void run_after(Duration delay, std::function<void()> task) override { wire_.run_after(delay, std::move(task)); }
  const Clock& clock() const override { return wire_.clock(); }
  void stop() override { wire_.stop(); }

 private:
  void start() {
    for (; free_ > 0 && !queue_.empty(); --free_) {
      auto [request, done] = std::move(queue_.front());
      queue_.pop_front();
      wire_.send(std::move(request), [this, done = std::move(done)](Result<io::HttpResponse> answer) {
        done(std::move(answer));
        ++free_;
        start();
      });
    }
  }
  io::FakeTransport& wire_;
  size_t free_;
  std::deque<std::pair<io::HttpRequest, io::ResponseCallback>> queue_;
};

struct BinderTest : testing::Test {
  static constexpr int kConnections = 8;

  BinderTest() {
    wire.on_request([this](const io::HttpRequest& request) {
      sent_at.push_back(now());
      if (busy) return FakeReply::json(429, "{}", Duration::millis(1)).with_header("retry-after", retry_after);
      if (request.method == "POST") bound_by_server.insert(request.target);
      return FakeReply::json(201, "{}", Duration::millis(1));
    });
  }
  Duration now() const { return wire.clock().monotonic() - Time{1'000'000'000}; }
  void bind(int pods) {
    for (int i = 0; i < pods; ++i) {
      engine::Decision decision;
      decision.pod_name = "p" + std::to_string(next_pod++);
      decision.namespace_name = "ns";
      decision.pod_uid = "uid-" + decision.pod_name;
      decision.node_name = "a";
      binder.bind(decision);
    }
  }
  // Requests from `from` on, before `to`.
  int64_t sent_between(Duration from, Duration to) const {
    return std::count_if(sent_at.begin(), sent_at.end(), [&](Duration at) { return from <= at && at < to; });
  }
  std::vector<BindEnd> ends() const {
    std::vector<BindEnd> out;
    for (const BindReport& report : reports) out.push_back(report.end);
    return out;
  }

  io::FakeTransport wire;
  FewConnections transport{wire, kConnections};
  kube::Client client{transport};
  bool busy = false, leading = true;
  std::string retry_after = "7";
  int next_pod = 0;
  std::vector<Duration> sent_at;
  std::set<std::string> bound_by_server;
  std::vector<BindReport> reports;
  Binder binder{client,
                transport,
                {.timeout = Duration::seconds(5), .connections = kConnections},
                [this] { return leading; },
                [this](BindReport report) { reports.push_back(std::move(report)); }};
};

TEST_F(BinderTest, AfterA429AllBindsWaitAsLongAsTheServerAsks) {
  busy = true;
  bind(100);
  wire.run_for(Duration::millis(10));
  EXPECT_THAT(sent_at, SizeIs(kConnections)) << "those behind the first are not sent";
  bind(20);
  wire.run_for(Duration::millis(6980));
  EXPECT_THAT(sent_at, SizeIs(kConnections));
  busy = false;
  wire.run_for(Duration::seconds(2));
  EXPECT_EQ(bound_by_server.size(), 120u);
  EXPECT_THAT(ends(), SizeIs(120));
  EXPECT_THAT(ends(), Each(BindEnd::kBound));
  EXPECT_EQ(binder.outstanding(), 0u);
  EXPECT_EQ(binder.throttled(), uint64_t{kConnections});
}

TEST_F(BinderTest, FewerAreUnderWayAfterAPauseAndMoreWithEachThatIsTaken) {
  busy = true;
  bind(100);
  wire.run_for(Duration::millis(6999));
  busy = false;
  wire.run_for(Duration::seconds(1));
  const Duration opens = Duration::millis(7001);  // the first answer came after 1 ms
  EXPECT_EQ(sent_between(opens, opens + Duration::millis(1)), kConnections / 2);
  EXPECT_EQ(sent_between(opens + Duration::millis(1), opens + Duration::millis(2)), kConnections);
  EXPECT_THAT(ends(), SizeIs(100));
}

TEST_F(BinderTest, AServerThatStaysBusyIsAskedEverMoreSeldomAndNoPlaceIsKeptForEver) {
  busy = true;
  retry_after = "0";
  bind(50);
  wire.run_for(Duration::seconds(10));
  EXPECT_LE(sent_at.size(), 8u + 4 + 2 + 1 + 1) << "paused for 1, 2, 4, 8 s";
  EXPECT_THAT(ends(), IsEmpty());
  EXPECT_EQ(binder.outstanding(), 50u);
  wire.run_for(Duration::seconds(3600));
  EXPECT_THAT(ends(), SizeIs(50));
  EXPECT_THAT(ends(), Each(BindEnd::kFailed)) << "certainly not stored: the pods back off";
  EXPECT_EQ(binder.outstanding(), 0u);
}

TEST_F(BinderTest, WhatWaitsIsNotSentOnceTheLeaseIsLost) {
  busy = true;
  bind(20);
  wire.run_for(Duration::seconds(1));
  busy = leading = false;
  wire.run_for(Duration::seconds(30));
  EXPECT_THAT(sent_at, SizeIs(kConnections));
  EXPECT_THAT(bound_by_server, IsEmpty());
  EXPECT_THAT(ends(), SizeIs(20));
  EXPECT_THAT(ends(), Each(BindEnd::kFailed));
}

TEST_F(BinderTest, ATransportThatStopsEndsHoweverManyWait) {
  busy = true;
  bind(20'000);
  wire.run_for(Duration::seconds(1));
  wire.stop();
  wire.fake_clock().advance(Duration::seconds(60));
  bind(1);
  EXPECT_THAT(ends(), SizeIs(20'001));
  EXPECT_THAT(ends(), Each(BindEnd::kFailed));
}

TEST_F(BinderTest, AskingWhatBecameOfABindHonoursRetryAfter) {
  wire.on_request([this](const io::HttpRequest& request) {
    sent_at.push_back(now());
    if (request.method == "POST") return FakeReply::error(ErrorCode::kTimeout, "no answer");
    return FakeReply::json(429, "{}").with_header("retry-after", "20");
  });
  bind(1);
  wire.run_for(Duration::millis(19'999));
  EXPECT_THAT(sent_at, SizeIs(2)) << "the bind, and one question";
  wire.run_for(Duration::millis(2));
  EXPECT_THAT(sent_at, SizeIs(3));
  EXPECT_EQ(binder.outstanding(), 1u);
}

}  // namespace
}  // namespace berth::apps
