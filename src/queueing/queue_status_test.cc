#include "queueing/queue_status.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kGpu = "nvidia.com/gpu";
constexpr Time kWall{Duration::seconds(1'800'000'000).nanos};

class QueueStatusTest : public testing::Test {
 protected:
  explicit QueueStatusTest(quota::AdmissionOptions options = {}) : admission_(std::move(options)) {}
  void SetUp() override {
    model::ResourceFlavor flavor;
    flavor.name = "h100";
    admission_.upsert(flavor);
    admission_.set_namespace_labels("default", {});
    model::ClusterQueue queue;
    queue.name = "red";
    queue.cohort = "all";
    queue.namespaces.selects_nothing = false;
    model::ResourceQuota quota;
    quota.nominal = 4 * model::kWholeGpu;
    queue.groups = {{{kGpu}, {{"h100", {{kGpu, quota}}}}}};
    admission_.upsert(queue);
    queue.name = "blue";
    admission_.upsert(queue);
    admission_.upsert(model::LocalQueue{"default", "team", "red"});
    see("ClusterQueue", R"({"metadata": {"name": "red", "uid": "q", "resourceVersion": "5"}, "spec": {}})");
    see("LocalQueue", R"({"metadata": {"name": "team", "namespace": "default", "uid": "l", "resourceVersion": "6"},
                          "spec": {"clusterQueue": "red"}})");
  }
  void see(const std::string& kind, const std::string& json) {
    const auto seen = decode_queue_object(json, kind);
    ASSERT_TRUE(seen.has_value()) << seen.error().message;
    statuses_.see(*seen);
  }
  void submit(const std::string& name, int64_t gpus) {
    model::Workload workload;
    workload.namespace_name = "default";
    workload.name = workload.uid = name;
    workload.queue = "team";
    model::PodSet& set = workload.pod_sets.emplace_back();
    set.name = "main";
    set.count = 1;
    set.requests.set(kGpu, gpus * model::kWholeGpu);
    admission_.upsert(workload);
  }
  std::vector<Write> look() {
    now_ = now_ + Duration::seconds(2);
    for (bool more = true; more;) {
      std::vector<quota::AdmissionDecision> decisions;
      more = admission_.run_cycle(now_, decisions);
    }
    return statuses_.look(admission_, admission_.overview(), now_, wall_, 100);
  }
  // Stores all that is to be written: what was stored of each, by its name.
  std::map<std::string, Json> store(const std::vector<Write>& writes) {
    std::map<std::string, Json> out;
    for (const Write& write : writes) {
      const std::string kind = write.party == Write::Party::kLocalQueue ? "LocalQueue"
                               : write.party == Write::Party::kCohort   ? "Cohort"
                                                                        : "ClusterQueue";
      Json object = Json::parse(write.body);
      object["metadata"]["name"] = write.name;
      object["metadata"]["namespace"] = write.namespace_name;
      object["metadata"]["resourceVersion"] = std::to_string(++version_);
      object["spec"] = Json::object();
      if (kind == "LocalQueue") object["spec"]["clusterQueue"] = "red";
      Answer answer{.write = write, .stored = true};
      answer.queue = *decode_queue_object(object.dump(), kind);
      statuses_.answered(answer, now_);
      out[write.name] = object["status"];
    }
    return out;
  }

  quota::Admission admission_;
  QueueStatuses statuses_;
  Time now_{}, wall_ = kWall;
  int version_ = 10;
};

TEST_F(QueueStatusTest, CountsAndHoldingsStandInBothKindsOfQueue) {
  submit("first", 6);
  submit("second", 6);
  auto stored = store(look());
  ASSERT_THAT(stored, SizeIs(2));
  const Json& red = stored["red"];
  EXPECT_EQ(red["pendingWorkloads"], 1);
  EXPECT_EQ(red["admittedWorkloads"], 1);
  EXPECT_EQ(
      red["flavorsReservation"],
      Json::parse(R"([{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "6", "borrowed": "2"}]}])"));
  EXPECT_EQ(red["conditions"][0]["type"], "Active");
  EXPECT_EQ(red["conditions"][0]["status"], "True");
  EXPECT_EQ(red["conditions"][0]["lastTransitionTime"], format_rfc3339(kWall));
  EXPECT_EQ(stored["team"]["flavorsUsage"],
            Json::parse(R"([{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "6"}]}])"));
  EXPECT_THAT(look(), IsEmpty()) << "it says so already";
}

TEST_F(QueueStatusTest, WhatWaitsForItsChecksIsReservedAndNotUsed) {
  submit("first", 3);
  store(look());
  admission_.upsert(model::AdmissionCheck{"budget", "example.com/c"});
  model::ClusterQueue queue = admission_.cluster_queues().at("red");
  queue.checks = {{"budget"}};
  admission_.upsert(queue);
  submit("second", 3);
  const auto stored = store(look());
  const auto of = [](const char* amounts) {
    return Json::parse(
        fmt::format(R"([{{"name": "h100", "resources": [{{"name": "nvidia.com/gpu", {}}}]}}])", amounts));
  };
  EXPECT_EQ(stored.at("red")["flavorsReservation"], of(R"("total": "6", "borrowed": "2")"));
  EXPECT_EQ(stored.at("red")["flavorsUsage"], of(R"("total": "3", "borrowed": "0")"));
  EXPECT_EQ(stored.at("team")["flavorsReservation"], of(R"("total": "6")"));
  EXPECT_EQ(stored.at("team")["flavorsUsage"], of(R"("total": "3")"));
}

TEST_F(QueueStatusTest, AQueueThatCannotAdmitSaysWhy) {
  store(look());
  model::ResourceFlavor flavor;
  flavor.name = "h100";
  admission_.remove(flavor);
  auto stored = store(look());
  EXPECT_EQ(stored["red"]["conditions"][0]["reason"], "FlavorNotFound");
  EXPECT_EQ(stored["red"]["conditions"][0]["message"],
            "Can't admit new workloads: it references missing ResourceFlavors: h100");
  EXPECT_EQ(stored["team"]["conditions"][0]["reason"], "ClusterQueueIsInactive");
  model::ClusterQueue queue;
  queue.name = "red";
  admission_.remove(queue);
  stored = store(look());
  EXPECT_EQ(stored["team"]["conditions"][0]["reason"], "ClusterQueueDoesNotExist");
}

TEST_F(QueueStatusTest, AQueueWhoseSpecCannotBeUnderstoodSaysSoAndKeepsWhatItHas) {
  submit("first", 6);
  store(look());
  const auto broken = [](const std::string& name) {
    const std::string json = R"({"metadata": {"name": ")" + name + R"("}, "spec": {"resourceGroups": [{
      "coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [
        {"name": "nvidia.com/gpu", "nominalQuota": "1e400"}]}]}]}})";
    return std::get<api::ClusterQueue>(decode_queue_object(json, "ClusterQueue")->object).queue;
  };
  admission_.upsert(broken("red"));
  auto stored = store(look());
  EXPECT_EQ(stored["red"]["conditions"][0]["status"], "False");
  EXPECT_EQ(stored["red"]["conditions"][0]["reason"], "InvalidSpec");
  EXPECT_THAT(stored["red"]["conditions"][0]["message"].get<std::string>(),
              ::testing::AllOf(::testing::HasSubstr("its spec cannot be understood: "), ::testing::HasSubstr("1e400")));
  EXPECT_EQ(admission_.overview().cluster_queues.at("red").admitted, 1) << "nobody is evicted";
  EXPECT_EQ(admission_.cluster_queues().at("red").groups.size(), 1U) << "what was known counts";
  admission_.upsert(broken("new"));
  const SeenQueue seen = *decode_queue_object(R"({"metadata": {"name": "new"}})", "ClusterQueue");
  statuses_.see(seen);
  EXPECT_EQ(store(look())["new"]["conditions"][0]["reason"], "InvalidSpec");
}

