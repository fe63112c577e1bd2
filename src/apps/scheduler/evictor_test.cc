#include "apps/scheduler/evictor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "io/fake_transport.h"

namespace berth::apps {
namespace {

using io::FakeReply;
using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

class EvictorTest : public testing::Test {
 protected:
  EvictorTest() {
    transport_.on_request([this](const io::HttpRequest& request) {
      sent_.push_back(request);
      return request.method == "PATCH" ? patch_answer_ : delete_answer_;
    });
  }

  void evict(const std::string& victim, const std::string& preemptor = "boss") {
    evictor_.evict({.victim = {.name_space = "ns", .name = victim, .uid = "uid-" + victim},
                    .preemptor = {.name_space = "ns", .name = preemptor, .uid = "uid-" + preemptor},
                    .node_name = "n1",
                    .scheduler_name = "berth",
                    .victim_generation = 3});
  }
  void run_for(int64_t seconds) { transport_.run_for(Duration::seconds(seconds)); }
  std::vector<std::string> calls() const {
    std::vector<std::string> out;
    for (const io::HttpRequest& request : sent_) out.push_back(request.method + " " + request.target);
    return out;
  }
  std::vector<std::string> ends() const {
    std::vector<std::string> out;
    for (const EvictionReport& report : reports_)
      out.push_back(report.eviction.victim.name + " " + std::string(to_string(report.end)));
    return out;
  }
  static FakeReply refusal(int status, const std::string& message) {
    const json body{{"kind", "Status"}, {"status", "Failure"}, {"code", status}, {"message", message}};
    return FakeReply::json(status, body.dump());
  }

