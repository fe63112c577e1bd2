#include "bridge/queues.h"
#include "queueing/desk.h"
#include "queueing/desk_world.h"
#include "quota/alike.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

struct DeskFollowTest : World, ::testing::Test {
  void label(const std::string& job, const char* key, const Json& value) {
    change(job, {{"metadata", {{"labels", {{key, value}}}}}});
  }
  void label_pod(const std::string& pod, const char* key, const Json& value) {
    change_pod(pod, {{"metadata", {{"labels", {{key, value}}}}}});
  }
};
constexpr const char *kQueue = "kueue.x-k8s.io/queue-name", *kPriority = "kueue.x-k8s.io/priority-class";

TEST_F(DeskFollowTest, AWaitingJobThatNamesAnotherQueueWaitsThere) {
  submit("first", "red", 8);
  settle();
  submit("second", "red", 1);
  settle();
  ASSERT_EQ(condition("second", "QuotaReserved"), "False WaitingForQuota");
  label("second", kQueue, "nowhere");
  settle();
  EXPECT_EQ(workload("second")["spec"]["queueName"], "nowhere");
  EXPECT_EQ(condition("second", "QuotaReserved"), "False Misconfigured");
  label("second", kQueue, "blue");
  change("first", {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
  settle();
  EXPECT_EQ(workload("second")["status"]["admission"]["clusterQueue"], "blue");
  EXPECT_THAT(notes, Contains("second UpdatedWorkload"));
}

TEST_F(DeskFollowTest, AnAdmittedJobKeepsItsQueueAndTakesAnotherPriority) {
  for (const auto& [name, value] : {std::pair("low", 1), std::pair("high", 9)}) desk.see_priority(name, value);
  submit("runs", "red", 8);
  label("runs", kPriority, "low");
  settle();
  ASSERT_EQ(workload("runs")["spec"]["priority"], 1);
  label("runs", kQueue, "blue");
  label("runs", kPriority, "high");
  settle();
  const Json& spec = workload("runs")["spec"];
  EXPECT_EQ(spec["queueName"], "red");
  EXPECT_EQ(spec["priority"], 9);
  EXPECT_EQ(spec["priorityClassRef"]["name"], "high");
  label("runs", kPriority, nullptr);
  settle();
  EXPECT_EQ(spec["priorityClassRef"]["name"], "high") << "the server has it not go while quota is reserved";
  EXPECT_FALSE(suspended("runs"));
}

TEST_F(DeskFollowTest, AWaitingJobTakesTheClassThatItComesToName) {
  desk.see_priority("high", 9);
  submit("first", "red", 8);
  settle();
  for (const char* name : {"second", "third"}) submit(name, "red", 8);
  settle();
  label("third", kPriority, "gone");
  settle();
  settle();
  EXPECT_EQ(workload("third")["spec"]["priority"], 0);
  EXPECT_EQ(std::ranges::count(notes,
                               "third ErrWorkloadCompose: WorkloadPriorityClass gone is not there; the Job keeps its "
                               "priority until it is"),
            1);
  label("third", kPriority, "high");
  settle();
  EXPECT_EQ(workload("third")["spec"]["priority"], 9);
  EXPECT_EQ(workload("third")["metadata"]["labels"][kPriority], "high");
  label("third", kPriority, nullptr);
  settle();
  EXPECT_EQ(workload("third")["spec"]["priority"], 0);
  EXPECT_FALSE(workload("third")["spec"].contains("priorityClassRef"));
  label("third", kPriority, "high");
  change("first", {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
  settle();
  EXPECT_EQ(condition("third", "Admitted"), "True Admitted") << "before the second, which came earlier";
}

TEST_F(DeskFollowTest, APriorityThatSomebodyHasWrittenStays) {
  submit("first", "red", 8);
  settle();
  submit("second", "red", 8);
  settle();
  Json& stored = workload("second");
  stored["spec"]["priority"] = 5;
  stored["metadata"]["generation"] = version;
  desk.see(*decode_workload(touched(stored).dump()));
  settle();
  EXPECT_EQ(workload("second")["spec"]["priority"], 5);
}

TEST_F(DeskFollowTest, AGroupOfPodsMovesOnceAllOfThemNameTheOtherQueue) {
  submit("first", "red", 8);
  settle();
  submit_pod("a", "red", 4, "g", 2);
  submit_pod("b", "red", 4, "g", 2);
  submit_pod("alone", "red", 8);
  settle();
  for (const char* pod : {"a", "alone"}) label_pod(pod, kQueue, "elsewhere");
  settle();
  EXPECT_EQ(workloads["g"]["spec"]["queueName"], "red");
  EXPECT_EQ(workload("alone")["spec"]["queueName"], "elsewhere");
  label_pod("b", kQueue, "elsewhere");
  settle();
  EXPECT_EQ(workloads["g"]["spec"]["queueName"], "elsewhere");
  EXPECT_TRUE(gated("a") && gated("b"));
}

TEST_F(DeskFollowTest, APodThatComesToAGroupWhichHasFinishedHearsSo) {
  submit_pod("a", "red", 1, "g", 1);
  settle();
  change_pod("a", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  ASSERT_EQ(condition("a", "Finished"), "True Succeeded");
  submit_pod("late", "red", 1, "g", 1);
  settle();
  settle();
  EXPECT_TRUE(gated("late"));
  EXPECT_EQ(std::ranges::count_if(notes,
                                  [](const std::string& note) {
                                    return note.starts_with(
                                        "late ErrWorkloadCompose: the Workload g of its group has finished");
                                  }),
            1);
}

TEST_F(DeskFollowTest, AWorkloadThatCannotBeUnderstoodSaysSoAndIsMadeAsItsOwnerIs) {
  submit("owned", "red", 1);
  submit("other", "red", 100);
  settle();
  Json alone = workload("owned");
  for (const char* key : {"ownerReferences", "resourceVersion"}) alone["metadata"].erase(key);
  alone["metadata"]["name"] = alone["metadata"]["uid"] = "alone";
  alone["status"] = Json::object();
  const auto ask = [&](Json& object, const char* gpus) {
    object["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"]["requests"][kGpu] = gpus;
    object["metadata"]["generation"] = ++version;
    ASSERT_EQ(decode_workload(object.dump()).has_value(), gpus[0] != '-');
    desk.see(*decode_any_workload(touched(object).dump()));
    settle();
  };
  const auto waits = [&](const Json& object) {
    const Json& one = object["status"]["conditions"][0];
    return one["type"].get<std::string>() + " " + one["status"].get<std::string>() + " " +
           one["message"].get<std::string>();
  };
  ask(workloads["alone"] = alone, "-1");
  EXPECT_THAT(waits(workloads["alone"]), HasSubstr("QuotaReserved False what it asks for cannot be understood: "));
  EXPECT_THAT(waits(workloads["alone"]), HasSubstr("-1"));
  ask(workloads["alone"], "1");
  EXPECT_EQ(waits(workloads["alone"]).find("QuotaReserved True"), 0);
  // With quota it stays what it was.
  Json edited = workloads["alone"];
  edited["spec"]["podSets"][0]["count"] = -1;
  EXPECT_FALSE(decode_any_workload(edited.dump()).has_value());
  const Json before = workload("other")["spec"]["podSets"];
  ask(workload("other"), "-1");
  EXPECT_EQ(workload("other")["spec"]["podSets"], before);
}

// Thousands that ask for the same wait as one: what names them must not keep them apart.
TEST_F(DeskFollowTest, WhoAsksForTheSameIsAlikeWhateverItIsMadeOf) {
  for (const char* name : {"job-a", "job-b"}) submit(name, "red", 1);
  for (const char* name : {"alone-a", "alone-b"}) submit_pod(name, "red", 1);
  for (const char* name : {"a", "b"}) submit_pod(name, "red", 1, std::string("group-") + name, 1);
  settle();
  const auto known = [&](const Json& stored) {
    return bridge::to_model(decode_workload(stored.dump())->workload, bridge::default_topology_levels());
  };
  const auto without_owner = [&](Json stored) {
    stored["metadata"].erase("ownerReferences");
    return known(stored);
  };
  const auto alike = [](const model::Workload& a, const model::Workload& b) {
    return quota::alike(a, b) && quota::likeness(a) == quota::likeness(b);
  };
  EXPECT_TRUE(alike(known(workload("job-a")), known(workload("job-b"))));
  EXPECT_TRUE(alike(without_owner(workload("job-a")), without_owner(workload("job-b"))));
  EXPECT_TRUE(alike(known(workload("alone-a")), known(workload("alone-b"))));
  EXPECT_TRUE(alike(known(workloads["group-a"]), known(workloads["group-b"])));
}

}  // namespace
}  // namespace berth::queueing
