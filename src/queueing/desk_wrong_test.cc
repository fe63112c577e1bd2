// What Jobs and pods say of how they are queued, and cannot be meant so, on a cluster without the webhook.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using Json = nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Wrong {
  Json metadata, mended;  // merge patches
  const char* told;
};
const Wrong* all_wrong() {
  const auto label = [](const char* key, Json value) { return Json{{"labels", {{key, std::move(value)}}}}; };
  const auto annotation = [](const char* key, Json value) { return Json{{"annotations", {{key, std::move(value)}}}}; };
  constexpr const char *kLimit = "kueue.x-k8s.io/max-exec-time-seconds", *kLeast = "kueue.x-k8s.io/job-min-parallelism",
                       *kFollow = "kueue.x-k8s.io/job-completions-equal-parallelism";
  static const Wrong out[] = {
      {label(kLimit, "x"), label(kLimit, "3600"),
       "max-exec-time-seconds]: Invalid value: \"x\": must be a whole number"},
      {annotation(kLeast, "9"), annotation(kLeast, nullptr), "job-min-parallelism]: Invalid value: \"9\""},
      {annotation(kLeast, "x"), annotation(kLeast, "1"), "job-min-parallelism]: Invalid value: \"x\""},
      {annotation(kFollow, "true"), annotation(kFollow, "false"), "spec.completionMode: Invalid value"},
      {}};
  return out;
}

TEST(DeskWrong, WhatCannotBeMeantSoIsNotAdmittedUntilItIsMended) {
  for (const Wrong* each = all_wrong(); each->told != nullptr; ++each) {
    World world;
    world.submit("train", "red", 1);
    world.change("train", {{"metadata", each->metadata}});
    world.settle();
    world.settle();
    EXPECT_THAT(world.workloads, IsEmpty());
    EXPECT_TRUE(world.suspended("train"));
    EXPECT_EQ(std::ranges::count_if(world.notes, [](const std::string& note) { return note.starts_with("train "); }),
              1);
    EXPECT_THAT(world.notes, Contains(AllOf(StartsWith("train ErrWorkloadCompose: "), HasSubstr(each->told),
                                            HasSubstr("not admitted until that is mended"))));
    world.change("train", {{"metadata", each->mended}});
    world.settle();
    EXPECT_FALSE(world.suspended("train")) << each->told;
  }
}

TEST(DeskWrong, WhoIsAdmittedGoesOnAndWhoWaitsIsNotAdmitted) {
  for (const Wrong* each = all_wrong(); each->told != nullptr; ++each) {
    World world;
    for (const char* name : {"runs", "waits"}) world.submit(name, "red", 5);
    world.settle();
    ASSERT_NE(world.suspended("runs"), world.suspended("waits"));
    const std::string runs = world.suspended("runs") ? "waits" : "runs", waits = runs == "runs" ? "waits" : "runs";
    for (const std::string& name : {runs, waits}) world.change(name, {{"metadata", each->metadata}});
    world.settle();
    EXPECT_FALSE(world.suspended(runs));
    EXPECT_EQ(world.condition(waits, "QuotaReserved"), "False Misconfigured");
    EXPECT_THAT(world.notes, Contains(AllOf(StartsWith(waits + " ErrWorkloadCompose"), HasSubstr(each->told))));
    EXPECT_THAT(world.notes, Not(Contains(StartsWith(runs + " ErrWorkloadCompose"))));
    world.change(runs, {{"status", {{"conditions", {{{"type", "Complete"}, {"status", "True"}}}}}}});
    world.settle();
    EXPECT_TRUE(world.suspended(waits));
    world.change(waits, {{"metadata", each->mended}});
    world.settle();
    EXPECT_FALSE(world.suspended(waits)) << each->told;
  }
}

TEST(DeskWrong, APodWaitsToo) {
  World world;
  world.submit_pod("single", "red", 1);
  world.change_pod("single", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "0"}}}}}});
  world.settle();
  EXPECT_TRUE(world.gated("single"));
  EXPECT_THAT(world.notes, Contains(AllOf(StartsWith("single ErrWorkloadCompose: pod single: metadata.labels"),
                                          HasSubstr("Invalid value: \"0\": must be a whole number above 0"))));
  world.change_pod("single", {{"metadata", {{"labels", {{"kueue.x-k8s.io/max-exec-time-seconds", "3600"}}}}}});
  world.settle();
  EXPECT_FALSE(world.gated("single"));
}

}  // namespace
}  // namespace berth::queueing
