// Properties of quotas over random Jobs, ReplicaSets and pods that come, preempt one another and end: no namespace has
// ever more GPUs running than its quota, what a quota has used is what is there, and every pod of a Job that fits the
// quota and the node alone runs in the end: whoever was refused is tried again. BERTH_LONG=1 runs twenty times as many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

using ::testing::IsEmpty;

constexpr int64_t kGpusOfNode = 8;

std::string pod_template(Rng& rng, const char* restart) {
  return fmt::format(
      "template: {{metadata: {{labels: {{app: x}}, annotations: {{berth.dev/simulated-runtime: {}m}}}}, spec: "
      "{{restartPolicy: {}, terminationGracePeriodSeconds: {}, priorityClassName: p{}, containers: [{{name: c, image: "
      "i, resources: {{limits: {{nvidia.com/gpu: {}}}}}}}]}}}}",
      1 + rng.below(30), restart, rng.below(120), rng.below(3), 1 + rng.below(4));
}

std::string object_text(int number, Rng& rng) {
  const std::string metadata =
      fmt::format("metadata: {{name: w{}, namespace: n{}, annotations: {{berth.dev/simulated-arrival: {}m}}}}", number,
                  rng.below(2), rng.below(60));
  if (rng.chance(25))
    return fmt::format(
        "---\n{{apiVersion: apps/v1, kind: ReplicaSet, {}, spec: {{replicas: {}, selector: {{matchLabels: {{app: "
        "x}}}}, "
        "{}}}}}\n",
        metadata, 1 + rng.below(3), pod_template(rng, "Always"));
  const uint64_t completions = 1 + rng.below(6);
  return fmt::format("---\n{{apiVersion: batch/v1, kind: Job, {}, spec: {{parallelism: {}, completions: {}, {}}}}}\n",
                     metadata, 1 + rng.below(completions), completions, pod_template(rng, "Never"));
}

std::string quota_text(int space, int64_t gpus, int64_t pods) {
  return fmt::format(
      "---\n{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: q, namespace: n{}}}, spec: {{hard: "
      "{{requests.nvidia.com/gpu: {}, pods: {}}}}}}}\n",
      space, gpus, pods);
}

Report run(const std::string& text, uint64_t shuffle_seed) {
  const auto cluster = testing::prepare(text, {.shuffle_seed = shuffle_seed, .check_invariants = true});
  cluster->run_to_end();
  EXPECT_THAT(cluster->broken(), IsEmpty());
  return cluster->report();
}

// The most GPUs that pods of the namespace have had at one time.
int64_t most_running(const Report& report, const std::string& space) {
  std::map<Time, int64_t> change;
  for (const PodReport& pod : report.pods) {
    if (pod.namespace_name != space || !pod.started) continue;
    change[*pod.started] += count_gpus(pod.requests).gpus;
    if (pod.finished) change[*pod.finished] -= count_gpus(pod.requests).gpus;
  }
  int64_t now = 0, most = 0;
  for (const auto& [time, by] : change) most = std::max(most, now += by);
  return most;
}

TEST(QuotaProperties, NobodyHasMoreThanItsQuotaAndWhoFitsRunsInTheEnd) {
  const uint64_t runs = histories_to_play(100, 2000);
  uint64_t refused_at_first = 0;
  for (uint64_t seed = 1; seed <= runs; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    const int64_t quotas[] = {static_cast<int64_t>(4 + rng.below(5)), static_cast<int64_t>(4 + rng.below(9))};
    std::string text = fmt::format(
        "{{apiVersion: v1, kind: Node, metadata: {{name: gpu-1}}, status: {{capacity: {{cpu: 64, memory: 64Gi, pods: "
        "99, "
        "nvidia.com/gpu: {}}}}}}}\n",
        kGpusOfNode);
    for (int p = 0; p < 3; ++p)
      text += fmt::format(
          "---\n{{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: p{}}}, value: {}}}\n", p, p);
    for (int space = 0; space < 2; ++space)
      text += quota_text(space, quotas[space], static_cast<int64_t>(2 + rng.below(4)));
    const int objects = static_cast<int>(2 + rng.below(8));
    for (int i = 0; i < objects; ++i) text += object_text(i, rng);
    const Report report = run(text, rng.chance(50) ? seed : 0);
    for (int space = 0; space < 2; ++space) EXPECT_LE(most_running(report, fmt::format("n{}", space)), quotas[space]);
    for (const PodReport& pod : report.pods) {
      EXPECT_FALSE(pod.waiting) << pod.name << ": " << pod.message;
      refused_at_first += pod.started && *pod.started > pod.submitted;
    }
    for (const limits::QuotaUse& use : report.quotas)
      for (const auto& [resource, used] : use.used) EXPECT_LE(used, use.hard.get(resource)) << resource;
  }
  EXPECT_GT(refused_at_first, runs);  // quotas and nodes were short enough to matter
}

}  // namespace
}  // namespace berth::scenario
