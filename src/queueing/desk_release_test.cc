// Quota that goes from one to another: what is stored says so in this order.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;

struct DeskReleaseTest : World, ::testing::Test {
  int reserved() {
    int out = 0;
    for (const auto& [name, workload] : workloads)
      for (const Json& one : workload.value("/status/conditions"_json_pointer, Json::array()))
        if (one["type"] == "QuotaReserved" && one["status"] == "True")
          out += std::stoi(
              workload["status"]["admission"]["podSetAssignments"][0]["resourceUsage"][kGpu].get<std::string>());
    return out;
  }
  // The last of what is written at a time is stored first; the most that is reserved meanwhile.
  int most_reserved() {
    int most = reserved();
    for (int turn = 0; turn < 30; ++turn) {
      const std::vector<Write> writes = look();
      for (auto write = writes.rbegin(); write != writes.rend(); ++write) {
        store(*write);
        most = std::max(most, reserved());
      }
    }
    return most;
  }
  void begin(const std::string& job) {
    change(job, {{"status", {{"active", 1}, {"startTime", "2026-01-01T00:00:00Z"}, {"conditions", Json::array()}}}});
  }
  Json stored(const std::string& job, const std::string& type) {
    for (const Json& one : workload(job)["status"]["conditions"])
      if (one["type"] == type) return one;
    return {};
  }
};

TEST_F(DeskReleaseTest, QuotaIsGivenBackBeforeOthersAreGivenIt) {
  for (const char* name : {"a", "b"}) {
    submit(name, "red", 4);
    settle();
    begin(name);
  }
  submit_pod("pod", "blue", 0);
  submit("own", "blue", 4);
  settle();
  const std::string victim = suspended("a") ? "a" : "b";
  change(victim, {{"status", {{"active", 0}}}});
  EXPECT_EQ(most_reserved(), 8);
  EXPECT_EQ(condition("own", "Admitted"), "True Admitted");
  EXPECT_EQ(condition(victim, "QuotaReserved"), "False WaitingForQuota");
}

TEST_F(DeskReleaseTest, AGroupGivesBackBeforeOthersAreGivenIt) {
  submit_pod("pod", "red", 8);
  settle();
  ASSERT_FALSE(pods["pod"]["spec"]["schedulingGates"].size() == 2);
  submit("own", "blue", 4);
  EXPECT_EQ(most_reserved(), 8);
}

TEST_F(DeskReleaseTest, WhoIsAdmittedAgainAtOnceHasATermOfItsOwn) {
  step = Duration::seconds(1);
  submit("victim", "red", 8);
  change("victim", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "1000"}}}}}});
  settle();
  begin("victim");
  const std::string first = stored("victim", "Admitted")["lastTransitionTime"];
  submit("asks", "blue", 4);
  settle();
  ASSERT_TRUE(suspended("victim"));
  const int ran = workload("victim")["status"]["accumulatedPastExecutionTimeSeconds"];
  desk.job_gone("default", "asks");
  desk.workload_gone("default", workload("asks")["metadata"]["name"]);
  workloads.erase(workload("asks")["metadata"]["name"].get<std::string>());
  jobs.erase("asks");
  wall = wall + Duration::seconds(60);
  now = now + Duration::seconds(60);
  const Time left = wall;
  change("victim", {{"status", {{"active", 0}}}});
  settle();
  EXPECT_FALSE(suspended("victim"));
  for (const char* type : {"QuotaReserved", "Admitted"}) {
    EXPECT_EQ(stored("victim", type)["status"], "True");
    EXPECT_GT(stored("victim", type)["lastTransitionTime"], format_rfc3339(left));
  }
  EXPECT_EQ(condition("victim", "Evicted"), "False QuotaReserved");
  begin("victim");
  World fresh;
  fresh.step = step;
  fresh.take_over(*this);
  fresh.submit("asks-again", "blue", 4);
  fresh.settle();
  ASSERT_TRUE(fresh.suspended("victim"));
  EXPECT_LT(fresh.workload("victim")["status"]["accumulatedPastExecutionTimeSeconds"], ran + 30)
      << "nothing counts twice, nor the time in which it left";
}

TEST_F(DeskReleaseTest, WhatIsRefusedIsGivenToNobody) {
  submit("victim", "red", 8);
  settle();
  begin("victim");
  submit("own", "blue", 4);
  settle();
  change("victim", {{"status", {{"active", 0}}}});
  for (int turn = 0; turn < 20; ++turn)
    for (const Write& write : look())
      if (write.kind == Write::Kind::kPatchStatus && write.name == workload("victim")["metadata"]["name"])
        desk.answered({.write = write, .http_status = 409}, now);
      else store(write);
  EXPECT_EQ(condition("victim", "QuotaReserved").substr(0, 4), "True");
  EXPECT_NE(condition("own", "Admitted"), "True Admitted");
  settle();
  EXPECT_EQ(condition("own", "Admitted"), "True Admitted");
}

// Room that is kept for another, which wants it back in time: the next process knows that, too.
TEST(DeskRoomLent, WhoHasItIsKnownAfterARestart) {
  quota::AdmissionOptions options;
  options.reservations = {.enabled = true, .after = Duration::seconds(300)};
  World world(options);
  const auto submit = [&](const std::string& name, int gpus, const std::string& estimate) {
    world.submit(name, "red", gpus);
    world.change(name, {{"metadata", {{"annotations", {{"berth.dev/runtime-estimate", estimate}}}}}});
    for (int minute = 0; minute < 6; ++minute) world.settle();
  };
  submit("runs", 6, "10h");
  submit("large", 8, "1h");
  submit("small", 1, "1h");
  EXPECT_EQ(world.condition("runs", "berth.dev/RoomLent"), "");
  EXPECT_EQ(world.condition("small", "berth.dev/RoomLent"), "True Backfilled");
  World fresh(options);
  fresh.take_over(world);
  fresh.settle();
  const std::string uid = fresh.workload("small")["metadata"]["uid"];
  EXPECT_TRUE(fresh.admission.status(fresh.admission.find(uid)).lent_room);
  EXPECT_EQ(fresh.condition("small", "berth.dev/RoomLent"), "True Backfilled");
}

}  // namespace
}  // namespace berth::queueing
