#include "kube/event_recorder.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::kube {
namespace {

using io::FakeReply;
using io::FakeTransport;
using io::HttpRequest;
using nlohmann::json;

class EventRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    transport_.on_request([this](const HttpRequest& request) {
      requests_.push_back(request);
      return reply_;
    });
  }
  EventRecorder& recorder(EventRecorderOptions options = {}) {
    recorder_ = std::make_unique<EventRecorder>(client_, std::move(options));
    return *recorder_;
  }
  static EventNote note(const std::string& pod, const std::string& text) {
    return {.regarding = {.name_space = "ns", .name = pod, .uid = "uid-" + pod},
            .type = "Warning",
            .reason = "FailedScheduling",
            .action = "Scheduling",
            .note = text};
  }
  void run(Duration by = Duration::millis(10)) { transport_.run_for(by); }

  FakeTransport transport_;
  Client client_{transport_};
  FakeReply reply_ = FakeReply::json(201, "{}");
  std::vector<HttpRequest> requests_;
  std::unique_ptr<EventRecorder> recorder_;
};

TEST_F(EventRecorderTest, WritesAnEventsV1Object) {
  recorder({.instance = "berth-scheduler-host"}).record(note("p", "0/8 nodes are available"));
  run();
  ASSERT_EQ(requests_.size(), 1u);
  EXPECT_EQ(requests_[0].target, "/apis/events.k8s.io/v1/namespaces/ns/events");
  const json event = json::parse(requests_[0].body);
  EXPECT_EQ(event["reportingController"], "berth-scheduler");
  EXPECT_EQ(event["reportingInstance"], "berth-scheduler-host");
  EXPECT_EQ(event["regarding"]["uid"], "uid-p");
  EXPECT_EQ(event["note"], "0/8 nodes are available");
  EXPECT_EQ(event["action"], "Scheduling");
  EXPECT_TRUE(event["metadata"]["name"].get<std::string>().starts_with("p."));
  EXPECT_FALSE(event.contains("series"));
}

TEST_F(EventRecorderTest, SaysWhatElseAnEventIsAbout) {
  EventNote evicted = note("p", "Preempted");
  EXPECT_FALSE(evicted.related);
  auto& events = recorder();
  events.record(evicted);
  evicted.related = EventTarget{.name_space = "other", .name = "q", .uid = "uid-q"};
  events.record(evicted);  // another event, not a repetition
  run();
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_FALSE(json::parse(requests_[0].body).contains("related"));
  const json related = json::parse(requests_[1].body)["related"];
  EXPECT_EQ(related["kind"], "Pod");
  EXPECT_EQ(related["namespace"], "other");
  EXPECT_EQ(related["uid"], "uid-q");
}

TEST_F(EventRecorderTest, RepetitionsBecomeOneSeries) {
  auto& events = recorder();
  for (int i = 0; i < 5; ++i) {
    events.record(note("p", "same"));
    run();
  }
  ASSERT_EQ(requests_.size(), 2u);
  EXPECT_EQ(requests_[1].method, "PATCH");
  EXPECT_EQ(json::parse(requests_[1].body)["series"]["count"], 2);
  run(Duration::seconds(301));
  ASSERT_EQ(requests_.size(), 3u);
  EXPECT_EQ(json::parse(requests_[2].body)["series"]["count"], 5);
  EXPECT_EQ(events.stats().aggregated, 4u);
}

TEST_F(EventRecorderTest, ARepetitionLongAfterIsANewEvent) {
  auto& events = recorder();
  events.record(note("p", "same"));
  run(Duration::seconds(700));
  events.record(note("p", "same"));
  run();
  EXPECT_EQ(events.stats().created, 2u);
}

TEST_F(EventRecorderTest, OneObjectCannotFlood) {
  auto& events = recorder();
  for (int i = 0; i < 1000; ++i) events.record(note("p", "text " + std::to_string(i)));
  run();
  EXPECT_EQ(events.stats().created, 25u);
  EXPECT_EQ(events.stats().dropped, 975u);
  events.record(note("other", "text"));
  run();
  EXPECT_EQ(events.stats().created, 26u);
}

