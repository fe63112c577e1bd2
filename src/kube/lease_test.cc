#include "kube/lease.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::kube {
namespace {

using io::FakeReply;
using io::FakeTransport;
using io::HttpRequest;

constexpr Duration kSecond = Duration::seconds(1);

// The server's one Lease, with optimistic locking, as kube-apiserver keeps it.
struct LeaseServer {
  std::string object;  // empty: none
  int version = 0;
  bool down = false;
  Duration delay{};  // of writes

  FakeReply operator()(const HttpRequest& request) {
    using nlohmann::json;
    if (down) return FakeReply::error(ErrorCode::kUnavailable, "down");
    if (request.method == "GET")
      return object.empty() ? FakeReply::json(404, R"({"kind":"Status","reason":"NotFound","code":404})")
                            : FakeReply::json(200, object);
    json sent = json::parse(request.body);
    if (request.method == "POST" && !object.empty()) return FakeReply::json(409, R"({"reason":"AlreadyExists"})");
    if (request.method == "PUT" && sent["metadata"]["resourceVersion"] != std::to_string(version))
      return FakeReply::json(409, R"({"reason":"Conflict"})");
    sent["metadata"]["resourceVersion"] = std::to_string(++version);
    object = sent.dump();
    return FakeReply::json(200, object, delay);
  }
  std::string holder() const { return object.empty() ? "" : decode_lease(object)->record.holder; }
};

// A candidate on a transport, and so a clock, of its own; all talk to one server.
struct Candidate {
  Candidate(LeaseServer& server, std::string name) {
    transport.on_request([this, &server](const HttpRequest& request) {
      return cut_off ? FakeReply::error(ErrorCode::kUnavailable, "cut off") : server(request);
    });
    election = std::make_unique<LeaderElection>(
        client, LeaseOptions{.identity = std::move(name)},
        LeaseCallbacks{.on_started = [this] { ++started; }, .on_stopped = [this](auto) { ++stopped; }});
    election->start();
  }
  bool leads(Duration margin = {}) const { return election->may_act(transport.clock().monotonic(), margin); }

  FakeTransport transport;
  Client client{transport};
  bool cut_off = false;
  int started = 0, stopped = 0;
  std::unique_ptr<LeaderElection> election;
};

TEST(LeaderElection, CreatesTheLeaseAndRenewsIt) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  EXPECT_TRUE(a.leads());
  const int first = server.version;
  a.transport.run_for(Duration::seconds(60));
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.started, 1);
  EXPECT_EQ(a.stopped, 0);
  EXPECT_NEAR(server.version - first, 30, 3);
}

TEST(LeaderElection, WritesTheFieldsThatClientGoReads) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  const auto spec = nlohmann::json::parse(server.object)["spec"];
  EXPECT_EQ(spec["holderIdentity"], "a");
  EXPECT_EQ(spec["leaseDurationSeconds"], 15);
  EXPECT_EQ(spec["leaseTransitions"], 0);
  EXPECT_TRUE(spec["renewTime"].get<std::string>().starts_with("2026-01-01T00:00:0"));
  EXPECT_EQ(spec["acquireTime"].get<std::string>().size(), std::string("2026-01-01T00:00:00.000000Z").size());
}

TEST(LeaderElection, LeadershipCountsFromTheSendingOfARenewal) {
  LeaseServer server;
  server.delay = Duration::seconds(3);
  Candidate a(server, "a");
  const Time start = a.transport.clock().monotonic();
  a.transport.run_for(Duration::seconds(3));
  ASSERT_TRUE(a.leads());
  EXPECT_EQ(a.election->deadline_mono(), start + Duration::seconds(10));
  EXPECT_FALSE(a.leads(Duration::seconds(8)));
}

TEST(LeaderElection, ACutOffLeaderStopsBeforeAnotherMayStart) {
  LeaseServer server;
  Candidate a(server, "a"), b(server, "b");
  a.transport.run_for(kSecond), b.transport.run_for(kSecond);
  ASSERT_TRUE(a.leads());
  a.cut_off = true;
  Duration stopped_at{}, started_at{};
  for (Duration t{}; t < Duration::seconds(30); t = t + Duration::millis(100)) {
    a.transport.run_for(Duration::millis(100)), b.transport.run_for(Duration::millis(100));
    ASSERT_FALSE(a.leads() && b.leads());
    if (stopped_at.nanos == 0 && !a.leads()) stopped_at = t;
    if (started_at.nanos == 0 && b.leads()) started_at = t;
  }
  EXPECT_EQ(a.stopped, 1);
  EXPECT_GE(started_at - stopped_at, Duration::seconds(4));
  EXPECT_LE(started_at, Duration::seconds(20));
  EXPECT_EQ(decode_lease(server.object)->record.transitions, 1);
}

