// Groups of pods that lose some while they wait, or as they leave: whole or not at all.
#include "queueing/desk.h"
#include "queueing/desk_world.h"

namespace berth::queueing {
namespace {

using ::testing::ElementsAre;

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
  // A pod as Kueue leaves it, with the Workload that it made for it.
  void leave_pod(const std::string& name, int gpus) {
    submit_pod(name, "red", gpus);
    pods[name]["spec"]["schedulerName"] = "default-scheduler";
    pods[name]["spec"]["schedulingGates"].push_back({{"name", "kueue.x-k8s.io/topology"}});
    change_pod(name, Json::object());
    const std::string made = "pod-" + name + "-aaaaa";
    workloads[made] = Json::parse(fmt::format(
        R"({{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
             "metadata": {{"name": "{0}", "namespace": "default", "uid": "uid-{0}", "creationTimestamp": "2026-01-01T00:00:00Z",
               "ownerReferences": [{{"apiVersion": "v1", "kind": "Pod", "name": "{1}", "uid": "pod-{1}", "controller": true}}]}},
             "spec": {{"active": true, "queueName": "red", "podSets": [{{"name": "main", "count": 1, "template": {{"spec": {{
               "containers": [{{"name": "main", "image": "app", "resources": {{"requests": {{"nvidia.com/gpu": "{2}"}}}}}}]}}}}}}]}}}})",
        made, name, gpus));
    desk.see(*decode_any_workload(touched(workloads[made]).dump()));
  }
};

// Else it would have quota for ever, with none of the pods that it was made for.
TEST_F(DeskGroupTest, PodsThatAreLikeNoneOfItsOwnDoNotKeepAWorkload) {
  for (const char* pod : {"a", "b"}) submit_pod(pod, "red", 1, "pair", 2);
  settle();
  for (const char* pod : {"c", "d"}) submit_pod(pod, "red", 2, "pair", 2);
  submit_pod("e", "red", 1, "pair", 2);
  settle();
  EXPECT_TRUE(gated("c") && gated("d"));
  std::vector<std::string> owners;
  for (const Json& owner : workloads["pair"]["metadata"]["ownerReferences"]) owners.push_back(owner["name"]);
  EXPECT_THAT(owners, ElementsAre("a", "b", "e"));
}

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

TEST_F(DeskGroupTest, PodsThatNodesCanTellApartAreNamed) {
  const auto named = [&] {
    std::vector<std::string> out;
    const quota::WorkloadId id = admission.find(workloads["trio"]["metadata"]["uid"].get<std::string>());
    for (const model::PodSet::Member& pod : admission.status(id).workload.pod_sets.front().members)
      out.push_back(fmt::format("{} {}", pod.uid, *pod.labels->find("app")));
    return out;
  };
  for (const char* pod : {"a", "b", "c"}) {
    submit_pod(pod, "red", 2, "trio", 3);
    change_pod(pod, {{"metadata", {{"labels", {{"app", "worker"}}}}}});
  }
  settle();
  EXPECT_THAT(named(), ElementsAre());  // all look alike
  change_pod("b", {{"metadata", {{"labels", {{"app", "leader"}}}}}});
  settle();
  EXPECT_THAT(named(), ElementsAre("pod-a worker", "pod-b leader", "pod-c worker"));
  EXPECT_EQ(workloads["trio"]["spec"]["podSets"].size(), 1u);
  change_pod("a", {{"metadata", {{"labels", {{"app", "watcher"}}}}}});
  lose("c");
  submit_pod("d", "red", 2, "trio", 3);
  change_pod("d", {{"metadata", {{"labels", {{"app", "worker"}}}}}});
  settle();
  EXPECT_THAT(named(), ElementsAre("pod-a watcher", "pod-b leader", "pod-d worker"));
}

// Another scheduler places it, as it did under Kueue.
TEST_F(DeskGroupTest, APodThatWaitedInKueueGoesOnInItsWorkload) {
  leave_pod("plain", 2);
  settle();
  EXPECT_EQ(workloads.size(), 1u);
  EXPECT_EQ(workloads["pod-plain-aaaaa"]["status"]["admission"]["clusterQueue"], "red");
  EXPECT_EQ(pods["plain"]["spec"]["schedulingGates"], Json::parse(R"([{"name": "else"}])"));
}

