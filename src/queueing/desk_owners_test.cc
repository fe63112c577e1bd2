// Desk: what the engine hears of whose Workloads are, and Jobs that were started by others.
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct DeskOwnersTest : World, ::testing::Test {};

TEST_F(DeskOwnersTest, AJobThatOthersStartedIsStartedAgainOnceItsPodsHaveGone) {
  submit("train", "red", 2);
  change("train", {{"spec", {{"suspend", false}}}, {"status", {{"active", 1}}}});
  settle();
  EXPECT_TRUE(suspended("train"));
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  change("train", {{"status", {{"active", 0}, {"terminating", 1}}}});
  settle();
  EXPECT_TRUE(suspended("train")) << "nobody counts the pod that is there still";
  change("train", {{"status", {{"terminating", 0}}}});
  settle();
  EXPECT_FALSE(suspended("train"));
}

TEST_F(DeskOwnersTest, AJobThatWasStoppedIsStartedOnceItsControllerHasSeenThat) {
  submit("train", "red", 2);
  change("train", {{"metadata", {{"generation", 2}}},
                   {"status", {{"startTime", "2026-01-01T00:00:00Z"}, {"conditions", Json::array()}}}});
  settle();
  EXPECT_EQ(condition("train", "Admitted"), "True Admitted");
  EXPECT_TRUE(suspended("train")) << "pods may come that nobody counts";
  change("train", {{"status", {{"conditions", Json::array({{{"type", "Suspended"}, {"status", "True"}}})}}}});
  settle();
  EXPECT_FALSE(suspended("train"));
  EXPECT_TRUE(jobs["train"]["status"]["startTime"].is_null() || !jobs["train"]["status"].contains("startTime"))
      << "with it the server would refuse to have the template changed";
}

TEST_F(DeskOwnersTest, TheWorkloadOfAJobThatNamesNoQueueAnyMoreWaits) {
  submit("train", "red", 8);
  settle();
  submit("next", "red", 4);
  settle();
  EXPECT_EQ(condition("next", "QuotaReserved"), "False WaitingForQuota");
  desk.job_gone("default", "next");
  change("train", {{"status", {{"conditions", Json::array({{{"type", "Complete"}, {"status", "True"}}})}}}});
  settle();
  EXPECT_EQ(condition("next", "QuotaReserved"), "False Misconfigured");
  desk.see(*decode_job(touched(jobs["next"]).dump()));
  settle();
  EXPECT_EQ(condition("next", "Admitted"), "True Admitted");
}

TEST_F(DeskOwnersTest, AWorkloadThatKueueMadeRunsAsLongAsItsJobDeclares) {
  submit("train", "red", 1);
  change("train", {{"spec",
                    {{"parallelism", 2},
                     {"completions", 6},
                     {"template", {{"metadata", {{"annotations", {{"berth.dev/runtime-estimate", "10m"}}}}}}}}}});
  Json made = Json::parse(
      R"({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
          "metadata": {"name": "job-train-1a2b3", "namespace": "default", "uid": "uid-train", "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "job-train", "controller": true}]},
          "spec": {"active": true, "queueName": "red", "podSets": [{"name": "main", "count": 2, "template": {"spec": {
            "containers": [{"name": "main", "image": "app", "resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}}]}})");
  desk.see(*decode_any_workload(touched(made).dump()));
  std::optional<Duration> runtime;
  for (const engine::Event& event : desk.take_events(now, wall))
    if (const auto* told = std::get_if<engine::WorkloadUpserted>(&event)) runtime = told->workload.runtime;
  EXPECT_EQ(runtime, Duration::seconds(3 * 600)) << "three rounds";
}

TEST_F(DeskOwnersTest, TheEngineHearsWhoseJobsNameAQueueAndWhichWorkloadIsTheirs) {
  std::vector<std::string> heard;
  const auto hear = [&] {
    for (const engine::Event& event : desk.take_events(now, wall))
      if (const auto* owner = std::get_if<engine::OwnerQueued>(&event))
        heard.push_back(fmt::format("{}{}{} {}", owner->uid, owner->queued ? " queued" : "",
                                    owner->suspended ? " suspended" : "", owner->workload));
    return std::exchange(heard, {});
  };
  submit("train", "red", 2);
  EXPECT_THAT(hear(), ElementsAre("job-train queued suspended "));
  change("train", {{"metadata", {{"annotations", {{"a", "b"}}}}}});
  EXPECT_THAT(hear(), IsEmpty());
  store(look().front());
  const std::string name = workload("train")["metadata"]["name"];
  EXPECT_THAT(hear(), ElementsAre("job-train queued suspended default/" + name));
  workloads.clear();
  desk.workload_gone("default", name);
  EXPECT_THAT(hear(), ElementsAre("job-train queued suspended "));
  desk.job_gone("default", "train");
  EXPECT_THAT(hear(), IsEmpty()) << "its pods may be there still";
  now = now + Duration::seconds(61);
  EXPECT_THAT(hear(), ElementsAre("job-train "));
}

}  // namespace
}  // namespace berth::queueing