TEST(LeaderElection, APausedLeaderMayNotActWhenItWakes) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  ASSERT_TRUE(a.leads());
  a.transport.fake_clock().advance(Duration::seconds(11));  // the process was stopped; nothing of it has run since
  EXPECT_FALSE(a.leads());
  a.transport.run_for(Duration{});
  EXPECT_EQ(a.stopped, 1);
}

TEST(LeaderElection, WallClockJumpsChangeNothing) {
  LeaseServer server;
  Candidate a(server, "a"), b(server, "b");
  a.transport.run_for(kSecond), b.transport.run_for(kSecond);
  for (int minute = 0; minute < 20; ++minute) {
    b.transport.fake_clock().jump_wall(Duration::seconds(minute % 2 == 0 ? 600 : -1200));
    a.transport.fake_clock().jump_wall(Duration::seconds(minute % 3 == 0 ? -600 : 900));
    a.transport.run_for(Duration::seconds(7)), b.transport.run_for(Duration::seconds(7));
    ASSERT_TRUE(a.leads());
    ASSERT_FALSE(b.leads());
  }
  EXPECT_EQ(a.started, 1);
}

TEST(LeaderElection, AReleasedLeaseIsTakenWithinThreeSeconds) {
  LeaseServer server;
  Candidate a(server, "a"), b(server, "b");
  a.transport.run_for(kSecond), b.transport.run_for(kSecond);
  ASSERT_TRUE(a.leads());
  a.election->release(Duration::millis(20));  // in virtual time nothing runs while it waits
  a.transport.run_for(Duration{});
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.stopped, 1);
  EXPECT_EQ(server.holder(), "");
  EXPECT_EQ(decode_lease(server.object)->record.duration_s, 1);
  b.transport.run_for(Duration::seconds(3));
  EXPECT_TRUE(b.leads());
  a.transport.run_for(Duration::seconds(30));
  EXPECT_EQ(a.started, 1);
}

TEST(LeaderElection, AStandbyIsInTouchWhileItReadsTheLease) {
  LeaseServer server;
  Candidate a(server, "a"), b(server, "b");
  b.cut_off = true;
  a.transport.run_for(kSecond), b.transport.run_for(kSecond);
  const auto in_touch = [](Candidate& each) { return each.election->in_touch(each.transport.clock().monotonic()); };
  EXPECT_TRUE(in_touch(a));
  EXPECT_FALSE(in_touch(b));
  b.cut_off = false;
  for (int i = 0; i < 30; ++i) a.transport.run_for(kSecond), b.transport.run_for(kSecond);
  EXPECT_TRUE(in_touch(b));
  EXPECT_FALSE(b.leads());
  b.cut_off = true;
  b.transport.run_for(Duration::seconds(12));
  EXPECT_TRUE(in_touch(b));
  b.transport.run_for(Duration::seconds(5));
  EXPECT_FALSE(in_touch(b));
}

TEST(LeaderElection, StopsAtOnceWhenAnotherHasTakenTheLease) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  auto other = nlohmann::json::parse(server.object);
  other["spec"]["holderIdentity"] = "thief";
  other["metadata"]["resourceVersion"] = std::to_string(++server.version);
  server.object = other.dump();
  a.transport.run_for(Duration::seconds(5));
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(a.stopped, 1);
}

TEST(LeaderElection, AnAppliedRenewalWithALostAnswerDoesNotEndLeadership) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  server.delay = Duration::seconds(6);  // applied, but the answer comes after the call has timed out
  a.transport.run_for(Duration::seconds(2));
  server.delay = {};
  a.transport.run_for(Duration::seconds(20));
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.stopped, 0);
}

TEST(LeaderElection, ComesBackAfterTheServerWasDown) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  server.down = true;
  a.transport.run_for(Duration::seconds(60));
  EXPECT_FALSE(a.leads());
  server.down = false;
  a.transport.run_for(Duration::seconds(5));
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.started, 2);
  EXPECT_EQ(a.stopped, 1);
}

