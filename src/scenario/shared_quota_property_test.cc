// Properties of quota over random Jobs that ask for whole GPUs and for shares of one, by fraction and by memory, in two
// queues that lend to and reclaim from one another: counted once more by what runs, no queue ever has more than its own
// and what it may borrow, both together no more than there is, and whoever asks for less has run in the end.
// BERTH_LONG=1 runs twenty times as many.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/rng.h"
#include "base/testing.h"
#include "scenario/testing.h"

namespace berth::scenario {
namespace {

constexpr const char* kApi = "apiVersion: kueue.x-k8s.io/v1beta2, kind";
constexpr int64_t kGpuMemory = int64_t{15} << 30;

struct Queue {
  int64_t nominal = 0, borrows = 0;  // millionths of GPUs
};

std::string millis(int64_t micros) { return fmt::format("{}m", micros / 1000); }

std::string queue_text(int number, const Queue& queue, Rng& rng) {
  return fmt::format(
      "---\n{{{0}: ClusterQueue, metadata: {{name: q{1}}}, spec: {{cohortName: all, namespaceSelector: {{}}, "
      "preemption: {{reclaimWithinCohort: {2}, withinClusterQueue: {3}}}, resourceGroups: [{{coveredResources: "
      "[nvidia.com/gpu], flavors: [{{name: f, resources: [{{name: nvidia.com/gpu, nominalQuota: {4}, borrowingLimit: "
      "{5}}}]}}]}}]}}}}\n---\n{{{0}: LocalQueue, metadata: {{name: q{1}}}, spec: {{clusterQueue: q{1}}}}}\n",
      kApi, number, rng.chance(70) ? "Any" : "Never", rng.chance(50) ? "LowerPriority" : "Never", millis(queue.nominal),
      millis(queue.borrows));
}

// Its pods and what each asks for, as annotations of the template and limits.
std::string job_text(int number, Rng& rng) {
  constexpr const char* kFractions[] = {"0.25", "0.3", "0.333333", "0.5", "1"};
  constexpr const char* kMemories[] = {"1Gi", "5Gi", "6Gi", "15Gi"};
  std::string annotation, limits;
  switch (rng.below(3)) {
    case 0: limits = fmt::format("nvidia.com/gpu: {}", 1 + rng.below(2)); break;
    case 1: annotation = fmt::format(", berth.dev/gpu-fraction: \"{}\"", kFractions[rng.below(5)]); break;
    default: annotation = fmt::format(", berth.dev/gpu-memory: {}", kMemories[rng.below(4)]);
  }
  const uint64_t pods = 1 + rng.below(3);
  return fmt::format(
      "---\n{{apiVersion: batch/v1, kind: Job, metadata: {{name: q{}-{}, labels: {{kueue.x-k8s.io/queue-name: q{}, "
      "kueue.x-k8s.io/priority-class: p{}}}, annotations: {{berth.dev/simulated-arrival: {}m}}}}, spec: {{parallelism: "
      "{}, completions: {}, template: {{metadata: {{annotations: {{berth.dev/simulated-runtime: {}m{}}}}}, spec: "
      "{{restartPolicy: Never, terminationGracePeriodSeconds: {}, containers: [{{name: c, image: i, resources: "
      "{{limits: {{{}}}}}}}]}}}}}}}}\n",
      number % 2, number, number % 2, rng.below(3), rng.below(60), pods, pods, 1 + rng.below(30), annotation,
      rng.below(120), limits);
}

// What the pod has of GPUs, in millionths.
int64_t micros_of(const PodReport& pod) {
  const int64_t by_memory = pod.gpu_share.memory_bytes * model::kWholeGpu / kGpuMemory;
  return pod.requests.get("nvidia.com/gpu") * model::kWholeGpu + pod.gpu_share.micros + by_memory;
}

// The most that pods whose names begin so have had at one time.
int64_t most_running(const Report& report, const std::string& prefix) {
  std::map<Time, int64_t> change;
  for (const PodReport& pod : report.pods) {
    if (!pod.name.starts_with(prefix) || !pod.started) continue;
    change[*pod.started] += micros_of(pod);
    if (pod.finished) change[*pod.finished] -= micros_of(pod);
  }
  int64_t now = 0, most = 0;
  for (const auto& [time, by] : change) most = std::max(most, now += by);
  return most;
}

TEST(SharedQuotaProperty, SharesAndWholeGpusTogetherAreNoMoreThanTheQuota) {
  const uint64_t runs = histories_to_play(100, 2000);
  size_t full = 0, finished = 0;
  for (uint64_t seed = 1; seed <= runs && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    std::string text = fmt::format(
        "{{{}: ResourceFlavor, metadata: {{name: f}}, spec: {{nodeLabels: {{nvidia.com/gpu.memory: \"15360\"}}}}}}\n",
        kApi);
    for (int i = 0; i < 2; ++i)
      text += fmt::format(
          "---\n{{apiVersion: v1, kind: Node, metadata: {{name: n{}, labels: {{nvidia.com/gpu.memory: \"15360\"}}}}, "
          "status: {{capacity: {{cpu: 64, memory: 64Gi, pods: 99, nvidia.com/gpu: 8}}}}}}\n",
          i);
    for (int i = 0; i < 3; ++i)
      text += fmt::format("---\n{{{}: WorkloadPriorityClass, metadata: {{name: p{}}}, value: {}}}\n", kApi, i, i);
    Queue queues[2];
    for (int i = 0; i < 2; ++i) {
      queues[i] = {static_cast<int64_t>(250'000 * rng.below(13)), static_cast<int64_t>(250'000 * rng.below(9))};
      text += queue_text(i, queues[i], rng);
    }
    const int jobs = static_cast<int>(4 + rng.below(12));
    for (int i = 0; i < jobs; ++i) text += job_text(i, rng);
    const auto cluster = testing::prepare(text, {.shuffle_seed = rng.chance(50) ? seed : 0, .check_invariants = true});
    EXPECT_TRUE(cluster->run_to_end());
    EXPECT_THAT(cluster->broken(), ::testing::IsEmpty());
    const Report report = cluster->report();
    const int64_t all = queues[0].nominal + queues[1].nominal;
    EXPECT_LE(most_running(report, ""), all);
    for (int i = 0; i < 2; ++i) {
      const int64_t bound = std::min(all, queues[i].nominal + queues[i].borrows);
      const int64_t most = most_running(report, fmt::format("q{}-", i));
      EXPECT_LE(most, bound);
      full += bound > 0 && most > bound - 250'000;
      for (const WorkloadReport& workload : report.workloads) {
        const std::string job = workload.name.substr(workload.name.find('/') + 1);
        if (!job.starts_with(fmt::format("q{}-", i))) continue;
        finished += workload.state == "Finished";
        EXPECT_TRUE(workload.state == "Finished" || workload.reason == "ExceedsMaxQuota")
            << workload.name << ": " << workload.message;
      }
    }
  }
  EXPECT_GT(full, runs / 2);  // quota was short enough to matter
  EXPECT_GT(finished, 3 * runs);
}

}  // namespace
}  // namespace berth::scenario