TEST_F(QueueStatusTest, WhatWasSpentOfABudgetIsKeptThere) {
  const char* queue =
      R"({"metadata": {"name": "red", "uid": "q", "resourceVersion": "7", "annotations": {"berth.dev/budget-gpu-hours": "1",
          "berth.dev/budget-window": "day"}}, "spec": {"namespaceSelector": {}, "cohortName": "all", "resourceGroups": [
          {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "h100", "resources": [
          {"name": "nvidia.com/gpu", "nominalQuota": 4}]}]}]}})";
  const auto seen = *decode_queue_object(queue, "ClusterQueue");
  admission_.upsert(std::get<api::ClusterQueue>(seen.object).queue);
  statuses_.see(seen);
  submit("first", 4);
  const auto budget = [](const Json& status) {
    for (const Json& one : status["conditions"])
      if (one["type"] == "berth.dev/WithinBudget") return one;
    return Json();
  };
  store(look());
  EXPECT_THAT(look(), IsEmpty()) << "it goes on spending, and is not written all the time";
  now_ = now_ + Duration::seconds(60);
  const Json within = budget(store(look())["red"]);
  EXPECT_EQ(within["status"], "True");
  EXPECT_EQ(within["message"],
            "0.071111 of 1 GPU-hours of the day since 1970-01-01T00:00:00Z, counted until 1970-01-01T00:01:06.000000Z, "
            "since then 4 GPUs");
  now_ = now_ + Duration::seconds(900);
  const Json status = store(look())["red"];
  EXPECT_EQ(budget(status)["status"], "False");
  EXPECT_EQ(budget(status)["reason"], "BudgetSpent");
  EXPECT_EQ(
      status["conditions"][0]["message"],
      "Can't admit new workloads: ClusterQueue red has spent its 1 GPU-hours of this day; the next begins at 24h");

  // Whoever comes after goes on from there.
  Json object = Json::parse(queue);
  object["status"] = status;
  const auto after = *decode_queue_object(object.dump(), "ClusterQueue");
  const model::ClusterQueue& known = std::get<api::ClusterQueue>(after.object).queue;
  ASSERT_TRUE(known.spent);
  EXPECT_EQ(known.spent->gpu_time, admission_.spending().spent({"", "red"}, now_)->gpu_time);
  const auto later = spent_by_now(after, known.spent->until + Duration::seconds(900));
  EXPECT_EQ(later->gpu_time, known.spent->gpu_time + 1'000'000) << "as if who spends had gone on";
}