// The deadline is nearer than what the server asks for; and there are no more tries than one in each retry period.
TEST(LeaderElection, ABusyServerDoesNotPutOffTheNextRenewal) {
  LeaseServer server;
  Candidate a(server, "a");
  a.transport.run_for(kSecond);
  int refused = 0;
  bool busy = true;
  a.transport.on_request([&](const HttpRequest& request) {
    if (busy) return ++refused, FakeReply::json(429, "{}").with_header("retry-after", "60");
    return server(request);
  });
  a.transport.run_for(Duration::seconds(7));
  EXPECT_TRUE(a.leads());
  EXPECT_GE(refused, 2);
  EXPECT_LE(refused, 4);
  busy = false;
  a.transport.run_for(Duration::seconds(30));
  EXPECT_TRUE(a.leads());
  EXPECT_EQ(a.stopped, 0);
}

// Two candidates under seeded faults: pauses, lost connections, slow writes. Never two leaders, and always one in the
// end.
TEST(LeaderElection, NeverTwoLeadersUnderRandomFaults) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    LeaseServer server;
    Candidate a(server, "a"), b(server, "b");
    Candidate* candidates[] = {&a, &b};
    for (int step = 0; step < 2000; ++step) {
      for (Candidate* each : candidates) each->cut_off = rng.chance(2) ? !each->cut_off : each->cut_off;
      server.delay = rng.chance(10) ? Duration::millis(rng.between(0, 7000)) : server.delay;
      Candidate* paused = rng.chance(3) ? candidates[rng.below(2)] : nullptr;
      const Duration slice = paused != nullptr ? Duration::millis(rng.between(0, 20000)) : Duration::millis(250);
      for (Duration t{}; t < slice; t = t + Duration::millis(250)) {
        for (Candidate* each : candidates) {
          if (each == paused) each->transport.fake_clock().advance(Duration::millis(250));
          if (each != paused) each->transport.run_for(Duration::millis(250));
        }
        ASSERT_FALSE(a.leads() && b.leads()) << "seed " << seed << " step " << step;
      }
    }
    a.cut_off = b.cut_off = false;
    server.delay = {};
    for (int i = 0; i < 60; ++i) a.transport.run_for(kSecond), b.transport.run_for(kSecond);
    EXPECT_TRUE(a.leads() != b.leads()) << "seed " << seed;
  }
}

TEST(LeaseElector, WaitsALeaseDurationFromWhenItFirstSawTheHolder) {
  LeaseElector elector({.identity = "me"});
  const Time start{1'000'000'000'000};
  LeaseObject held{.record = {.holder = "other", .duration_s = 15}, .resource_version = "1", .json = "{}"};
  EXPECT_EQ(elector.next(start, {}).kind, LeaseStep::Kind::kRead);
  elector.on_read(held, start);
  EXPECT_EQ(elector.next(start, {}).kind, LeaseStep::Kind::kWait);
  const Time later = start + Duration::seconds(15);
  EXPECT_EQ(elector.next(later, {}).kind, LeaseStep::Kind::kRead);
  elector.on_read(held, later);
  const LeaseStep take = elector.next(later, {});
  EXPECT_EQ(take.kind, LeaseStep::Kind::kUpdate);
  EXPECT_EQ(take.record.transitions, 1);
}

TEST(EncodeLease, KeepsFieldsThatAreNotOurs) {
  const auto base = decode_lease(R"({"metadata":{"labels":{"x":"y"},"resourceVersion":"7"},"spec":{"strategy":"z"}})");
  ASSERT_TRUE(base);
  const auto out = nlohmann::json::parse(encode_lease({.identity = "me"}, {.holder = "me"}, &*base));
  EXPECT_EQ(out["metadata"]["labels"]["x"], "y");
  EXPECT_EQ(out["metadata"]["resourceVersion"], "7");
  EXPECT_EQ(out["spec"]["strategy"], "z");
}

TEST(EncodeLease, MakesPartsThatAreOutOfShapeAnew) {
  for (const char* text : {R"({"metadata":"x","spec":5})", R"({"metadata":[],"spec":[]})",
                           R"({"metadata":null,"spec":null})", "[]", "5", "null", "{", ""}) {
    const LeaseObject base{.record = {}, .resource_version = "7", .json = text};
    const auto out = nlohmann::json::parse(encode_lease({.identity = "me"}, {.holder = "me"}, &base));
    EXPECT_EQ(out["metadata"]["name"], "berth-scheduler") << text;
    EXPECT_EQ(out["spec"]["holderIdentity"], "me") << text;
  }
}

