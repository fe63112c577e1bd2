// Properties of pod groups over random streams of groups, pods by themselves and Jobs in two queues that lend to each
// other: a group is let in whole and only when it is all there, whoever fits runs in the end, and no quota is lost.
// BERTH_LONG=1 runs twenty times as many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

using ::testing::IsEmpty;

constexpr const char* kCluster = R"(
{apiVersion: v1, kind: Node, metadata: {name: a}, status: {capacity: {cpu: 64, memory: 64Gi, pods: 110, nvidia.com/gpu: 8}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}, status: {capacity: {cpu: 64, memory: 64Gi, pods: 110, nvidia.com/gpu: 4}}}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p0}, value: 0}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: p1}, value: 1}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: f}}
)";

std::string queue_text(const char* name, int64_t quota, bool preempts) {
  return fmt::format(
      "---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: ClusterQueue, metadata: {{name: {0}}}, spec: {{cohortName: "
      "all, "
      "namespaceSelector: {{}}, preemption: {{reclaimWithinCohort: {2}, withinClusterQueue: {3}}}, resourceGroups: "
      "[{{coveredResources: [nvidia.com/gpu], flavors: [{{name: f, resources: [{{name: nvidia.com/gpu, nominalQuota: "
      "{1}}}]}}]}}]}}}}\n---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {{name: {0}, "
      "namespace: "
      "default}}, spec: {{clusterQueue: {0}}}}}\n",
      name, quota, preempts ? "Any" : "Never", preempts ? "LowerPriority" : "Never");
}

// `missing`: it never comes to be whole.
std::string group_text(int number, const std::string& queue, bool missing, Rng& rng) {
  const auto pods = static_cast<int>(1 + rng.below(4));
  const uint64_t priority = rng.below(2);
  std::string out;
  for (int i = 0; i < pods; ++i)
    out += fmt::format(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: g{0}-{1}, labels: {{kueue.x-k8s.io/queue-name: {2}, "
        "kueue.x-k8s.io/pod-group-name: g{0}}}, annotations: {{kueue.x-k8s.io/pod-group-total-count: \"{3}\", "
        "berth.dev/simulated-arrival: {4}m, berth.dev/simulated-runtime: {5}m}}}}, spec: {{priorityClassName: p{6}, "
        "containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: {7}}}}}}}]}}}}\n",
        number, i, queue, pods + (missing ? 1 : 0), rng.below(60), 1 + rng.below(30), priority, 1 + rng.below(2));
  return out;
}

std::string job_text(int number, const std::string& queue, Rng& rng) {
  const uint64_t pods = 1 + rng.below(3);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: j{}, labels: {{kueue.x-k8s.io/queue-name: {}}}, "
      "annotations: {{berth.dev/simulated-arrival: {}m}}}}, spec: {{parallelism: {}, completions: {}, template: "
      "{{metadata: {{annotations: {{berth.dev/simulated-runtime: {}m}}}}, spec: {{restartPolicy: Never, "
      "priorityClassName: p{}, containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: "
      "{}}}}}}}]}}}}}}}}\n",
      number, queue, rng.below(60), pods, pods, 1 + rng.below(30), rng.below(2), 1 + rng.below(2));
}

// Of each group, by its Workload's name, its pods.
std::map<std::string, std::vector<const PodReport*>> groups_of(const Report& report) {
  std::map<std::string, std::vector<const PodReport*>> out;
  for (const PodReport& pod : report.pods)
    if (pod.owner.starts_with("Pod group ")) out[pod.owner].push_back(&pod);
  return out;
}

TEST(PodGroupProperty, GroupsAreLetInWholeBesidePodsAndJobs) {
  const uint64_t streams = histories_to_play(200, 4000);
  uint64_t whole = 0, left = 0;
  for (uint64_t seed = 1; seed <= streams; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed);
    const bool preempts = rng.chance(40);
    std::string text = kCluster + queue_text("red", 8, preempts) + queue_text("blue", 4, preempts);
    std::set<std::string> never;
    for (int i = 0, all = static_cast<int>(1 + rng.below(15)); i < all; ++i) {
      const std::string queue = rng.chance(50) ? "red" : "blue";
      const bool missing = rng.chance(15);
      if (rng.chance(40)) text += job_text(i, queue, rng);
      else text += group_text(i, queue, missing, rng);
      if (missing) never.insert(fmt::format("Pod group default/g{}", i));
    }
    const auto cluster = testing::prepare(text, {.check_invariants = true});
    ASSERT_FALSE(HasFailure());
    cluster->run_to_end();
    EXPECT_THAT(cluster->broken(), IsEmpty());
    const Report report = cluster->report();
    for (const auto& [name, pods] : groups_of(report)) {
      const auto started = std::ranges::count_if(pods, [](const PodReport* pod) { return pod->started.has_value(); });
      const bool gone = std::ranges::any_of(pods, [](const PodReport* pod) { return pod->ended == "Preempted"; });
      EXPECT_TRUE(started == 0 || started == std::ssize(pods)) << name;
      EXPECT_EQ(started == 0 && !gone, never.contains(name)) << name;
      Time all_there = Time{};
      for (const PodReport* pod : pods) all_there = std::max(all_there, *pod->submitted);
      for (const PodReport* pod : pods)
        EXPECT_GE(pod->started.value_or(all_there), all_there) << name << " began before it was all there";
      whole += started > 1 ? 1 : 0;
      left += gone ? 1 : 0;
    }
    for (const WorkloadReport& workload : report.workloads)
      EXPECT_EQ(workload.state, "Finished") << workload.kind << " " << workload.name << ": " << workload.message;
    for (const QueueReport& queue : report.queues)
      for (const auto& held : queue.held) EXPECT_EQ(held.used, 0) << queue.name;
    if (HasFailure()) break;
  }
  EXPECT_GT(whole, streams);
  EXPECT_GT(left, 0) << "nobody had to leave";
}

}  // namespace
}  // namespace berth::scenario