TEST_F(QueueStatusTest, WhatWasSpentStaysThereWhileItsBudgetCannotBeRead) {
  const auto local = [](const char* hours) {
    return Json{{"metadata",
                 {{"name", "team"},
                  {"namespace", "default"},
                  {"uid", "l"},
                  {"resourceVersion", "7"},
                  {"annotations", {{"berth.dev/budget-gpu-hours", hours}}}}},
                {"spec", {{"clusterQueue", "red"}}},
                {"status",
                 {{"conditions", Json::array({{{"type", "berth.dev/WithinBudget"},
                                               {"status", "False"},
                                               {"reason", "BudgetSpent"},
                                               {"message", "as it was"}}})}}}};
  };
  see("LocalQueue", local("0,002").dump());
  const Json conditions = store(look())["team"]["conditions"];
  ASSERT_THAT(conditions, SizeIs(2));
  EXPECT_EQ(conditions[0]["message"], "as it was");
  EXPECT_EQ(conditions[1]["status"], "False");
  EXPECT_EQ(conditions[1]["reason"], "InvalidSpec");
  EXPECT_EQ(conditions[1]["message"],
            "Can't admit new workloads: annotation berth.dev/budget-gpu-hours: '0,002' is no amount of GPU-hours; "
            "write a number with up to six decimals, for example 2500");
}

TEST_F(QueueStatusTest, ALimitOfUsersThatLimitsNothingIsTold) {
  see("ClusterQueue", R"({"metadata": {"name": "red", "uid": "q", "resourceVersion": "7",
                         "annotations": {"berth.dev/user-limits": "gpu=1"}}, "spec": {}})");
  const Json active = store(look())["red"]["conditions"][0];
  EXPECT_EQ(active["status"], "True");
  EXPECT_THAT(active["message"].get<std::string>(), ::testing::HasSubstr("limits gpu, which the queue does not cover"));
}

TEST_F(QueueStatusTest, WithoutFairSharingNoShareIsToldAndOneThatIsStoredGoes) {
  see("Cohort", R"({"metadata": {"name": "all", "uid": "c", "resourceVersion": "7"}, "spec": {}})");
  auto stored = store(look());
  EXPECT_FALSE(stored.contains("all"));
  EXPECT_FALSE(stored["red"].contains("fairSharing"));
  see("Cohort", R"({"metadata": {"name": "all", "uid": "c", "resourceVersion": "8"}, "spec": {},
                    "status": {"fairSharing": {"weightedShare": 250}}})");
  stored = store(look());
  ASSERT_THAT(stored, SizeIs(1));
  EXPECT_TRUE(stored["all"]["fairSharing"].is_null());
}