  bool leading_ = true;
  FakeReply patch_answer_ = FakeReply::json(200, "{}", Duration::millis(10));
  FakeReply delete_answer_ = FakeReply::json(200, "{}", Duration::millis(10));
  std::vector<io::HttpRequest> sent_;
  std::vector<EvictionReport> reports_;
  io::FakeTransport transport_;
  kube::Client client_{transport_};
  Evictor evictor_{client_,
                   transport_,
                   2,
                   Duration::seconds(5),
                   [this] { return leading_; },
                   [this](EvictionReport report) { reports_.push_back(std::move(report)); }};
};

TEST_F(EvictorTest, MarksTheVictimThenDeletesThatPodAlone) {
  evict("low");
  run_for(1);
  EXPECT_THAT(calls(),
              ElementsAre("PATCH /api/v1/namespaces/ns/pods/low/status", "DELETE /api/v1/namespaces/ns/pods/low"));
  const json patch = json::parse(sent_[0].body);
  EXPECT_EQ(patch["metadata"]["uid"], "uid-low");
  const json condition = patch["status"]["conditions"][0];
  EXPECT_EQ(condition["type"], "DisruptionTarget");
  EXPECT_EQ(condition["status"], "True");
  EXPECT_EQ(condition["reason"], "PreemptionByScheduler");
  EXPECT_EQ(condition["message"], "berth: preempting to accommodate a higher priority pod");
  EXPECT_EQ(condition["observedGeneration"], 3);
  EXPECT_TRUE(condition.contains("lastTransitionTime"));
  const json options = json::parse(sent_[1].body);
  EXPECT_EQ(options["preconditions"]["uid"], "uid-low");
  EXPECT_FALSE(options.contains("gracePeriodSeconds"));
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
  EXPECT_EQ(evictor_.outstanding(), 0u);
}

TEST_F(EvictorTest, AtMostSoManyAreInFlight) {
  for (const char* victim : {"a", "b", "c", "d"}) evict(victim);
  transport_.run_for(Duration::millis(5));
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_EQ(evictor_.under_way(), 4u);
  run_for(1);
  EXPECT_THAT(ends(), ElementsAre("a evicted", "b evicted", "c evicted", "d evicted"));
}

TEST_F(EvictorTest, AVictimThatIsGoneOrAnotherPodByNowIsNoLongerInTheWay) {
  patch_answer_ = refusal(404, "pods \"low\" not found");
  evict("low");
  run_for(1);
  patch_answer_ = refusal(422, "metadata.uid: Invalid value: field is immutable");
  evict("new");
  run_for(1);
  patch_answer_ = FakeReply::json(200, "{}");
  delete_answer_ = refusal(409, "Precondition failed: UID in precondition: uid-late, UID in object meta: other");
  evict("late");
  run_for(1);
  EXPECT_THAT(ends(), ElementsAre("low gone", "new gone", "late gone"));
}

TEST_F(EvictorTest, WhatMayPassIsTriedAgainWithBackOffAndNothingTwice) {
  delete_answer_ = refusal(503, "etcd is away");
  evict("low");
  run_for(600);
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_LT(sent_.size(), 60u);
  EXPECT_EQ(evictor_.under_way(), 0u);
  sent_.clear();
  delete_answer_ = FakeReply::json(200, "{}");
  run_for(20);
  EXPECT_THAT(calls(), ElementsAre("DELETE /api/v1/namespaces/ns/pods/low"));
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

TEST_F(EvictorTest, WaitsAsLongAsTheServerAsks) {
  delete_answer_ = refusal(429, "slow down").with_header("retry-after", "30");
  evict("low");
  run_for(25);
  EXPECT_EQ(sent_.size(), 2u);
  run_for(10);
  EXPECT_EQ(sent_.size(), 3u);
}

TEST_F(EvictorTest, AServerThatHasTooMuchToDoHearsOfNoVictimMeanwhile) {
  patch_answer_ = refusal(429, "slow down").with_header("retry-after", "10");
  evict("a");
  run_for(1);
  for (const char* victim : {"b", "c"}) evict(victim);
  run_for(8);
  EXPECT_EQ(sent_.size(), 1u);
  patch_answer_ = FakeReply::json(200, "{}");
  run_for(5);
  EXPECT_THAT(ends(), testing::UnorderedElementsAre("a evicted", "b evicted", "c evicted"));
}

TEST_F(EvictorTest, AConflictThatIsNotOfTheUidPasses) {
  delete_answer_ = refusal(409, "Operation cannot be fulfilled: the object has been modified");
  evict("low");
  run_for(1);
  EXPECT_THAT(reports_, IsEmpty());
  delete_answer_ = FakeReply::json(200, "{}");
  run_for(5);
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

TEST_F(EvictorTest, ARefusalOfOurRoleIsReportedAfterAFewTries) {
  delete_answer_ = refusal(403, "pods \"low\" is forbidden: cannot delete");
  evict("low");
  run_for(600);
  EXPECT_EQ(sent_.size(), 5u);
  EXPECT_THAT(ends(), ElementsAre("low refused"));
  EXPECT_TRUE(reports_[0].forbidden);
  EXPECT_THAT(reports_[0].error, testing::HasSubstr("cannot delete"));
}

TEST_F(EvictorTest, ARoleThatComesLateIsEnough) {
  patch_answer_ = refusal(403, "not yet");
  evict("low");
  run_for(1);
  patch_answer_ = FakeReply::json(200, "{}");
  run_for(10);
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

TEST_F(EvictorTest, WhatTheServerWillNeverTakeIsReportedAtOnce) {
  patch_answer_ = refusal(422, "status.conditions: Invalid value");
  evict("low");
  run_for(60);
  EXPECT_EQ(sent_.size(), 1u);
  EXPECT_THAT(ends(), ElementsAre("low refused"));
  EXPECT_FALSE(reports_[0].forbidden);
}

TEST_F(EvictorTest, NothingIsSentWithoutTheLeaseAndItGoesOnWithIt) {
  leading_ = false;
  evict("low");
  run_for(20);
  EXPECT_THAT(sent_, IsEmpty());
  leading_ = true;
  run_for(20);
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

TEST_F(EvictorTest, NothingIsDeletedForAPreemptorThatNeedsItNoMore) {
  patch_answer_ = refusal(503, "away");
  evict("low");
  evict("other", "chief");
  run_for(1);
  evictor_.withdraw("uid-boss");
  EXPECT_THAT(ends(), ElementsAre("low withdrawn"));
  patch_answer_ = FakeReply::json(200, "{}", Duration::millis(10));
  run_for(20);
  EXPECT_THAT(ends(), ElementsAre("low withdrawn", "other evicted"));
}

TEST_F(EvictorTest, AWithdrawalWaitsForTheWriteUnderWay) {
  evict("low");
  transport_.run_for(Duration::millis(5));
  evictor_.withdraw("uid-boss");
  EXPECT_THAT(reports_, IsEmpty());
  run_for(1);
  EXPECT_THAT(calls(), ElementsAre("PATCH /api/v1/namespaces/ns/pods/low/status"));
  EXPECT_THAT(ends(), ElementsAre("low withdrawn"));
}

TEST_F(EvictorTest, ADeletionThatMayHaveHappenedIsNotWithdrawn) {
  delete_answer_ = FakeReply::error(ErrorCode::kTimeout, "no answer");
  evict("low");
  run_for(1);
  evictor_.withdraw("uid-boss");
  EXPECT_THAT(reports_, IsEmpty());
  delete_answer_ = refusal(404, "not found");
  run_for(20);
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

TEST_F(EvictorTest, TheSameVictimIsEvictedOnce) {
  evict("low");
  evict("low");
  run_for(1);
  EXPECT_EQ(sent_.size(), 2u);
  EXPECT_THAT(ends(), ElementsAre("low evicted"));
}

}  // namespace
}  // namespace berth::apps