TEST(DecodeLease, PassesWhatIsAbsentAndWhatItDoesNotKnow) {
  for (const char* text :
       {"{}", R"({"metadata":null,"spec":null})", R"({"metadata":{},"spec":{"holderIdentity":null}})",
        R"({"metadata":{"labels":5},"spec":{"strategy":[]},"other":5})"}) {
    const auto lease = decode_lease(text);
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_EQ(lease->record, LeaseRecord{}) << text;
    EXPECT_EQ(lease->json, text);
  }
}

// Answers of 200 that are no Lease; the last is deeper than anything may go.
std::vector<std::string> malformed_leases() {
  return {"",
          "[]",
          "null",
          "<html>",
          R"({"metadata":"x","spec":{"holderIdentity":""}})",
          R"({"metadata":{},"spec":5})",
          R"({"metadata":{},"spec":[]})",
          R"({"metadata":[],"spec":{}})",
          R"({"metadata":{"resourceVersion":5}})",
          R"({"spec":{"holderIdentity":5}})",
          R"({"spec":{"leaseDurationSeconds":99999999999999}})",
          R"({"spec":{"leaseTransitions":"1"}})",
          R"({"spec":{"renewTime":"yesterday"}})",
          R"({"metadata":)" + std::string(100'000, '[') + std::string(100'000, ']') + "}"};
}

TEST(DecodeLease, WhatIsNoLeaseIsAnErrorInOneLine) {
  for (const std::string& text : malformed_leases()) {
    const auto lease = decode_lease(text);
    ASSERT_FALSE(lease) << text.substr(0, 80);
    EXPECT_EQ(lease.error().code, ErrorCode::kUnavailable);
    EXPECT_TRUE(lease.error().message.starts_with("the server's answer is not a Lease (")) << lease.error().message;
    EXPECT_EQ(lease.error().message.find('\n'), std::string::npos);
  }
  EXPECT_EQ(decode_lease(R"({"metadata":{},"spec":5})").error().message,
            "the server's answer is not a Lease (spec: expected an object, found the number 5); check what stands "
            "between here and the server");
}

TEST(LeaderElection, AServerThatAnswersWithNoLeaseIsAskedAgain) {
  for (const std::string& text : malformed_leases()) {
    FakeTransport transport;
    Client client{transport};
    LeaseServer server;
    bool malformed = true;
    int errors = 0;
    transport.on_request([&](const HttpRequest& r) { return malformed ? FakeReply::json(200, text) : server(r); });
    LeaderElection election(client, {.identity = "a"}, {.on_error = [&](const Error&) { ++errors; }});
    election.start();
    transport.run_for(Duration::seconds(10));
    EXPECT_GE(errors, 3);
    EXPECT_FALSE(election.may_act(transport.clock().monotonic(), {}));
    malformed = false;
    transport.run_for(Duration::seconds(10));
    EXPECT_TRUE(election.may_act(transport.clock().monotonic(), {})) << text.substr(0, 80);
  }
}

// As above, for the answers to writes: it cannot be known whether they were taken, so leadership runs out by itself.
TEST(LeaderElection, AWriteThatIsAnsweredWithNoLeaseIsNotCountedAsARenewal) {
  for (const std::string& text : malformed_leases()) {
    LeaseServer server;
    Candidate a(server, "a");
    a.transport.run_for(kSecond);
    ASSERT_TRUE(a.leads());
    bool malformed = true;
    a.transport.on_request([&](const HttpRequest& request) {
      const FakeReply reply = server(request);
      return malformed && request.method != "GET" ? FakeReply::json(200, text) : reply;
    });
    a.transport.run_for(Duration::seconds(20));
    EXPECT_FALSE(a.leads()) << text.substr(0, 80);
    malformed = false;
    a.transport.run_for(Duration::seconds(10));
    EXPECT_TRUE(a.leads()) << text.substr(0, 80);
  }
}

TEST(LeaseElector, TransitionsStopAtTheLargestNumberThatALeaseCanHold) {
  LeaseElector elector({.identity = "me"});
  const int32_t most = std::numeric_limits<int32_t>::max();
  elector.on_read(LeaseObject{.record = {.holder = "", .duration_s = 15, .transitions = most}}, Time{1});
  const LeaseStep take = elector.next(Time{2}, {});
  EXPECT_EQ(take.kind, LeaseStep::Kind::kUpdate);
  EXPECT_EQ(take.record.transitions, most);
}

}  // namespace
}  // namespace berth::kube