// Above the queues red and blue stands the Cohort all, below the Cohort company.
class FairQueueStatusTest : public QueueStatusTest {
 protected:
  FairQueueStatusTest() : QueueStatusTest({.fair = quota::FairRules{}}) {}
  void SetUp() override {
    QueueStatusTest::SetUp();
    model::Cohort company = cohort("company", "");
    company.groups = groups(8);
    admission_.upsert(company);
    admission_.upsert(cohort("all", "company"));
    for (const char* name : {"company", "all"})
      see("Cohort",
          fmt::format(R"({{"metadata": {{"name": "{0}", "uid": "{0}", "resourceVersion": "7"}}, "spec": {{}}}})",
                      name));
  }
  static std::vector<model::ResourceGroup> groups(int64_t gpus) {
    model::ResourceQuota quota;
    quota.nominal = gpus * model::kWholeGpu;
    return {{{kGpu}, {{"h100", {{kGpu, quota}}}}}};
  }
  static model::Cohort cohort(const std::string& name, const std::string& parent,
                              int64_t weight = model::kFairWeightUnit) {
    model::Cohort out;
    out.name = name;
    out.parent = parent;
    out.fair_weight = weight;
    return out;
  }
};

TEST_F(FairQueueStatusTest, QueuesAndCohortsSayByHowMuchTheyBorrow) {
  submit("large", 12);  // 16 in all: 8 of the company's, 4 of each queue
  auto stored = store(look());
  ASSERT_THAT(stored, SizeIs(4));
  EXPECT_EQ(stored["company"]["fairSharing"]["weightedShare"], 0) << "there is nobody to borrow from";
  EXPECT_EQ(stored["all"]["fairSharing"]["weightedShare"], 250) << "4 of 16, in thousandths";
  EXPECT_EQ(stored["red"]["fairSharing"]["weightedShare"], 500) << "8 of 16";
  EXPECT_FALSE(stored["team"].contains("fairSharing")) << "a LocalQueue borrows nothing";
  EXPECT_THAT(look(), IsEmpty()) << "they say so already";
}

TEST_F(FairQueueStatusTest, SharesAreRoundedUpAndThoseWithoutEndAreTheGreatest) {
  submit("large", 12);
  admission_.upsert(cohort("all", "company", 3 * model::kFairWeightUnit));
  EXPECT_EQ(store(look())["all"]["fairSharing"]["weightedShare"], 84) << "250 / 3";
  admission_.upsert(cohort("all", "company", 0));
  EXPECT_EQ(store(look())["all"]["fairSharing"]["weightedShare"], std::numeric_limits<int64_t>::max());
}

TEST_F(FairQueueStatusTest, CohortsInACircleHaveNoShareAndTheQueuesBelowSayWhy) {
  EXPECT_TRUE(store(look())["all"]["fairSharing"].is_object());
  admission_.upsert(cohort("company", "all"));
  auto stored = store(look());
  EXPECT_TRUE(stored["all"]["fairSharing"].is_null());
  EXPECT_TRUE(stored["company"]["fairSharing"].is_null());
  EXPECT_EQ(stored["red"]["conditions"][0]["reason"], "CohortCycle");
}

class UsageStatusTest : public QueueStatusTest {
 protected:
  UsageStatusTest()
      : QueueStatusTest(
            {.usage = {.half_life = Duration::seconds(1000), .sampling_interval = Duration::seconds(100)}}) {}
  void SetUp() override {
    QueueStatusTest::SetUp();
    goes_by_usage(true);
  }
  void goes_by_usage(bool is) {
    model::ClusterQueue queue = admission_.cluster_queues().at("red");
    queue.usage_based = is;
    admission_.upsert(queue);
  }
  std::vector<Write> look_after(int64_t seconds) {
    now_ = now_ + Duration::seconds(seconds - 2);
    wall_ = wall_ + Duration::seconds(seconds);
    return look();
  }
  static Json told(const Json& status) { return status["fairSharing"]["admissionFairSharingStatus"]; }
  static double gpus(const Json& status) {
    return std::stod(told(status)["consumedResources"][kGpu].get<std::string>());
  }
};

