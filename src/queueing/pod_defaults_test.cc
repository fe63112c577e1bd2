#include "queueing/pod_defaults.h"

#include <gtest/gtest.h>

#include "api/decode.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

template <typename T>
T read(const Json& object) {
  return *api::decode_json<T>(object.dump());
}

api::LimitRange range_of(const Json& item, int version = 1) {
  return read<api::LimitRange>(
      {{"metadata",
        {{"name", "bounds"}, {"namespace", "default"}, {"uid", "range"}, {"resourceVersion", std::to_string(version)}}},
       {"spec", {{"limits", Json::array({item})}}}});
}

// What the Workload's only container asks for, "requests" or "limits".
Json asked(World& world, const std::string& job, const char* what = "requests") {
  return world.workload(job)["spec"]["podSets"][0]["template"]["spec"]["containers"][0]["resources"][what];
}

// A Job whose pods name no resources.
void submit_bare(World& world, const std::string& name) {
  world.submit(name, "red", 0);
  const Json containers = Json::array({{{"name", "main"}}});
  world.change(name, {{"spec", {{"template", {{"spec", {{"containers", containers}}}}}}}});
}

TEST(PodDefaults, AWorkloadAsksForWhatLimitRangesGiveItsPods) {
  World world;
  world.desk.see(range_of({{"type", "Container"}, {"max", {{kGpu, "4"}}}}));
  submit_bare(world, "train");
  world.settle();
  EXPECT_EQ(asked(world, "train"), Json({{kGpu, "4"}}));
  EXPECT_EQ(asked(world, "train", "limits"), Json({{kGpu, "4"}}));
  EXPECT_EQ(world.workload("train")["status"]["admission"]["podSetAssignments"][0]["resourceUsage"][kGpu], "4");
  EXPECT_FALSE(world.suspended("train"));
}

TEST(PodDefaults, AWorkloadHasTheOverheadOfItsRuntimeClass) {
  World world;
  world.desk.see(read<api::RuntimeClass>({{"metadata", {{"name", "kata"}, {"uid", "kata"}}},
                                          {"handler", "kata"},
                                          {"overhead", {{"podFixed", {{kGpu, "2"}}}}}}));
  world.submit("train", "red", 2);
  world.change("train", {{"spec", {{"template", {{"spec", {{"runtimeClassName", "kata"}}}}}}}});
  world.settle();
  EXPECT_EQ(world.workload("train")["spec"]["podSets"][0]["template"]["spec"]["overhead"], Json({{kGpu, "2"}}));
  EXPECT_EQ(world.workload("train")["status"]["admission"]["podSetAssignments"][0]["resourceUsage"][kGpu], "4");
}

TEST(PodDefaults, ALimitRangeThatChangesCountsForThoseWhoWaitAlone) {
  World world;
  const auto gives = [](const char* gpus) { return Json{{"type", "Container"}, {"default", {{kGpu, gpus}}}}; };
  world.desk.see(range_of(gives("5")));
  submit_bare(world, "runs");
  world.settle();
  submit_bare(world, "waits");
  world.settle();
  EXPECT_EQ(world.condition("waits", "QuotaReserved"), "False WaitingForQuota");
  world.desk.see(range_of(gives("6"), 2));
  world.settle();
  EXPECT_EQ(asked(world, "runs"), Json({{kGpu, "5"}}));
  EXPECT_EQ(asked(world, "waits"), Json({{kGpu, "6"}}));
  EXPECT_FALSE(world.suspended("runs"));
  EXPECT_TRUE(world.suspended("waits"));
  world.desk.see(range_of(gives("3"), 3));
  world.settle();
  EXPECT_EQ(asked(world, "runs"), Json({{kGpu, "5"}}));
  EXPECT_FALSE(world.suspended("waits"));
}

TEST(PodDefaults, WhomALimitRangeRefusesWaitsUntilItDoesNot) {
  World world;
  const auto at_most = [](const char* gpus) { return Json{{"type", "Container"}, {"max", {{kGpu, gpus}}}}; };
  world.submit("train", "red", 2);
  world.change(
      "train",
      {{"spec",
        {{"template",
          {{"spec",
            {{"containers", Json::array({{{"name", "main"}, {"resources", {{"limits", {{kGpu, "2"}}}}}}})}}}}}}}});
  world.desk.see(range_of(at_most("1")));
  world.settle();
  EXPECT_EQ(world.condition("train", "QuotaReserved"), "False Misconfigured");
  EXPECT_THAT(world.workload("train")["status"]["conditions"][0]["message"].get<std::string>(),
              HasSubstr("didn't satisfy LimitRange constraints: maximum nvidia.com/gpu usage per Container is 1, but "
                        "limit is 2"));
  world.desk.see(range_of(at_most("2"), 2));
  world.settle();
  EXPECT_EQ(world.condition("train", "Admitted"), "True Admitted");
}

// Those that are there have been given theirs.
TEST(PodDefaults, PodsAreCountedAsTheyAre) {
  World world;
  world.desk.see(range_of({{"type", "Container"}, {"max", {{kGpu, "1"}}}}));
  world.submit_pod("single", "red", 2);
  world.settle();
  EXPECT_FALSE(world.gated("single"));
}

}  // namespace
}  // namespace berth::queueing