TEST_F(DeskGroupTest, APodThatKueueLetInHasItsQuotaUntilItEnds) {
  leave_pod("plain", 6);
  pods["plain"]["spec"].erase("schedulingGates");
  change_pod("plain", {{"spec", {{"nodeName", "n"}}}, {"status", {{"phase", "Running"}}}});
  Json& workload = workloads["pod-plain-aaaaa"];
  workload["status"] = Json::parse(
      R"({"admission": {"clusterQueue": "red", "podSetAssignments": [{"name": "main", "count": 1,
            "flavors": {"nvidia.com/gpu": "h100"}, "resourceUsage": {"nvidia.com/gpu": "6"}}]},
          "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
                         {"type": "Admitted", "status": "True", "reason": "Admitted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]})");
  desk.see(*decode_any_workload(touched(workload).dump()));
  settle();
  submit("other", "red", 8);
  settle();
  EXPECT_TRUE(condition("other", "QuotaReserved").starts_with("False")) << condition("other", "QuotaReserved");
  EXPECT_EQ(pods["plain"]["status"]["conditions"], Json()) << "it is told nothing";
  change_pod("plain", {{"status", {{"phase", "Succeeded"}}}});
  settle();
  EXPECT_EQ(condition("other", "Admitted"), "True Admitted");
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

// Its pods are its only owners: what it has waited, and how often it was evicted, is not lost with them.
struct DeskEvictedGroupTest : DeskGroupTest {
  void evict_pair() {
    for (const char* pod : {"a", "b"}) submit_pod(pod, "blue", 4, "pair", 2);
    settle();
    submit("owner", "red", 4);
    settle();
    ASSERT_EQ(pods.size(), 0u);
  }
  std::string pair_is(const char* type) { return condition_in(workloads["pair"], type); }
  Json owners_of_pair() { return workloads["pair"]["metadata"]["ownerReferences"]; }
};

TEST_F(DeskEvictedGroupTest, ItOutlastsItsPodsAndIsThatOfThoseThatComeInTheirPlace) {
  evict_pair();
  EXPECT_EQ(owners_of_pair(), Json::array()) << "else the garbage collector takes it";
  EXPECT_EQ(condition("owner", "Admitted"), "True Admitted");
  EXPECT_EQ(pair_is("QuotaReserved"), "False WaitingForReplacementPods");
  end_job("owner");
  settle();
  EXPECT_EQ(pair_is("Admitted"), "False NoReservation") << "nobody is there for whom it would have quota";
  for (const char* pod : {"c", "d"}) {
    EXPECT_TRUE(pair_is("QuotaReserved").starts_with("False")) << pod;
    submit_pod(pod, "blue", 4, "pair", 2);
    settle();
  }
  EXPECT_EQ(owners_of_pair().size(), 2u);
  EXPECT_EQ(pair_is("Admitted"), "True Admitted");
  EXPECT_FALSE(gated("c") || gated("d"));
  EXPECT_EQ(workloads["pair"]["metadata"]["uid"], "uid-pair");
  EXPECT_EQ(workloads.size(), 1u);
}

TEST_F(DeskEvictedGroupTest, OneWhosePodsDoNotComeAgainGoesAfterAnHour) {
  evict_pair();
  const Duration known = step;
  step = Duration::seconds(50 * 60);
  EXPECT_THAT(look(), ::testing::IsEmpty());
  EXPECT_TRUE(workloads.contains("pair"));
  ASSERT_TRUE(desk.wakeup());
  EXPECT_LE(*desk.wakeup(), now + Duration::seconds(600));
  step = Duration::seconds(11 * 60);
  settle();
  step = known;
  EXPECT_EQ(owners_of_pair()[0]["uid"], "uid-pair") << "no pod is that, so that the garbage collector takes it";
  EXPECT_THAT(notes, ::testing::Contains("pair Abandoned"));
}

TEST_F(DeskEvictedGroupTest, ItBecomesWhatThePodsAreThatCome) {
  evict_pair();
  end_job("owner");
  for (const char* pod : {"c", "d"}) submit_pod(pod, "blue", 2, "pair", 2);
  settle();
  EXPECT_EQ(pair_is("Admitted"), "True Admitted");
  EXPECT_FALSE(gated("c") || gated("d"));
  EXPECT_EQ(owners_of_pair().size(), 2u);
  EXPECT_EQ(workloads["pair"]["status"]["admission"]["podSetAssignments"][0]["resourceUsage"][kGpu], "4");
}

TEST_F(DeskEvictedGroupTest, AnotherBerthThatTakesOverKnowsItWithoutItsPods) {
  evict_pair();
  World later;
  later.take_over(*this);
  later.settle();
  EXPECT_EQ(condition_in(later.workloads["pair"], "QuotaReserved"), "False WaitingForReplacementPods");
  EXPECT_EQ(condition_in(later.workloads["pair"], "Evicted"), "True Preempted");
}

}  // namespace
}  // namespace berth::queueing
