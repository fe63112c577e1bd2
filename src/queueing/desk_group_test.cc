// Groups of pods that lose some while they wait, or as they leave: whole or not at all.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

struct DeskGroupTest : World, ::testing::Test {
  void lose(const std::string& pod) {
    pods.erase(pod);
    desk.pod_gone("default", pod);
  }
  void end_job(const std::string& job) {
    desk.job_gone("default", job);
    const std::string name = workload(job)["metadata"]["name"];
    workloads.erase(name);
    desk.workload_gone("default", name);
  }
};

TEST_F(DeskGroupTest, OneThatHasLostPodsWaitsForOthersInTheirPlace) {
  submit("blocks", "red", 8);
  settle();
  for (const char* pod : {"a", "b", "c"}) submit_pod(pod, "red", 2, "trio", 3);
  settle();
  EXPECT_EQ(condition("a", "QuotaReserved"), "False WaitingForQuota");
  EXPECT_EQ(condition("a", "WaitingForReplacementPods"), "");
  lose("b"), lose("c");
  end_job("blocks");
  settle();
  EXPECT_TRUE(gated("a"));
  EXPECT_EQ(condition("a", "QuotaReserved"), "False WaitingForReplacementPods");
  EXPECT_EQ(condition("a", "WaitingForReplacementPods"), "True PodsFailed");
  submit_pod("d", "red", 2, "trio", 3);
  settle();
  EXPECT_TRUE(gated("a"));
  submit_pod("e", "red", 2, "trio", 3);
  settle();
  for (const char* pod : {"a", "d", "e"}) EXPECT_FALSE(gated(pod)) << pod;
  EXPECT_EQ(condition("a", "Admitted"), "True Admitted");
  EXPECT_EQ(condition("a", "WaitingForReplacementPods"), "False PodsReady");
}

TEST_F(DeskGroupTest, OneWhosePodIsReplacedByAnotherWaitsAsItIsThen) {
  submit("blocks", "red", 8);
  settle();
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 2, "pair", 2);
  settle();
  lose("b");
  submit_pod("c", "red", 4, "pair", 2);
  settle();
  EXPECT_EQ(workloads["pair"]["spec"]["podSets"].size(), 2u);
  end_job("blocks");
  settle();
  for (const char* pod : {"a", "c"}) EXPECT_FALSE(gated(pod)) << pod;
  EXPECT_EQ(workloads["pair"]["status"]["admission"]["podSetAssignments"].size(), 2u);
}

// Of one that was evicted a pod had succeeded, which owns its Workload still.
TEST_F(DeskGroupTest, AnEvictedOneHoldsNothingUntilItsPodsAreThereAgain) {
  for (const char* pod : {"a", "b", "c", "x"}) submit_pod(pod, "blue", 2, "four", 4);
  settle();
  change_pod("a", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  submit("owner", "red", 4);
  settle();
  EXPECT_EQ(pods.size(), 1u);
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
  end_job("owner");
  settle();
  EXPECT_EQ(condition("a", "QuotaReserved"), "False WaitingForReplacementPods");
  EXPECT_EQ(condition("a", "WaitingForReplacementPods"), "True Preempted");
  submit("later", "blue", 8);
  settle();
  EXPECT_EQ(condition("later", "Admitted"), "True Admitted");
  end_job("later");
  for (const char* pod : {"d", "e", "f"}) {
    EXPECT_FALSE(condition("a", "Admitted").starts_with("True")) << pod;
    submit_pod(pod, "blue", 2, "four", 4);
    settle();
  }
  for (const char* pod : {"d", "e", "f"}) EXPECT_FALSE(gated(pod)) << pod;
}

}  // namespace
}  // namespace berth::queueing
