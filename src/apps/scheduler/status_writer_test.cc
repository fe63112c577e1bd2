#include "apps/scheduler/status_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::apps {
namespace {

using io::FakeReply;
using nlohmann::json;
using testing::ElementsAre;

class StatusWriterTest : public testing::Test {
 protected:
  StatusWriterTest() {
    transport_.on_request([this](const io::HttpRequest& request) {
      const json condition = json::parse(request.body)["status"]["conditions"][0];
      texts_.push_back(condition["message"].get<std::string>());
      dated_.push_back(condition.contains("lastTransitionTime"));
      nominated_.push_back(json::parse(request.body)["status"].value("nominatedNodeName", json("unsaid")).dump());
      return up_ ? FakeReply::json(200, "{}", Duration::millis(10))
                 : FakeReply::error(ErrorCode::kUnavailable, "connection refused");
    });
  }

  void write(const std::string& text, bool first = true, std::optional<std::string> nominated_node = std::nullopt) {
    writer_.write({"ns", "pod", "uid", std::make_shared<const std::string>(text), 1, first, "Unschedulable",
                   std::move(nominated_node)});
  }
  void run_for(int64_t seconds) { transport_.run_for(Duration::seconds(seconds)); }

  bool up_ = true;
  std::vector<std::string> texts_;
  std::vector<bool> dated_;
  std::vector<std::string> nominated_;  // as JSON; "unsaid" where the patch leaves it alone
  int stored_ = 0;
  io::FakeTransport transport_;
  kube::Client client_{transport_};
  StatusWriter writer_{client_, transport_, 2, [this](bool ok) { stored_ += ok; }};
};

TEST_F(StatusWriterTest, WritesAgainHoweverLongTheServerIsAway) {
  up_ = false;
  write("0/1");
  run_for(600);
  EXPECT_EQ(stored_, 0);
  EXPECT_LT(texts_.size(), 60u);
  up_ = true;
  run_for(20);
  EXPECT_EQ(stored_, 1);
  EXPECT_EQ(writer_.queued(), 0u);
}

TEST_F(StatusWriterTest, WritesAgainAfterAServerThatDoesNotKnowItsRolesYet) {
  int answers = 0;
  transport_.on_request([&](const io::HttpRequest&) { return FakeReply::json(++answers < 3 ? 403 : 200, "{}"); });
  write("0/1");
  run_for(20);
  EXPECT_EQ(answers, 3);
  EXPECT_EQ(stored_, 1);
}

TEST_F(StatusWriterTest, AServerThatHasTooMuchToDoHoldsUpAllWrites) {
  bool busy = true;
  size_t sent = 0;
  transport_.on_request([&](const io::HttpRequest&) {
    ++sent;
    return busy ? FakeReply::json(429, "{}").with_header("retry-after", "20") : FakeReply::json(200, "{}");
  });
  for (int i = 0; i < 100; ++i)
    writer_.write({"ns", "pod", "uid-" + std::to_string(i), std::make_shared<const std::string>("0/1"), 1, true});
  transport_.run_for(Duration::millis(19'900));
  EXPECT_EQ(sent, 2u) << "two may be under way at once";
  run_for(200);
  EXPECT_LE(sent, 2u * 12);
  busy = false;
  run_for(21);
  EXPECT_EQ(stored_, 100);
  EXPECT_EQ(writer_.queued(), 0u);
}

TEST_F(StatusWriterTest, ALaterTextReplacesOneThatCouldNotBeWritten) {
  up_ = false;
  write("old");
  run_for(1);
  write("new", false);
  up_ = true;
  texts_.clear();
  dated_.clear();
  run_for(20);
  EXPECT_THAT(texts_, ElementsAre("new"));
  EXPECT_THAT(dated_, ElementsAre(true));  // the pod has no condition yet
  EXPECT_EQ(stored_, 1);
}

TEST_F(StatusWriterTest, TextsOfOnePodGoOutOneAfterTheOther) {
  write("a");
  transport_.run_for(Duration::millis(5));
  write("b", false);
  write("c", false);
  transport_.run_for(Duration::millis(4));
  EXPECT_THAT(texts_, ElementsAre("a"));
  run_for(1);
  EXPECT_THAT(texts_, ElementsAre("a", "c"));
  EXPECT_THAT(dated_, ElementsAre(true, false));
}

TEST_F(StatusWriterTest, NominationsAreWrittenAndTakenBack) {
  write("0/1");
  run_for(1);
  write("0/1", false, "node-1");
  run_for(1);
  write("0/2", false, "");
  run_for(1);
  EXPECT_THAT(nominated_, ElementsAre(R"("unsaid")", R"("node-1")", "null"));
}

TEST_F(StatusWriterTest, ANominationTakenBackStaysSoUntilThatIsStored) {
  write("0/1", true, "node-1");
  run_for(1);
  up_ = false;
  write("0/2", false, "");
  run_for(1);
  write("0/3", false);  // says nothing of nominations
  up_ = true;
  nominated_.clear();
  run_for(20);
  EXPECT_THAT(nominated_, ElementsAre("null"));
}

TEST_F(StatusWriterTest, AnotherNodeUnderTheSameTextIsAnotherWrite) {
  write("0/1", true, "node-1");
  transport_.run_for(Duration::millis(5));
  write("0/1", false, "node-2");
  run_for(1);
  EXPECT_THAT(nominated_, ElementsAre(R"("node-1")", R"("node-2")"));
}

TEST_F(StatusWriterTest, AForgottenWriteIsNotRepeated) {
  up_ = false;
  write("0/1");
  run_for(1);
  writer_.forget("uid", [] {});
  texts_.clear();
  run_for(60);
  EXPECT_THAT(texts_, ElementsAre());
  EXPECT_EQ(writer_.queued(), 0u);
}

TEST_F(StatusWriterTest, WhatFollowsForgettingWaitsForTheWriteUnderWay) {
  bool bound = false;
  write("0/1");
  transport_.run_for(Duration::millis(5));
  writer_.forget("uid", [&] { bound = true; });
  EXPECT_FALSE(bound);
  transport_.run_for(Duration::millis(10));
  EXPECT_TRUE(bound);
  EXPECT_EQ(writer_.queued(), 0u);
  bound = false;
  writer_.forget("uid", [&] { bound = true; });
  EXPECT_TRUE(bound);
}

}  // namespace
}  // namespace berth::apps