TEST_F(UsageStatusTest, WhatALocalQueueHasUsedIsWrittenAsOftenAsItIsSampledAndBesideAnythingElse) {
  submit("first", 4);
  Json team = store(look_after(2))["team"];
  EXPECT_EQ(team["fairSharing"]["weightedShare"], 0);
  EXPECT_NEAR(gpus(team), 4 * (1 - std::exp2(-0.1)), 1e-6) << "as if it had run for a sampling interval";
  EXPECT_EQ(told(team)["lastUpdate"], format_rfc3339_micro(wall_));
  EXPECT_THAT(look_after(90), IsEmpty());
  const auto writes = store(look_after(10));
  ASSERT_THAT(writes, SizeIs(1));
  team = writes.at("team");
  EXPECT_NEAR(gpus(team), 4 * (1 - std::exp2(-0.2)), 1e-6);
  submit("second", 8);
  team = store(look_after(10))["team"];
  EXPECT_EQ(team["pendingWorkloads"], 1);
  EXPECT_EQ(told(team)["lastUpdate"], format_rfc3339_micro(wall_));
}

TEST_F(UsageStatusTest, WhatNobodyUsesAnyMoreIsNotWrittenAgain) {
  submit("first", 4);
  store(look_after(2));
  admission_.finish(admission_.find("first"));
  EXPECT_GT(gpus(store(look_after(300))["team"]), 0.5);
  EXPECT_THAT(look_after(500), IsEmpty());
  EXPECT_THAT(look_after(50'000), IsEmpty());
}

TEST_F(UsageStatusTest, ItIsNotToldWhereTheClusterQueueDoesNotGoByIt) {
  goes_by_usage(false);
  submit("first", 4);
  EXPECT_FALSE(store(look_after(2))["team"].contains("fairSharing"));
  goes_by_usage(true);
  submit("second", 2);
  EXPECT_TRUE(store(look_after(2))["team"]["fairSharing"].is_object());
  goes_by_usage(false);
  EXPECT_TRUE(store(look_after(2))["team"]["fairSharing"].is_null());
}

TEST_F(UsageStatusTest, WhatSomebodyElseWritesThereIsPutRight) {
  const auto edited = [&](const char* amount, Time until) {
    const Json status = {
        {"fairSharing",
         {{"weightedShare", 0},
          {"admissionFairSharingStatus",
           {{"consumedResources", {{kGpu, amount}, {"foo", "1e400"}}}, {"lastUpdate", format_rfc3339(until)}}}}}};
    const Json object = {
        {"metadata",
         {{"name", "team"}, {"namespace", "default"}, {"uid", "l"}, {"resourceVersion", std::to_string(++version_)}}},
        {"spec", {{"clusterQueue", "red"}}},
        {"status", status}};
    see("LocalQueue", object.dump());
  };
  submit("first", 4);
  store(look_after(2));
  const double used = 4 * (1 - std::exp2(-0.1));
  for (const auto& [amount, until] :
       {std::pair("-1", wall_ + Duration::seconds(-200)), std::pair("900", wall_ + Duration::seconds(1'000'000)),
        std::pair("1e400", Time{})}) {
    edited(amount, until);
    const Json team = store(look_after(2))["team"];
    EXPECT_NEAR(gpus(team), used, 0.05) << amount;
    EXPECT_TRUE(told(team)["consumedResources"]["foo"].is_null());
  }
}

TEST_F(QueueStatusTest, AWriteThatFailsIsTriedAgainLaterAndNoneIsRepeatedMeanwhile) {
  const std::vector<Write> writes = look();
  ASSERT_THAT(writes, SizeIs(2));
  EXPECT_THAT(look(), IsEmpty());
  for (const Write& write : writes) statuses_.answered({.write = write, .http_status = 500, .error = "no"}, now_);
  EXPECT_THAT(look(), IsEmpty());
  now_ = now_ + Duration::seconds(10);
  EXPECT_THAT(look(), SizeIs(2));
}

}  // namespace
}  // namespace berth::queueing
