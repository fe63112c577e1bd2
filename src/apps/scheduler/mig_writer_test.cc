#include "apps/scheduler/mig_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::apps {
namespace {

using io::FakeReply;
using nlohmann::json;
using ::testing::HasSubstr;
using Kind = MigOutcome::Kind;
using State = bridge::MigDesired::State;

struct MigWriterTest : ::testing::Test {
  MigWriterTest() {
    transport.on_request([this](const io::HttpRequest& request) {
      sent.push_back(json::parse(request.body)["metadata"]);
      return reply;
    });
  }
  // A turn of the owner thread a second later; what it sends is answered at once.
  std::vector<MigOutcome> turn() {
    transport.run_for(Duration::seconds(1));
    std::vector<MigOutcome> out = writer.tick(transport.clock().monotonic());
    transport.run_for(Duration::millis(1));
    return out;
  }
  std::vector<MigOutcome> see(const std::string& version, std::optional<bridge::MigDesired> desired = {},
                              const std::string& config = "", const std::string& state = "") {
    writer.seen("dgx", {version, std::move(desired), config, state, ""});
    return turn();
  }
  static bridge::MigDesired change(const std::string& id, const std::string& config = "") {
    bridge::MigDesired out;
    out.id = id;
    out.config = config;
    return out;
  }
  void begin(const bridge::MigDesired& desired) {
    writer.begin("dgx", desired);
    EXPECT_TRUE(turn().empty());
  }

  io::FakeTransport transport;
  kube::Client client{transport};
  FakeReply reply = FakeReply::json(200, "{}");
  std::vector<json> sent;
  bool leading = true;
  MigWriter writer{client,
                   Duration::seconds(5),
                   {[this](const NodePatched& answer) { writer.handle(answer, transport.clock().monotonic()); },
                    [this] { return leading; }}};
};

TEST_F(MigWriterTest, WritesToTheVeryNodeThatTheDecisionSaw) {
  see("7");
  begin(change("a"));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0]["resourceVersion"], "7");
  EXPECT_EQ(json::parse(sent[0]["annotations"]["berth.dev/mig-desired"].get<std::string>())["state"], "wanted");
  EXPECT_FALSE(sent[0].contains("labels"));
  EXPECT_TRUE(see("8", change("a")).empty());
  EXPECT_EQ(writer.changing().size(), 1U);
  writer.end("dgx", State::kArrived, "", Time{}, 0);
  EXPECT_TRUE(turn().empty());
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1]["resourceVersion"], "8");
  bridge::MigDesired arrived = change("a");
  arrived.state = State::kArrived;
  see("9", arrived);
  EXPECT_FALSE(writer.busy("dgx"));
  EXPECT_EQ(sent.size(), 2U);
}

TEST_F(MigWriterTest, LooksAgainWhereTheNodeHasChanged) {
  see("7");
  reply = FakeReply::json(409, R"({"kind": "Status", "code": 409, "reason": "Conflict"})");
  begin(change("a"));
  EXPECT_TRUE(writer.busy("dgx")) << "what became of it the watch will show";
  const auto outcomes = see("8");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::kWithdrawn);
  EXPECT_FALSE(writer.busy("dgx"));
}

TEST_F(MigWriterTest, BelievesTheNodeWhereAnAnswerIsLost) {
  see("7");
  reply = FakeReply::json(500, "{}");
  begin(change("a"));
  EXPECT_TRUE(see("8", change("a")).empty()) << "the server had taken it";
  EXPECT_EQ(writer.changing().size(), 1U);
}

TEST_F(MigWriterTest, IsRefusedForGoodWithoutTheRight) {
  see("7");
  reply = FakeReply::json(403, R"({"kind": "Status", "code": 403, "message": "may not"})");
  begin(change("a"));
  const auto outcomes = turn();
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::kRefused);
  EXPECT_THAT(outcomes[0].why, HasSubstr("may not"));
}

TEST_F(MigWriterTest, SendsNothingOnceItMayNot) {
  see("7");
  leading = false;
  begin(change("a"));
  EXPECT_TRUE(sent.empty());
}

TEST_F(MigWriterTest, TakesOverWhatStandsOnANode) {
  const auto outcomes = see("7", change("a"));
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::kAdopted);
  EXPECT_EQ(outcomes[0].desired->id, "a");
  EXPECT_TRUE(see("8", change("a")).empty()) << "once";
  EXPECT_TRUE(sent.empty());
}

TEST_F(MigWriterTest, TakesANameAwayFirstThatStandsThereAlready) {
  see("7", {}, "all-1g.5gb", "failed");
  begin(change("a", "all-1g.5gb"));
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0]["labels"]["nvidia.com/mig.config"].is_null());
  EXPECT_TRUE(sent[0]["labels"]["nvidia.com/mig.config.state"].is_null());
  EXPECT_TRUE(see("8", change("a", "all-1g.5gb")).empty());
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[1]["labels"]["nvidia.com/mig.config"], "all-1g.5gb");
  const auto outcomes = see("9", change("a", "all-1g.5gb"), "all-1g.5gb", "failed");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::kFailed);
}

TEST_F(MigWriterTest, GivesWayWhereSomebodyElseChoosesTheConfiguration) {
  see("7", {}, "all-disabled", "success");
  begin(change("a", "all-1g.5gb"));
  const auto outcomes = see("8", change("a", "all-1g.5gb"), "all-balanced");
  ASSERT_EQ(outcomes.size(), 1U);
  EXPECT_EQ(outcomes[0].kind, Kind::kFailed);
  EXPECT_THAT(outcomes[0].why, HasSubstr("somebody else"));
}

}  // namespace
}  // namespace berth::apps
