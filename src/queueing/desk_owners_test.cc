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

TEST_F(DeskOwnersTest, TheEngineHearsWhoseJobsNameAQueueAndWhichWorkloadIsTheirs) {
  std::vector<std::string> heard;
  const auto hear = [&] {
    for (const engine::Event& event : desk.take_events(now, wall))
      if (const auto* owner = std::get_if<engine::OwnerQueued>(&event))
        heard.push_back(fmt::format("{}{}{} {}", owner->uid, owner->queued ? " queued" : "",
                                    owner->renews_pods ? " renews" : "", owner->workload));
    return std::exchange(heard, {});
  };
  submit("train", "red", 2);
  EXPECT_THAT(hear(), ElementsAre("job-train queued renews "));
  change("train", {{"metadata", {{"annotations", {{"a", "b"}}}}}});
  EXPECT_THAT(hear(), IsEmpty());
  store(look().front());
  const std::string name = workload("train")["metadata"]["name"];
  EXPECT_THAT(hear(), ElementsAre("job-train queued renews default/" + name));
  workloads.clear();
  desk.workload_gone("default", name);
  EXPECT_THAT(hear(), ElementsAre("job-train queued renews "));
  desk.job_gone("default", "train");
  EXPECT_THAT(hear(), IsEmpty()) << "its pods may be there still";
  now = now + Duration::seconds(61);
  EXPECT_THAT(hear(), ElementsAre("job-train "));
}

}  // namespace
}  // namespace berth::queueing