TEST_F(EventRecorderTest, DropsAndCountsWhatTheQueueDoesNotHold) {
  auto& events = recorder({.max_queued = 10});
  for (int i = 0; i < 50; ++i) events.record(note("p" + std::to_string(i), "x"));
  EXPECT_EQ(events.stats().dropped, 40u);
  run();
  EXPECT_EQ(events.stats().created, 10u);
}

TEST_F(EventRecorderTest, KeepsFewInFlight) {
  reply_.delay = Duration::seconds(1);
  auto& events = recorder({.max_in_flight = 4});
  for (int i = 0; i < 20; ++i) events.record(note("p" + std::to_string(i), "x"));
  run(Duration::millis(500));
  EXPECT_EQ(requests_.size(), 4u);
  run(Duration::seconds(10));
  EXPECT_EQ(events.stats().created, 20u);
}

TEST_F(EventRecorderTest, TriesAgainAndGivesUpInTheEnd) {
  reply_ = FakeReply::json(503, "{}");
  auto& events = recorder();
  events.record(note("p", "x"));
  run(Duration::seconds(120));
  EXPECT_EQ(requests_.size(), 5u);
  EXPECT_EQ(events.stats().dropped, 1u);
  EXPECT_EQ(events.stats().queued, 0u);
}

TEST_F(EventRecorderTest, EventsWaitForAServerThatIsDown) {
  reply_ = FakeReply::error(ErrorCode::kUnavailable, "refused");
  auto& events = recorder();
  for (int i = 0; i < 100; ++i) events.record(note("p" + std::to_string(i), "x"));
  run(Duration::seconds(300));
  EXPECT_LT(requests_.size(), 300u);
  reply_ = FakeReply::json(201, "{}");
  run(Duration::seconds(20));
  EXPECT_EQ(events.stats().created, 100u);
  EXPECT_EQ(events.stats().dropped, 0u);
}

TEST_F(EventRecorderTest, EventsWaitForAServerThatHasTooMuchToDo) {
  reply_ = FakeReply::json(429, "{}").with_header("retry-after", "30");
  auto& events = recorder({.max_in_flight = 4});
  for (int i = 0; i < 100; ++i) events.record(note("p" + std::to_string(i), "x"));
  run(Duration::millis(29'900));
  EXPECT_EQ(requests_.size(), 4u);
  run(Duration::seconds(600));
  EXPECT_LE(requests_.size(), 4u * 22);
  reply_ = FakeReply::json(201, "{}");
  run(Duration::seconds(31));
  EXPECT_EQ(events.stats().created, 100u);
  EXPECT_EQ(events.stats().dropped, 0u);
}

TEST_F(EventRecorderTest, RefusedEventsAreNotTriedAgain) {
  reply_ = FakeReply::json(403, R"({"reason":"Forbidden","message":"namespace is being terminated"})");
  auto& events = recorder();
  events.record(note("p", "x"));
  run(Duration::seconds(120));
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(EventRecorderTest, CutsNotesAtACharactersBorder) {
  std::string text(1023, 'x');
  recorder().record(note("p", text + "é"));
  run();
  EXPECT_EQ(json::parse(requests_.at(0).body)["note"], text);
}

TEST_F(EventRecorderTest, ClusterWideObjectsHaveTheirEventsInDefault) {
  EventNote about = note("n", "x");
  about.regarding = {.kind = "Node", .name = "n"};
  recorder().record(about);
  run();
  EXPECT_EQ(requests_.at(0).target, "/apis/events.k8s.io/v1/namespaces/default/events");
  EXPECT_FALSE(json::parse(requests_.at(0).body)["regarding"].contains("namespace"));
}

TEST_F(EventRecorderTest, NamesFitTheLimit) {
  recorder().record(note(std::string(253, 'p'), "x"));
  run();
  EXPECT_LE(json::parse(requests_.at(0).body)["metadata"]["name"].get<std::string>().size(), 253u);
}

TEST_F(EventRecorderTest, FlushOfNothingSucceedsAtOnce) { EXPECT_TRUE(recorder().flush(Duration::millis(1))); }

}  // namespace
}  // namespace berth::kube
